// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/shortage.hpp"

#include <atomic>

namespace tensorcraft::cuda {
namespace {

std::atomic<bool (*)(int) noexcept> notice_of_shortage{nullptr};

}  // namespace

void on_shortage(bool (*notice)(int device) noexcept) { notice_of_shortage = notice; }

bool relieve_shortage(int device) noexcept {
  const auto notice = notice_of_shortage.load();
  return notice && notice(device);
}

}  // namespace tensorcraft::cuda
