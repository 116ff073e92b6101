// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt_driver.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/op/launch/simt.hpp"
#include "tensorcraft/ops/elementwise/problem.hpp"
#include "tensorcraft/simt/instance.hpp"
#include "tests/support/cases.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tensorcraft::test {
namespace {

using Strings = std::vector<std::string>;

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

// Holds what an entry calls: "rung<float, bf16, kConfig>(p);" under "kConfig = ns::Config{.block_m
// = 64};"
struct EntryCall {
  std::string function;
  Strings types, fields;
};

EntryCall parse(std::string_view image) {
  const size_t end = image.rfind("(p);"), begin = image.rfind("\n  ", end) + 3;
  const std::string call(image.substr(begin, end - begin));
  Strings types = split(between(call, "<", ">"));
  if (!types.empty() && types.back() == "kConfig") types.pop_back();
  return {.function = call.substr(0, call.find('<')),
          .types = types,
          .fields = split(between(image, "// Configuration: ", "\n"))};
}

DType dtype_of(std::string_view device_type) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (jit::device_type(DType(i)) == device_type) return DType(i);
  fail(ErrorKind::internal, "no dtype is ", device_type, " in device text");
}

// "layout = row_major" as the number in a Config.
int32_t value_of(const ConfigField& field, const std::string& text) {
  const std::string value = text.substr(text.find(" = ") + 3);
  if (field.values.empty()) return std::stoi(value);
  return int32_t(std::ranges::find(field.values, value) - field.values.begin());
}

using KnownRungs = std::map<std::string, op::Step>;

// A step of each rung that takes a call.
void add_rungs(KnownRungs& rungs, const Case& call) try {
  for (const auto& row : explain_case(call, device_info_of_arch("sm_90a")).variants)
    if (row.plan)
      for (const op::Step& step : row.plan->steps()) rungs[step.kernel.rung->function] = step;
} catch (const Error&) {
  // It has to have an option, or its dtype is another.
}

// By the name of its function: each rung that takes the valid call of its operator, with or without
// the options.
const op::Step* find_rung(const std::string& function) {
  static const auto* const rungs = [] {
    auto* found = new KnownRungs;
    for (const DType dtype : {DType::float32, DType::bfloat16})
      for (Case& call : valid_calls(dtype, 64)) {
        add_rungs(*found, call);
        std::ranges::fill(call.options, nullptr);
        std::ranges::fill(call.tensors, std::nullopt);
        add_rungs(*found, call);
      }
    return found;
  }();
  const auto found = rungs->find(function);
  return found == rungs->end() ? nullptr : &found->second;
}

// The kernel of an entry, whose rung is that of `step`.
jit::KernelKey key_of(const EntryCall& entry, const op::Step& step) {
  jit::KernelKey key = step.kernel;
  key.num_types = int32_t(entry.types.size());
  key.types = {};
  std::ranges::transform(entry.types, key.types.begin(), dtype_of);
  const auto fields = key.rung->fields;
  for (size_t i = 0; i < fields.size(); ++i) {  // a Config has fields of four bytes
    const int32_t value = value_of(fields[i], entry.fields.at(i));
    std::memcpy(&key.config[i * sizeof(value)], &value, sizeof(value));
  }
  return key;
}

Index3 index3(const Dim3& d) { return {d.x, d.y, d.z}; }

namespace e = kernel::elementwise;

// Text that an expression was made into: its steps, interpreted.
FakeKernel expression_kernel(const e::Program* program) {
  const op::Step* const interpreted =
      find_rung("tensorcraft::kernel::elementwise::Interpreted::run");
  const simt::Body body = op::simt_instance(interpreted->kernel)->body;
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
  if (const auto* made_from = e::program_of_header(between(text, "#include \"", "\"")))
    return expression_kernel(made_from);
  const op::Step* const step = find_rung(entry.function);
  if (!step) {
    std::fprintf(stderr, "no operator has the rung of %s\n", text.c_str());
    return {};
  }
  const jit::KernelKey key = key_of(entry, *step);
  const auto* const ahead = op::simt_instance(key);
  const auto loaded = ahead ? nullptr : jit::host_kernel(key);
  const auto run = [name = entry.function, loaded, body = ahead ? ahead->body : loaded->body](
                       const FakeLaunch& launch, const void* bytes) {
    simt::launch({.name = name,
                  .grid = index3(launch.grid),
                  .block = index3(launch.block),
                  .cluster = index3(launch.cluster),
                  .shared_bytes = launch.shared_bytes},
                 body, bytes);
  };
  return {run, step->params_bytes};
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
