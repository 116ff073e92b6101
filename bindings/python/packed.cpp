// SPDX-License-Identifier: Apache-2.0
#include "packed.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "memory.hpp"
#include "stream.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/packed/checkpoint.hpp"
#include "tensorcraft/packed/packed_weight.hpp"

#include <memory>
#include <utility>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

PackedFormat to_packed_format(nb::handle object) {
  const std::string_view name = to_text(object, "format");
  for (const PackedFormat format : {PackedFormat::int4, PackedFormat::mxfp4, PackedFormat::nvfp4})
    if (to_string(format) == name) return format;
  fail(ErrorKind::value, "pack_weight: format must be one of int4, mxfp4, nvfp4; got ", name);
}

// True and False, or text.
ZeroPoints to_zero_points(nb::handle object) {
  if (object.is(nb::handle(Py_False))) return ZeroPoints::none;
  if (object.is(nb::handle(Py_True))) return ZeroPoints::integer;
  if (nb::isinstance<nb::str>(object) && to_text(object, "zero_points") == "float")
    return ZeroPoints::floating;
  fail(ErrorKind::value, "pack_weight: zero_points must be True, False or \"float\"; got ",
       nb::repr(object).c_str());
}

// codes, scales, zeros or none, and the factor of all, of the weight that `make` gives.
template <class Make>
nb::tuple parts_of(const Make& make) {
  std::shared_ptr<const PackedWeight> made;
  {
    const WithoutGil released;
    made = std::make_shared<const PackedWeight>(make());
  }
  const Device device = made->device();
  const StreamRef home = device.is_cuda() ? current_stream(device.index) : StreamRef();
  const auto memory = std::make_shared<Memory>(made, device, home);
  nb::object zeros = nb::none();
  if (made->zeros()) zeros = nb::cast(PyTensor{made->zeros()->view(), memory});
  return nb::make_tuple(PyTensor{made->codes().view(), memory},
                        PyTensor{made->scales().view(), memory}, zeros, made->tensor_scale());
}

nb::tuple pack(nb::handle w, nb::handle format, nb::handle group, nb::handle zero_points) {
  refuse_while_recording("pack_weight");
  const PyTensor from = to_tensor(w);
  const PackWeightOptions options{to_packed_format(format),
                                  group.is_none() ? 0 : to_int64(group, "group"),
                                  to_zero_points(zero_points)};
  if (!group.is_none() && options.group < 1)
    fail(ErrorKind::value, "pack_weight: group must be a multiple of 16, got ", options.group);
  order_now(from);
  return parts_of([&] { return pack_weight(from.view, options); });
}

nb::tuple from_gptq(nb::handle qweight, nb::handle qzeros, nb::handle scales, nb::handle g_idx,
                    nb::handle group, bool zeros_minus_one) {
  refuse_while_recording("pack_weight_from_gptq");
  const PyTensor w = to_tensor(qweight), z = to_tensor(qzeros), s = to_tensor(scales);
  std::optional<PyTensor> order;
  if (!g_idx.is_none()) order = to_tensor(g_idx);
  GptqOptions options{.group = group.is_none() ? 0 : to_int64(group, "group"),
                      .zeros = zeros_minus_one ? GptqZeros::minus_one : GptqZeros::plain};
  if (order) options.g_idx = order->view;
  for (const PyTensor* t : {&w, &z, &s}) order_now(*t);
  if (order) order_now(*order);
  return parts_of([&] { return pack_weight_from_gptq(w.view, z.view, s.view, options); });
}

nb::tuple from_awq(nb::handle qweight, nb::handle qzeros, nb::handle scales, nb::handle group) {
  refuse_while_recording("pack_weight_from_awq");
  const PyTensor w = to_tensor(qweight), z = to_tensor(qzeros), s = to_tensor(scales);
  const int64_t of_group = group.is_none() ? 0 : to_int64(group, "group");
  for (const PyTensor* t : {&w, &z, &s}) order_now(*t);
  return parts_of([&] { return pack_weight_from_awq(w.view, z.view, s.view, of_group); });
}

PyTensor unpack(const PyTensor& codes, const PyTensor& scales, nb::handle zeros,
                double tensor_scale, nb::handle dtype) {
  refuse_while_recording("PackedWeight.unpack");
  const DType type = to_dtype(dtype);
  std::optional<PyTensor> points;
  if (!zeros.is_none()) points = nb::cast<PyTensor>(zeros);
  for (const PyTensor* t : {&codes, &scales}) order_now(*t);
  if (points) order_now(*points);
  const WithoutGil released;
  std::optional<Tensor> kept;
  if (points) kept = copy(points->view);
  const PackedWeight weight(copy(codes.view), copy(scales.view), std::move(kept),
                            float(tensor_scale));
  Tensor whole = unpack_weight(weight, type);
  const StreamRef home = whole.stream();
  return own(std::move(whole), home);
}

}  // namespace

nb::object packed_product(const op::Operator& op, nb::tuple inputs, nb::tuple options,
                          nb::handle out, nb::handle stream, nb::handle variant,
                          nb::handle device) {
  using Found = const op::Operator*;
  static constinit FirstMade<const Found, [] { return new Found(&find_operator("gemm")); }> gemm;
  if (&op != *gemm) return {};
  struct OfPackage {
    nb::object weight, product;
  };
  static const OfPackage* place = nullptr;
  const auto find = [] {
    const nb::module_ module = nb::module_::import_("tensorcraft._packed");
    return OfPackage{module.attr("PackedWeight"), module.attr("product")};
  };
  const OfPackage& package = kept(place, find);
  if (!inputs[1].type().is(package.weight)) return {};
  nb::dict given;
  for (size_t i = 0; i < nb::len(options); ++i) {
    const std::string_view name = op.description().options[i].name;
    given[nb::str(name.data(), name.size())] = options[i];
  }
  return call_python(
      [&] { return package.product(inputs[0], inputs[1], given, out, stream, variant, device); });
}

void register_packed(nb::module_& m) {
  m.def("pack_weight", &pack, "w"_a.none(), "format"_a.none(), "group"_a.none(),
        "zero_points"_a.none(), "What tc.pack_weight calls.");
  m.def("pack_weight_from_gptq", &from_gptq, "qweight"_a.none(), "qzeros"_a.none(),
        "scales"_a.none(), "g_idx"_a.none(), "group"_a.none(), "zeros_minus_one"_a,
        "What tc.pack_weight_from_gptq calls.");
  m.def("pack_weight_from_awq", &from_awq, "qweight"_a.none(), "qzeros"_a.none(), "scales"_a.none(),
        "group"_a.none(), "What tc.pack_weight_from_awq calls.");
  m.def("unpack_weight", &unpack, "codes"_a, "scales"_a, "zeros"_a.none(), "tensor_scale"_a,
        "dtype"_a.none(), "What tc.PackedWeight.unpack calls.");
}

}  // namespace tensorcraft::python
