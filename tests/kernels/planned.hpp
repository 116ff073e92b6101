// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace tensorcraft::test {

namespace k = tensorcraft::kernel;

inline TensorView on_gpu(const TensorView& t) {
  return {t.data(), t.dtype(), t.shape(), t.strides(), Device::cuda(0)};
}

// The bytes of a struct, those between its fields as 0.
template <class T>
std::string bytes_of(const void* at) {
  T value;
  std::memcpy(static_cast<void*>(&value), at, sizeof(T));
  __builtin_clear_padding(&value);
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// A case's call as if its memory lay on a GPU, and what the library plans for it.
class Planned {
 public:
  explicit Planned(const Case& c)
      : op_(*c.op), run_(c, Device::cpu()), device_(device_info_of_arch("sm_90a")) {
    const op::Arguments host = run_.arguments({});
    for (const auto& t : host.inputs) in_.push_back(on_gpu(t));
    for (const auto& t : run_.outputs()) out_.push_back(on_gpu(t));
    options_.assign(host.options.begin(), host.options.end());
    for (auto& v : options_)
      if (const auto* t = std::get_if<TensorView>(&v)) v = on_gpu(*t);
    variants_ = op_.explain(out_, {in_, options_, {}, std::nullopt}, device_).variants;
  }

  const TensorView& in(size_t i = 0) const { return in_[i]; }
  const TensorView& out(size_t i = 0) const { return out_[i]; }
  size_t num_outputs() const { return out_.size(); }
  int num_sms() const { return device_.num_sms; }
  size_t shared_bytes() const { return device_.shared_bytes_per_block; }
  int element_bytes() const { return int(dtype_bytes(in_[0].dtype())); }
  bool is_dense() const {
    const auto dense = [](const TensorView& t) { return t.is_contiguous(); };
    for (const auto& v : options_)
      if (const auto* t = std::get_if<TensorView>(&v); t && !dense(*t)) return false;
    return std::all_of(in_.begin(), in_.end(), dense) &&
           std::all_of(out_.begin(), out_.end(), dense);
  }

  template <class T>
  T option(std::string_view name, T otherwise) const {
    const auto& known = op_.description().options;
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].name != name) continue;
      if (const auto* v = std::get_if<T>(&options_[i])) return *v;
      if constexpr (std::is_same_v<T, double>)  // a case may write a number without a point
        if (const auto* v = std::get_if<int64_t>(&options_[i])) return double(*v);
    }
    return otherwise;
  }
  // The address of an optional input, null where it is not given.
  void* address(std::string_view name) const {
    const TensorView none(nullptr, DType::float32, {0});
    return option<TensorView>(name, none).data();
  }

  // Bytes of an element of an optional input, those of the first input's where it is not given.
  int element_bytes(std::string_view name) const {
    return int(dtype_bytes(option<TensorView>(name, in_[0]).dtype()));
  }

  // The outputs of a case one behind another, null for one that it does not ask for.
  class Outputs {
   public:
    explicit Outputs(const Planned& c) : c_(c) {}
    void* next(bool is_asked_for = true) { return is_asked_for ? c_.out(next_++).data() : nullptr; }

   private:
    const Planned& c_;
    size_t next_ = 0;
  };

  // The library's row of this name declines for the same reason, or plans the same; `finish` is of
  // the second kernel, without blocks where there is none.
  template <class Params, class Config>
  void expect(std::string_view variant, std::string_view problem,
              const op::LaunchPlan<Config>& launch, const Params& params,
              const op::LaunchPlan<Config>& finish = {}) const {
    for (const auto& row : variants_) {
      if (row.variant.name != variant) continue;
      EXPECT_EQ(row.reason, problem) << variant;
      if (!row.plan || !problem.empty()) return;
      expect_kernel(variant, row.plan->kernel, row.plan->launch, launch);
      EXPECT_EQ(row.plan->finish.rung != nullptr, finish.blocks > 0) << variant;
      if (row.plan->finish.rung && finish.blocks > 0)
        expect_kernel(variant, row.plan->finish, row.plan->finish_launch, finish);
      ASSERT_EQ(row.plan->params_bytes, sizeof(Params));
      EXPECT_EQ(bytes_of<Params>(row.plan->params), bytes_of<Params>(&params)) << variant;
      return;
    }
    ADD_FAILURE() << "the library has no row " << variant;
  }

 private:
  template <class Config>
  static void expect_kernel(std::string_view variant, const jit::KernelKey& kernel,
                            const LaunchConfig& start, const op::LaunchPlan<Config>& launch) {
    EXPECT_EQ(start.grid, (Dim3{uint32_t(launch.blocks)})) << variant;
    EXPECT_EQ(start.block, (Dim3{uint32_t(launch.config.threads)})) << variant;
    EXPECT_EQ(int(start.shared_bytes), launch.shared_bytes) << variant;
    EXPECT_EQ(kernel.min_blocks, launch.min_blocks) << variant;
    EXPECT_EQ(std::memcmp(kernel.config.data(), &launch.config, sizeof(Config)), 0)
        << variant << ": Config";
  }

  const op::Operator& op_;
  CaseRun run_;
  DeviceInfo device_;
  std::vector<TensorView> in_, out_;
  std::vector<op::Value> options_;
  std::vector<op::Considered> variants_;
};

// Compares what launcher and library plan for a case; false where a launcher has no such call.
// Those of operators on rows are in planned_rows.cpp.
bool softmax(const Planned& c);
bool log_softmax(const Planned& c);
bool logsumexp(const Planned& c);
bool cross_entropy(const Planned& c);
bool cumulative_sum(const Planned& c);
bool topk(const Planned& c);
bool l2_normalize(const Planned& c);
bool rms_norm(const Planned& c);
bool layer_norm(const Planned& c);
bool batch_norm(const Planned& c);
bool group_norm(const Planned& c);

}  // namespace tensorcraft::test
