// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pad/pad.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/pad/plan.h"
#include "tensorcraft/ops/pad/problem.hpp"

#include <limits>

namespace tensorcraft {
namespace kernel::pad {

Params params(const Problem& q) {
  return make_params(q.x.data(), q.out.writable_data(), q.value, q.x.rank(), q.before.data(),
                     q.after.data(), q.x.shape().data(), q.x.strides().data(),
                     q.out.strides().data());
}

namespace {

constexpr ConfigField kFields[] = {{"threads"}, {"vectors"}, {"wide"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const Given given{int(dtype_bytes(q.x.dtype()))};
  return {params(q), given, {op::moved_as(given.element_bytes)}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "runs over all cores", .run = cpu},
    {.name = "reference", .idea = "obvious loops", .run = reference},
};

// One side of the margin with an entry for each axis.
Dims for_each_axis(const Dims& given, int rank) {
  if (given.rank() == rank) return given;
  if (given.rank() != 1)
    fail(ErrorKind::type,
         "pad: pad_width must be an int, a pair of ints or a pair for each of the ", rank,
         " axes of x, got ", given.rank(), " widths for one side");
  Dims all;
  for (int i = 0; i < rank; ++i) all.push_back(given[0]);
  return all;
}

Margins widths(const TensorView& x, const PadOptions& o) {
  const Margins all{for_each_axis(o.pad_width.before, x.rank()),
                    for_each_axis(o.pad_width.after, x.rank())};
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t before = all.before[i], after = all.after[i];
    if (before < 0 || after < 0)
      fail(ErrorKind::value, "pad: pad_width must be at least 0, got (", before, ", ", after,
           ") for axis ", i, "; a slice makes an axis shorter");
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    if (before > most - x.shape(i) || after > most - x.shape(i) - before)
      fail(ErrorKind::value, "pad: pad_width (", before, ", ", after, ") makes axis ", i,
           " longer than 64 bits count");
  }
  return all;
}

Dims padded(const TensorView& x, const Margins& by) {
  Dims shape = x.shape();
  for (int i = 0; i < x.rank(); ++i) shape[i] += by.before[i] + by.after[i];
  return shape;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const PadOptions& options) {
  return {{"out", in[0].dtype(), padded(in[0], widths(in[0], options))}};
}

Problem check(const op::Call<PadOptions>& call) {
  const TensorView& x = call.in();
  const Margins by = widths(x, call.options);
  op::check_like("pad", "out", call.out(), x.dtype(), padded(x, by));
  return {call.out(), x, by.before, by.after, host::element_bits(x.dtype(), call.options.value)};
}

op::Cost cost(const Problem& q) { return {.bytes = double(q.x.nbytes()) + double(q.out.nbytes())}; }

// An int is the width on both sides of every axis, a list of two ints a pair for every axis, and a
// list of pairs has one for each axis.
Margins to_margins(std::string_view op, std::string_view name, const op::Value& v) {
  if (const auto* x = std::get_if<int64_t>(&v)) return {{*x}, {*x}};
  const auto* ints = std::get_if<Dims>(&v);
  if (ints && ints->rank() == 1) return {{(*ints)[0]}, {(*ints)[0]}};
  if (ints && ints->rank() == 2) return {{(*ints)[0]}, {(*ints)[1]}};
  const auto* pairs = std::get_if<std::vector<Dims>>(&v);
  if (!pairs)
    op::wrong_type(op, name,
                   join("an int, a pair of ints or a pair for each axis, got ", op::kind_of(v),
                        ints ? join(" of ", ints->rank(), " ints") : std::string()));
  Margins all;
  for (const Dims& pair : *pairs) {
    if (pair.rank() != 2)
      op::wrong_type(op, name,
                     join("an int, a pair (before, after) or such a pair for each axis, got ",
                          op::Field<Dims>::text(pair), " among them"));
    all.before.push_back(pair[0]);
    all.after.push_back(pair[1]);
  }
  return all;
}

op::Option<PadOptions> width_option() {
  op::Option<PadOptions> o{
      {.name = "pad_width",
       .doc = "an int, (before, after), or ((before, after), ...) with a pair for each axis",
       .kind = op::ParameterKind::integer_lists,
       .positional = true,
       .default_value = {},
       .choices = {}},
      {},
      {}};
  o.set = [](std::string_view op, PadOptions& options, const op::Value& v) {
    if (!std::holds_alternative<std::monostate>(v))
      options.pad_width = to_margins(op, "pad_width", v);
  };
  o.add_to = [](op::CallKey& key, const PadOptions& options) {
    key.add(options.pad_width.before);
    key.add(options.pad_width.after);
  };
  o.text = [](const PadOptions& options) {
    return join(op::Field<Dims>::text(options.pad_width.before), "+",
                op::Field<Dims>::text(options.pad_width.after));
  };
  return o;
}

const op::Definition<Problem, PadOptions> kPad{
    .name = "pad",
    .group = "data movement",
    .summary = "An array with a margin of one value around it.",
    .details =
        "As numpy.pad with mode=\"constant\": out[before + i] = x[i] on every axis. An int is the "
        "width on both sides of every axis, (before, after) that of every axis, and a pair for "
        "each axis its own. Any dtype, rank and strides; the bits of x are copied, value is "
        "converted as fill does. A negative width is a ValueError: a slice makes an axis shorter.",
    .inputs = {{"x", "any shape and dtype"}},
    .options = {width_option(), op::positional(op::option("value", &PadOptions::value,
                                                          "what the new elements are"))},
    .out_doc = "each size of x and the widths of its axis, dtype of x",
    .dtypes = op::moved_dtypes(),
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>("pad", kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::pad

void pad(const TensorView& out, const TensorView& x, const PadOptions& options) {
  op::run(kernel::pad::kPad, out, {x}, options);
}
Tensor pad(const TensorView& x, const PadOptions& options) {
  return std::move(op::allocate(kernel::pad::kPad, {x}, options)[0]);
}

op::OperatorList ops::pad() { return op::registered(kernel::pad::kPad); }

}  // namespace tensorcraft
