// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tensorcraft/runtime/status/status.hpp"

#include <string>

namespace tensorcraft::memory {

// An allocator as `tensorcraft top` shows it. One that keeps no memory has no quota.
inline status::Item status_item(const char* kind, std::string name,
                                const AllocatorStatistics& now) {
  status::Item item{kind,
                    std::move(name),
                    {{"used_bytes", double(now.used)},
                     {"peak_bytes", double(now.peak_used)},
                     {"blocks", double(now.live_blocks)}}};
  if (now.quota > 0)
    item.numbers.insert(item.numbers.end(), {{"cached_bytes", double(now.cached)},
                                             {"quota_bytes", double(now.quota)},
                                             {"evicted_bytes", double(now.evicted_bytes)}});
  return item;
}

}  // namespace tensorcraft::memory
