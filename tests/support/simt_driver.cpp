// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt_driver.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/attention/params.h"
#include "tensorcraft/ops/cross_entropy/cross_entropy_simt.hpp"
#include "tensorcraft/ops/cross_entropy/params.h"
#include "tensorcraft/ops/elementwise/expression_table.hpp"
#include "tensorcraft/ops/elementwise/params.h"
#include "tensorcraft/ops/embedding/params.h"
#include "tensorcraft/ops/gather/params.h"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/ops/l2_normalize/params.h"
#include "tensorcraft/ops/layer_norm/params.h"
#include "tensorcraft/ops/masked_mean/params.h"
#include "tensorcraft/ops/pad/params.h"
#include "tensorcraft/ops/permute/params.h"
#include "tensorcraft/ops/rms_norm/params.h"
#include "tensorcraft/ops/scatter/params.h"
#include "tensorcraft/ops/softmax/params.h"
#include "tensorcraft/simt/instance.hpp"

#include <cstdio>

namespace tensorcraft::test {
namespace {

using Strings = std::vector<std::string>;

struct ParamsType {
  std::string_view name;
  size_t bytes;
};
#define TC_TEST_PARAMS(op) {"tensorcraft::kernel::" #op "::Params", sizeof(kernel::op::Params)}
constexpr ParamsType kParams[] = {TC_TEST_PARAMS(attention),
                                  TC_TEST_PARAMS(cross_entropy),
                                  TC_TEST_PARAMS(elementwise),
                                  TC_TEST_PARAMS(embedding),
                                  TC_TEST_PARAMS(gather),
                                  TC_TEST_PARAMS(gemm),
                                  TC_TEST_PARAMS(l2_normalize),
                                  TC_TEST_PARAMS(layer_norm),
                                  TC_TEST_PARAMS(masked_mean),
                                  TC_TEST_PARAMS(pad),
                                  TC_TEST_PARAMS(permute),
                                  TC_TEST_PARAMS(rms_norm),
                                  TC_TEST_PARAMS(scatter),
                                  TC_TEST_PARAMS(softmax),
                                  {"tensorcraft::kernel::elementwise::InterpretedParams",
                                   sizeof(kernel::elementwise::InterpretedParams)},
                                  {"tensorcraft::kernel::cross_entropy::ReduceParams",
                                   sizeof(kernel::cross_entropy::ReduceParams)}};
#undef TC_TEST_PARAMS

// The second launch of a mean, which no table lists.
const jit::Rung kReduceLosses{
    "", "tensorcraft::kernel::cross_entropy::reduce",
    "tensorcraft::kernel::cross_entropy::ReduceParams",
    [](const void* config) {
      const auto& c = *static_cast<const kernel::cross_entropy::ReduceConfig*>(config);
      return join("{.threads = ", c.threads, "}");
    },
    kernel::cross_entropy::reduce_instances};

// The part of `text` between two marks, from the first `open` on.
std::string between(std::string_view text, std::string_view open, std::string_view close) {
  const size_t begin = text.find(open);
  if (begin == text.npos) return {};
  const size_t end = text.find(close, begin + open.size());
  return std::string(text.substr(begin + open.size(), end - begin - open.size()));
}

Strings split(std::string_view text) {
  Strings parts;
  while (!text.empty()) {
    const size_t comma = text.find(", ");
    parts.emplace_back(text.substr(0, comma));
    text = comma == text.npos ? std::string_view() : text.substr(comma + 2);
  }
  return parts;
}

// What an entry calls: "ns::rung<float, bf16, ns::Config{.block_m = 64, .block_n = 32}>(p);"
struct EntryCall {
  std::string params, function;
  Strings types, fields;
};

EntryCall parse(std::string_view image) {
  const size_t end = image.rfind("(p);"), begin = image.rfind("\n  ", end) + 3;
  const std::string call(image.substr(begin, end - begin));
  const std::string arguments = between(call, "<", ">");
  const size_t config = std::min(arguments.find("tensorcraft::kernel::"), arguments.size());
  // An instance takes whole Params, also where the entry is told by the Config which part it needs.
  const std::string params = between(image, "__grid_constant__ ", " p)");
  const std::string whole = between(params, "ParamsOf<", ",");
  return {.params = whole.empty() ? params : whole,
          .function = call.substr(0, call.find('<')),
          .types = split(arguments.substr(0, config)),
          .fields = split(between(arguments.substr(config), "{", "}"))};
}

bool has_types(const simt::Instance& one, const Strings& types) {
  if (size_t(one.num_types) != types.size()) return false;
  for (size_t i = 0; i < types.size(); ++i)
    if (jit::device_type(one.types[i]) != types[i]) return false;
  return true;
}

// A Config has fields of four bytes, which its text lists in their order.
bool serves(const simt::Instance& one, const jit::Rung& rung, const Strings& fields) {
  const Strings own = split(between(rung.config_text(one.config.data()), "{", "}"));
  if (own.size() != fields.size()) return false;
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != fields[i] && !one.any[4 * i]) return false;
  return true;
}

// An operator on small tensors of a dtype, which every rung takes that takes the dtype.
void add_rungs(std::map<std::string_view, const jit::Rung*>& rungs, const op::Operator& op,
               DType dtype) {
  alignas(64) static char memory[64];
  const auto tensor = [&](DType type, const Dims& shape) {
    return TensorView(memory, type, shape, Device::cuda());
  };
  const std::string_view name = op.description().name;
  if (name == "elementwise" || name == "clip") return;  // their rungs are those of abs
  std::vector<TensorView> inputs(op.description().inputs.size(), tensor(dtype, {64, 64}));
  if (name == "cross_entropy") inputs[1] = tensor(DType::int64, {64});
  if (name == "where") inputs[0] = tensor(DType::bool_, {64, 64});
  if (name == "embedding") inputs[0] = tensor(DType::int32, {64});
  if (name == "attention")
    for (TensorView& input : inputs) input = tensor(dtype, {1, 1, 64, 32});
  if (name == "masked_mean") inputs = {tensor(dtype, {2, 8, 64}), tensor(DType::int32, {2})};
  std::vector<op::Value> none(op.description().options.size());
  const op::Arguments arguments{inputs, none};
  std::vector<TensorView> outputs;
  for (const auto& spec : op.infer(arguments)) outputs.push_back(tensor(spec.dtype, spec.shape));
  for (const auto& row : op.explain(outputs, arguments, device_info_of_arch("sm_90a")).variants)
    if (row.plan) rungs[row.plan->kernel.rung->function] = row.plan->kernel.rung;
}

// Rungs by the name of their function.
const jit::Rung* find_rung(const std::string& function) {
  static const auto* const rungs = [] {
    auto* found = new std::map<std::string_view, const jit::Rung*>;
    for (const op::Operator* op : operators())
      for (const DType dtype : {DType::float32, DType::bfloat16}) {
        try {
          add_rungs(*found, *op, dtype);
        } catch (const Error&) {  // it needs options, and no model of these tests has it
        }
      }
    (*found)[kReduceLosses.function] = &kReduceLosses;
    return found;
  }();
  const auto found = rungs->find(function);
  return found == rungs->end() ? nullptr : found->second;
}

simt::Body find_body(const EntryCall& entry) {
  const jit::Rung* const rung = find_rung(entry.function);
  if (!rung || !rung->simt_instances) return nullptr;
  for (const simt::Instance& one : rung->simt_instances())
    if (has_types(one, entry.types) && serves(one, *rung, entry.fields)) return one.body;
  return nullptr;
}

Index3 index3(const Dim3& d) { return {d.x, d.y, d.z}; }

// Text that an expression was made into: its steps, interpreted.
FakeKernel expression_kernel(std::string_view image) {
  namespace e = kernel::elementwise;
  const e::Program* const program = e::program_of_header(between(image, "#include \"", "\""));
  const simt::Body body =
      find_rung("tensorcraft::kernel::elementwise::interpreted")->simt_instances()[0].body;
  const auto run = [program, body](const FakeLaunch&, const void* bytes) {
    const auto& params = *static_cast<const e::ExpressionParams*>(bytes);
    const e::InterpretedParams all = e::interpreted_params(*program, params);
    const auto blocks = uint32_t(div_ceil(params.size, int64_t(e::ExpressionConfig{}.threads)));
    simt::launch({.name = "expression",
                  .grid = {blocks, 1, 1},
                  .block = {uint32_t(e::ExpressionConfig{}.threads), 1, 1},
                  .cluster = {1, 1, 1},
                  .shared_bytes = 0},
                 body, &all);
  };
  return {run, sizeof(e::ExpressionParams)};
}

FakeKernel make_kernel(const std::string& text) {
  const EntryCall entry = parse(text);
  if (entry.params.ends_with("ExpressionParams")) return expression_kernel(text);
  const simt::Body body = find_body(entry);
  const auto* const params = std::ranges::find(kParams, entry.params, &ParamsType::name);
  if (!body || params == std::end(kParams)) {
    std::fprintf(stderr, "no SIMT instance for %s\n", text.c_str());
    return {};
  }
  const auto run = [name = entry.function, body](const FakeLaunch& launch, const void* bytes) {
    simt::launch({.name = name,
                  .grid = index3(launch.grid),
                  .block = index3(launch.block),
                  .cluster = index3(launch.cluster),
                  .shared_bytes = launch.shared_bytes},
                 body, bytes);
  };
  return {run, params->bytes};
}

}  // namespace

FakeKernel simt_kernel(const char* image) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<std::string, FakeKernel>;
  const std::string text(image);
  const std::lock_guard lock(*mutex);
  const auto found = known->find(text);
  return found != known->end() ? found->second : (*known)[text] = make_kernel(text);
}

}  // namespace tensorcraft::test
