// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/definition.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

// Compares what a launcher of kernels/ makes of raw pointers with what the library plans.
namespace tensorcraft::test {

// A tensor along one axis: [outer, size, inner].
struct Split {
  int64_t outer = 1, size = 1, inner = 1;
};
inline Split split_at(const TensorView& x, int64_t axis) {
  Split s;
  if (axis < 0) axis += x.rank();
  for (int i = 0; i < x.rank(); ++i)
    (i < axis ? s.outer : i > axis ? s.inner : s.size) *= x.shape(i);
  return s;
}

// A case as a call of raw pointers, and what the library says of it on an H100.
class LauncherCall {
 public:
  explicit LauncherCall(const Case& c)
      : op_(*c.op), device_(device_info_of_arch("sm_90a")), call_(c, device_.device) {
    variants_ = op_.explain(call_.outputs, call_.arguments(), device_).variants;
  }

  // The operator's name, and its place among some.
  std::string_view name() const { return op_.description().name; }
  int name_among(std::initializer_list<std::string_view> names) const {
    return int(std::ranges::find(names, name()) - names.begin());
  }
  // Do users of nvcc have a launcher of the operator's folder?
  bool has_launcher() const {
    constexpr std::string_view kFolders = "tensorcraft/ops/";
    for (const op::Considered& variant : variants_) {
      if (!variant.plan) continue;
      // The library runs an expression, by other kernels than a launcher.
      if (variant.variant.name == "fused" || variant.variant.name == "strided") return false;
      const std::string header(variant.plan->first().kernel.rung->header);
      const std::string folder =
          header.substr(kFolders.size(), header.rfind('/') - kFolders.size());
      return std::filesystem::exists(TENSORCRAFT_SOURCE "/tensorcraft/kernels/" + folder + ".cuh");
    }
    return false;
  }
  const TensorView& in(size_t i = 0) const { return call_.inputs[i]; }
  size_t num_inputs() const { return call_.inputs.size(); }
  const TensorView& out() const { return call_.outputs[0]; }
  // Bytes of an element of the first input.
  int element_bytes() const { return int(dtype_bytes(in().dtype())); }

  // Are all arrays without gaps, as launchers take them, and with elements? The strides of nothing
  // say nothing, and differ.
  bool is_dense() const {
    const auto dense = [](const TensorView& t) { return t.is_contiguous() && t.size() > 0; };
    for (const op::Value& v : call_.options)
      if (const auto* t = std::get_if<TensorView>(&v); t && !dense(*t)) return false;
    return std::ranges::all_of(call_.inputs, dense) && std::ranges::all_of(call_.outputs, dense);
  }

  // The address of an output; null if the case does not ask for it.
  template <class T = void>
  T* output(std::string_view name) const {
    for (size_t i = 0; i < call_.specs.size(); ++i)
      if (call_.specs[i].name == name) return call_.outputs[i].data_as<T>();
    return nullptr;
  }

  // An option of the case; null if it is not given, or is of another type.
  template <class T>
  const T* given(std::string_view name) const {
    const auto* parameter = find(name);
    return parameter ? std::get_if<T>(&call_.options[size_t(parameter - &options()[0])]) : nullptr;
  }
  template <class T>
  T option(std::string_view name, T otherwise) const {
    const T* value = given<T>(name);
    return value ? *value : otherwise;
  }
  // A case may write a number without a point.
  float number(std::string_view name, double otherwise) const {
    const auto* integer = given<int64_t>(name);
    return float(integer ? double(*integer) : option(name, otherwise));
  }
  template <class Enum>
  Enum choice(std::string_view name, Enum otherwise) const {
    const auto* word = given<std::string_view>(name);
    if (!word) return otherwise;
    const auto& words = find(name)->choices;
    return Enum(std::ranges::find(words, *word) - words.begin());
  }
  // The address of an optional input; null if it is not given.
  template <class T = void>
  T* address(std::string_view name) const {
    const auto* t = given<TensorView>(name);
    return t ? t->data_as<T>() : nullptr;
  }
  // Bytes of an element of the first of these optional inputs that is given, else of the first
  // input.
  int element_bytes(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
      if (const auto* t = given<TensorView>(name)) return int(dtype_bytes(t->dtype()));
    return element_bytes();
  }

