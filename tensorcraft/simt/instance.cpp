// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/instance.hpp"

#include <algorithm>
#include <atomic>

namespace tensorcraft::simt {
namespace {

// The newest first. Static objects register before main() and when a library is loaded.
constinit std::atomic<KnownInstances*> known{nullptr};

}  // namespace

KnownInstances::KnownInstances(FindInstance find) : find_(find), next_(known) {
  while (!known.compare_exchange_weak(next_, this)) {
  }
}

KnownInstances::~KnownInstances() {
  KnownInstances* newest = this;
  if (known.compare_exchange_strong(newest, next_)) return;
  for (KnownInstances* one = newest; one; one = one->next_)
    if (one->next_ == this) one->next_ = next_;
}

const Instance* find_in(std::span<const Instance> list, const Wanted& wanted) {
  for (const Instance& one :
       std::ranges::equal_range(list, wanted.function, {}, &Instance::function))
    if (one.config == wanted.config &&
        std::equal(wanted.types.begin(), wanted.types.end(), one.types.begin(),
                   one.types.begin() + one.num_types))
      return &one;
  return nullptr;
}

const Instance* find_instance(const Wanted& wanted) {
  for (const KnownInstances* one = known; one; one = one->next_)
    if (const Instance* const found = one->find_(wanted)) return found;
  return nullptr;
}

}  // namespace tensorcraft::simt
