// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/reclaimer.hpp"

#include <algorithm>
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

// The one that is asked gives until another has what was used before, so that all of them drop in
// one order.
size_t Reclaimers::reclaim(size_t bytes) {
  struct Asked {
    std::shared_ptr<Reclaimer> reclaimer;
    Reclaimer::LastUse oldest;
  };
  std::vector<Asked> all;
  for (auto& reclaimer : alive()) {
    const auto oldest = reclaimer->least_recent_use();
    all.push_back({std::move(reclaimer), oldest});
  }
  size_t given = 0;
  while (given < bytes && !all.empty()) {
    const auto first = std::ranges::min_element(all, {}, &Asked::oldest);
    auto until = Reclaimer::LastUse::max();
    for (const Asked& other : all)
      if (&other != &*first) until = std::min(until, other.oldest);
    const size_t more = first->reclaimer->reclaim(bytes - given, until);
    given += more;
    const auto oldest = first->reclaimer->least_recent_use();
    // One that gave nothing may hold more all the same: what it told of was used since.
    if (all.size() == 1 || (more == 0 && oldest == first->oldest))
      all.erase(first);
    else
      first->oldest = oldest;
  }
  return given;
}

}  // namespace tensorcraft::memory
