// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/ops/transfer_hicache/problem.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

// A transfer goes window by window. The host gathers the elements of a window into slots of the
// ring, which are copied to scratch memory of the device, where they lie one behind the other; the
// operator's own kernel brings them from there to their tokens. On the way to the host the kernel
// gathers and the host scatters. While a window is copied the next one is gathered.
namespace tensorcraft::kernel::transfer_hicache {
namespace {

// Few enough to fill the ring and a slot more, so that two of them keep the bus busy.
constexpr int64_t kWindowBytes = int64_t(32) << 20;

struct Window {
  int64_t first, count;  // of the tokens of the call
};

// A side in pageable memory, with its tokens where the host can read them.
struct HostSide {
  Side side;
  std::vector<int64_t> tokens;
};
using HostSideRef = std::shared_ptr<const HostSide>;

// By way of the host, as the stream has written them by now.
std::vector<int64_t> read_tokens(const Side& side, int64_t count, StreamRef stream) {
  const int64_t width = side.wide ? 8 : 4, last = (count - 1) * side.index_step;
  const int64_t low = std::min<int64_t>(last, 0) * width;
  std::vector<std::byte> bytes(size_t((std::abs(last) + 1) * width));
  cuda::copy_async(bytes.data(), static_cast<const std::byte*>(side.indices) + low, bytes.size(),
                   stream);
  stream.synchronize();
  std::vector<int64_t> tokens;
  tokens.reserve(size_t(count));
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(integer_at(bytes.data() - low, i * side.index_step, side.wide));
  return tokens;
}

HostSideRef host_side(const Side& side, int64_t count, StreamRef stream, const SideNames& names) {
  auto here = std::make_shared<HostSide>(side, read_tokens(side, count, stream));
  here->side.indices = here->tokens.data();
  here->side.index_step = 1;
  here->side.wide = 1;
  check_tokens(here->side, count, names);
  return here;
}

// Elements one behind the other: keys by layer and token of the window, then values.
Side scratch_side(const Tensor& memory, const Tensor& straight, const Params& p, Window w) {
  auto* const k = memory.data_as<unsigned char>();
  const int64_t layer = w.count * p.element_bytes;
  return {.k = k,
          .v = k + p.layers * layer,
          .indices = straight.data(),
          .index_step = 1,
          .layer = layer,
          .page = p.element_bytes,
          .places = w.count,
          .page_size = 1};
}

// The tokens of a window, of a side whose caches kernels reach.
Side part_of(Side side, Window w) {
  const int64_t width = side.wide ? 8 : 4;
  side.indices = static_cast<const std::byte*>(side.indices) + w.first * side.index_step * width;
  return side;
}

// Calls move(place in a cache, offset among the bytes, size) for the parts of elements that are the
// bytes [at, at + bytes) of a window's scratch memory.
template <class Move>
void each_part(const HostSide& host, const Params& p, Window w, size_t at, size_t bytes,
               const Move& move) {
  int64_t item = int64_t(at) / p.element_bytes, skipped = int64_t(at) % p.element_bytes;
  for (size_t done = 0; done < bytes; ++item, skipped = 0) {
    const int64_t row = item / w.count, token = host.tokens[size_t(w.first + item % w.count)];
    unsigned char* const cache =
        row < p.layers ? keys_of(host.side, row) : values_of(host.side, row - p.layers);
    const size_t size = std::min(size_t(p.element_bytes - skipped), bytes - done);
    move(cache + offset_of(host.side, token) + skipped, done, size);
    done += size;
  }
}

// A transfer that has ended when it goes, since it reads or writes memory of the caller. An
// interrupt ends Transfer::wait(), and not this.
struct Pending {
  Transfer transfer;
  explicit Pending(Transfer begun) : transfer(std::move(begun)) {}
  Pending(const Pending&) = delete;
  ~Pending() {
    transfer.cancel();
    while (!transfer.done()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
};

class Relay {
 public:
  Relay(const op::PageableCall<Problem>& call, HostSideRef dst, HostSideRef src)
      : call_(call),
        p_(call.problem.params),
        dst_(std::move(dst)),
        src_(std::move(src)),
        engine_(TransferEngine::instance(call.device)) {
    const int64_t token_bytes = 2 * p_.layers * p_.element_bytes;
    tokens_ = std::clamp<int64_t>(kWindowBytes / token_bytes, 1, p_.count);
    windows_ = div_ceil(p_.count, tokens_);
    for (size_t i = 0; i < size_t(std::min<int64_t>(windows_, 2)); ++i) {
      if (src_) arriving_[i] = memory(DType::uint8, tokens_ * token_bytes);
      if (dst_) leaving_[i] = memory(DType::uint8, tokens_ * token_bytes);
    }
    count_straight();
  }

  void run() {
    for (int64_t i = 0; i < windows_; ++i) {
      const Window w = window(i);
      const size_t half = size_t(i % 2);
      if (src_) {
        while (int64_t(in_.size()) < std::min(i + 2, windows_)) bring(int64_t(in_.size()));
        in_[size_t(i)].transfer.order_before(call_.stream);
      }
      if (dst_ && i >= 2) out_[size_t(i - 2)].transfer.order_before(call_.stream);
      Problem part = call_.problem;
      part.params.count = w.count;
      part.params.src = src_ ? scratch_side(arriving_[half], straight_, p_, w) : part_of(p_.src, w);
      part.params.dst = dst_ ? scratch_side(leaving_[half], straight_, p_, w) : part_of(p_.dst, w);
      call_.launch(part);
      if (dst_) take(i);
    }
    for (const Pending& one : in_) one.transfer.wait();
    for (const Pending& one : out_) one.transfer.wait();
  }

 private:
  Tensor memory(DType dtype, int64_t size) const {
    return {dtype, Dims{size}, call_.device, call_.stream};
  }
  Window window(int64_t i) const {
    return {i * tokens_, std::min(tokens_, p_.count - i * tokens_)};
  }
  size_t bytes(Window w) const { return size_t(2 * p_.layers * p_.element_bytes * w.count); }

  // The tokens of scratch memory: 0, 1, 2, ...
  void count_straight() {
    std::vector<int32_t> numbers(static_cast<size_t>(tokens_));
    std::iota(numbers.begin(), numbers.end(), 0);
    straight_ = memory(DType::int32, tokens_);
    cuda::copy_async(straight_.data(), numbers.data(), straight_.nbytes(), call_.stream);
    call_.stream.synchronize();
  }
  // Begins to gather a window, once the kernel that reads the same memory has run.
  void bring(int64_t i) {
    const auto gather = [host = src_, p = p_, w = window(i)](void* to, size_t at, size_t size) {
      each_part(*host, p, w, at, size, [&](const unsigned char* place, size_t offset, size_t n) {
        std::memcpy(static_cast<std::byte*>(to) + offset, place, n);
      });
    };
    in_.emplace_back(engine_.submit({.to = arriving_[size_t(i % 2)].data(),
                                     .bytes = bytes(window(i)),
                                     .produce = gather,
                                     .after = {call_.stream}}));
  }
  // Scatters a window, once its kernel has run.
  void take(int64_t i) {
    const auto scatter = [host = dst_, p = p_, w = window(i)](const void* from, size_t at,
                                                              size_t size) {
      each_part(*host, p, w, at, size, [&](unsigned char* place, size_t offset, size_t n) {
        std::memcpy(place, static_cast<const std::byte*>(from) + offset, n);
      });
    };
    out_.emplace_back(engine_.submit({.from = leaving_[size_t(i % 2)].data(),
                                      .bytes = bytes(window(i)),
                                      .consume = scatter,
                                      .direction = transfer::Direction::d2h,
                                      .after = {call_.stream}}));
  }

  const op::PageableCall<Problem>& call_;
  const Params& p_;
  const HostSideRef dst_, src_;  // null: kernels reach that side
  TransferEngine& engine_;
  int64_t tokens_ = 0, windows_ = 0;  // of a window; of the call
  Tensor straight_;
  std::array<Tensor, 2> arriving_, leaving_;  // by turns
  std::deque<Pending> in_, out_;              // last: they end before memory goes
};

void check_places(const op::PageableCall<Problem>& call) {
  const Params& p = call.problem.params;
  const auto refuse = [&](std::string_view name, std::string_view what) {
    fail(ErrorKind::value, call.op, ": ", name, ": ", call.device, " cannot reach ", what,
         " in memory of the host that is not page-locked; make it with tc.memory.pinned(), or move "
         "it with .to(\"",
         call.device, "\")");
  };
  if (call.pageable.test(2)) refuse("idx_dst", "indices");
  if (call.pageable.test(5)) refuse("idx_src", "indices");
  for (const auto& [side, k, what] :
       {std::tuple(&p.dst, size_t(0), kDstCaches), {&p.src, size_t(3), kSrcCaches}}) {
    const bool keys = call.pageable.test(k), values = call.pageable.test(k + 1);
    if ((keys || values) && side->k_layers)
      refuse(join(keys ? "k" : "v", k == 0 ? "_ptr_dst" : "_ptr_src"), "a table of layers");
    if (keys != values)
      fail(ErrorKind::value, call.op, ": ", what,
           " must lie in memory of one kind, and one of them is pageable memory of the host; make "
           "both with tc.memory.pinned(), or neither");
  }
  const Problem& q = call.problem;
  if (q.k_dst_out.data() != q.k_dst.data() || q.v_dst_out.data() != q.v_dst.data())
    fail(ErrorKind::value, call.op,
         ": out cannot be memory of its own if a cache is pageable memory of the host; leave it "
         "out, and k_dst and v_dst are written in place");
}

}  // namespace

void run_pageable(const op::PageableCall<Problem>& call) {
  check_places(call);
  if (call.stream.is_capturing())
    fail(ErrorKind::unsupported, call.op,
         ": pageable memory of the host cannot be moved while a graph is recorded, as the host "
         "moves it; make it with tc.memory.pinned()");
  const Params& p = call.problem.params;
  if (p.count * p.layers * p.element_bytes == 0) return;
  // All tokens are looked at before anything is written.
  const HostSideRef dst = host_side(p.dst, p.count, call.stream, dst_names(call.op)),
                    src = host_side(p.src, p.count, call.stream, src_names(call.op));
  Relay(call, call.pageable.test(0) ? dst : nullptr, call.pageable.test(3) ? src : nullptr).run();
}

}  // namespace tensorcraft::kernel::transfer_hicache
