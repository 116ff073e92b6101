// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/plan.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft::op {

Gpu gpu_of(const DeviceInfo& device) {
  return {.architecture = device.compute_capability,
          .num_sms = device.num_sms,
          .threads_per_sm = device.threads_per_sm,
          .shared_bytes_per_block = int64_t(device.shared_bytes_per_block)};
}

// Copies what is in use: most plans have one step and a few hundred bytes.
Plan& Plan::operator=(const Plan& other) {
  if (this == &other) return *this;
  workspace_bytes = other.workspace_bytes;
  workspace_zeroed = other.workspace_zeroed;
  num_steps_ = other.num_steps_;
  num_bytes_ = other.num_bytes_;
  main_ = other.main_;
  std::copy_n(other.steps_.begin(), num_steps_, steps_.begin());
  std::memmove(bytes_, other.bytes_, num_bytes_);
  return *this;
}

Step& Plan::add(const Step& step) {
  if (num_steps_ == kMaxSteps)
    fail(ErrorKind::internal, "a plan has at most ", kMaxSteps, " steps");
  Step& added = steps_[num_steps_] = step;
  if (num_steps_ > 0) {
    added.params_at = steps_[num_steps_ - 1].params_at;
    added.params_bytes = steps_[num_steps_ - 1].params_bytes;
  }
  ++num_steps_;
  return added;
}

void Plan::insert_preparation(const Step& step) {
  add(step);  // behind the others, which then move past it
  std::rotate(steps_.begin() + std::ptrdiff_t(main_),
              steps_.begin() + std::ptrdiff_t(num_steps_ - 1),
              steps_.begin() + std::ptrdiff_t(num_steps_));
  ++main_;
}

// The last argument may grow in its place; any other is moved behind the last.
std::byte* Plan::reserve(Step& step, size_t bytes) {
  constexpr size_t kAlignment = 64;
  const bool is_shared = std::ranges::count(steps(), step.params_at, &Step::params_at) > 1;
  const bool is_last = step.params_bytes > 0 && step.params_at + step.params_bytes == num_bytes_;
  if (is_shared || !is_last) step.params_at = uint32_t(round_up(num_bytes_, kAlignment));
  if (step.params_at > num_bytes_) std::memset(bytes_ + num_bytes_, 0, step.params_at - num_bytes_);
  step.params_bytes = uint32_t(bytes);
  num_bytes_ = step.params_at + bytes;
  if (num_bytes_ > kMaxBytes)
    fail(ErrorKind::internal, "the arguments of a plan have at most ", kMaxBytes, " bytes");
  return bytes_ + step.params_at;
}

void Plan::set_address(const Step& step, int at, const void* address) {
  std::memcpy(params(step) + at, &address, sizeof(address));
}

}  // namespace tensorcraft::op
