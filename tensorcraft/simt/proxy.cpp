// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/async.hpp"

#include <cstring>

// Ordinary stores are not seen as they happen, so a fence copies all of shared memory: what differs
// from the copy later was written since.
namespace tensorcraft::simt {

void ProxyViews::begin() {
  for (View& v : views_) v.exists = false;
}

// Without a fence yet, the async proxy knows memory as the block found it.
ProxyViews::View& ProxyViews::view(Block& block) {
  View& v = views_[block.rank];
  if (!v.exists) {
    v.bytes.assign(Cluster::current()->window_bytes(), std::byte{0xff});
    v.exists = true;
  }
  return v;
}

void ProxyViews::fence(Block& block) {
  View& v = view(block);
  Cluster::current()->each_shared_piece([&](size_t offset, size_t bytes) {
    std::memcpy(v.bytes.data() + offset, block.shared + offset, bytes);
  });
}

void ProxyViews::write(Block& block, const std::byte* at, size_t bytes) {
  std::memcpy(view(block).bytes.data() + (at - block.shared), at, bytes);
}

void ProxyViews::check(Block& block, const std::byte* at, size_t bytes, const Issue& issue) {
  const std::byte* known = view(block).bytes.data() + (at - block.shared);
  if (std::memcmp(known, at, bytes) == 0) return;
  size_t i = 0;
  while (known[i] == at[i]) ++i;
  issue.fault(join("reads byte ", at + i - block.shared,
                   " of shared memory, which a thread wrote without a fence.proxy.async after it"));
}

void fence_proxy_async() {
  Async& a = async();
  Thread& self = Cluster::current()->self();
  a.views.fence(*self.block);
  a.barriers.fence(self);
  if (Shadow* s = a.cluster.shadow()) s->fence_proxy();
}

void fence_mbarrier_init() { async().barriers.fence(Cluster::current()->self()); }

}  // namespace tensorcraft::simt