  // Each of the library's variants refuses or prefers as the rung of its name does for a launcher's
  // Params and Given, or starts the same kernel with the same bytes. `second` says, from Params
  // that the rung adapted, how a second kernel is started, if there is one.
  template <class Params, class Given, class Config, size_t n, class Second>
  void expect_rungs(const op::Rung<Params, Given, Config> (&rungs)[n], const Params& params,
                    const Given& given, const Second& second) const {
    const op::Gpu gpu = op::gpu_of(device_);
    for (const op::Considered& variant : variants_) {
      SCOPED_TRACE(variant.variant.name);
      const auto* rung =
          std::ranges::find(rungs, variant.variant.name, &op::Rung<Params, Given, Config>::name);
      ASSERT_NE(rung, std::end(rungs)) << "the launcher's ladder has no such rung";
      const op::Choice<Config> choice = rung->choose(params, given, gpu);
      EXPECT_EQ(variant.reason, choice.refusal.empty() ? choice.preference : choice.refusal);
      ASSERT_EQ(variant.accepted, choice.refusal.empty());
      if (!variant.accepted) continue;
      Params own = params;
      if (rung->adapt) rung->adapt(own, given, gpu);
      const op::Plan& plan = *variant.plan;
      if (&plan.main() != &plan.first()) continue;  // operands are prepared: no launcher does that
      expect_start(plan.main(), choice.start);
      expect_bytes(plan, plan.main(), own);
      const auto further = second(own);
      ASSERT_EQ(plan.steps().size(), further ? 2u : 1u);
      if (further) expect_start(plan.steps()[1], *further);
    }
  }
  template <class Params, class Given, class Config, size_t n>
  void expect_rungs(const op::Rung<Params, Given, Config> (&rungs)[n], const Params& params,
                    const Given& given) const {
    expect_rungs(rungs, params, given,
                 [](const Params&) { return std::optional<op::Start<Config>>(); });
  }

  // The argument of the main step of each variant begins with these bytes.
  template <class Params>
  void expect_argument(const Params& params) const {
    for (const op::Considered& variant : variants_) {
      if (!variant.accepted) continue;
      SCOPED_TRACE(variant.variant.name);
      expect_bytes(*variant.plan, variant.plan->main(), params);
    }
  }

 private:
  const std::vector<op::Parameter>& options() const { return op_.description().options; }
  const op::Parameter* find(std::string_view name) const {
    const auto at = std::ranges::find(options(), name, &op::Parameter::name);
    return at == options().end() ? nullptr : &*at;
  }

  template <class Config>
  void expect_start(const op::Step& step, op::Start<Config> start) const {
    start.min_blocks = op::blocks_with_room(start.min_blocks, start.config.threads,
                                            op::gpu_of(device_).threads_per_sm);
    const op::Step own = op::make_step(*step.kernel.rung, {}, start);
    EXPECT_EQ(op::config_text(step), op::config_text(own));
    EXPECT_EQ(step.kernel.min_blocks, own.kernel.min_blocks);
    EXPECT_EQ(step.launch.grid, own.launch.grid);
    EXPECT_EQ(step.launch.cluster, own.launch.cluster);
    EXPECT_EQ(step.launch.shared_bytes, own.launch.shared_bytes);
    EXPECT_EQ(step.launch, own.launch);
  }

  // The argument of a step begins with these bytes; a tensor map may follow.
  template <class Params>
  static void expect_bytes(const op::Plan& plan, const op::Step& step, Params params) {
    op::clear_padding(params);
    std::array<unsigned char, sizeof(Params)> own, planned;
    ASSERT_GE(step.params_bytes, sizeof(Params));
    std::memcpy(own.data(), &params, sizeof(Params));
    std::memcpy(planned.data(), plan.params(step), sizeof(Params));
    const auto differs = std::ranges::mismatch(own, planned).in1;
    EXPECT_EQ(size_t(differs - own.begin()), sizeof(Params)) << "is where Params begin to differ";
  }

  const op::Operator& op_;
  DeviceInfo device_;
  ImaginedCall call_;
  std::vector<op::Considered> variants_;
};

}  // namespace tensorcraft::test
