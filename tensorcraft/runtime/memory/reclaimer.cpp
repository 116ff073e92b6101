// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/reclaimer.hpp"

#include <utility>

namespace tensorcraft::memory {

void Reclaimers::add(std::weak_ptr<Reclaimer> reclaimer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const auto& known) { return known.expired(); });
  all_.push_back(std::move(reclaimer));
}

std::vector<std::shared_ptr<Reclaimer>> Reclaimers::alive() {
  std::vector<std::shared_ptr<Reclaimer>> found;
  const std::lock_guard lock(mutex_);
  for (const auto& known : all_)
    if (auto reclaimer = known.lock()) found.push_back(std::move(reclaimer));
  return found;
}

size_t Reclaimers::reclaim(size_t bytes) {
  size_t given = 0;
  for (const auto& reclaimer : alive()) {
    if (given >= bytes) break;
    given += reclaimer->reclaim(bytes - given);
  }
  return given;
}

}  // namespace tensorcraft::memory
