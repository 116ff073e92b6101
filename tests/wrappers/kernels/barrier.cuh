// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tests/wrappers/kernels/params.h"

// Barriers: what was written before one is there after it, and its phases come as they should.
namespace tensorcraft::test {

inline constexpr int kBarrierThreads = 128, kHandovers = 6, kNamedSyncs = 15;

struct Handover {
  uint32_t words[kBarrierThreads / 2];
};

// Two warps hand words to two others, one buffer for all: one barrier says full, one empty.
TC_DEVICE void bar_handover(const Params& p) {
  constexpr int kHalf = kBarrierThreads / 2, kFull = 1, kEmpty = 15;
  auto& words = static_shared<Handover>().words;
  const int t = int(threadIdx.x) % kHalf;
  const bool produces = threadIdx.x < kHalf;
  for (int i = 0; i < kHandovers; ++i) {
    if (produces) {
      if (i > 0) ptx::bar_sync(kEmpty, kBarrierThreads);
      words[t] = block_in(p)[i * kHalf + t];
      ptx::bar_arrive(kFull, kBarrierThreads);
    } else {
      ptx::bar_sync(kFull, kBarrierThreads);
      block_out(p)[i * kHalf + t] = words[kHalf - 1 - t];
      if (i + 1 < kHandovers) ptx::bar_arrive(kEmpty, kBarrierThreads);
    }
  }
}

struct Halves {
  uint32_t words[2][kBarrierThreads];
};

// Each half of the block meets at seven barriers of its own in turn.
TC_DEVICE void bar_halves(const Params& p) {
  constexpr int kHalf = kBarrierThreads / 2;
  auto& words = static_shared<Halves>().words;
  const int t = int(threadIdx.x), half = t / kHalf;
  const int other = half * kHalf + kHalf - 1 - t % kHalf;
  uint32_t x = block_in(p)[t];
  for (int i = 0; i < kNamedSyncs; ++i) {
    words[i % 2][t] = x;
    ptx::bar_sync(1 + half * 7 + i % 7, kHalf);
    x = words[i % 2][other] * 5 + uint32_t(i);
  }
  block_out(p)[t] = x;
}

// A program of operations at one mbarrier. in: the first count, three words of nothing, kPhaseOps
// pairs of operation and operand, kPhaseBytes bytes that loads copy one after another. out: a word
// an operation, the bytes.
enum class PhaseOp : uint32_t {
  nothing,
  arrive,            // the operand's number of arrivals
  arrive_expect,     // bytes
  expect,            // bytes
  load,              // bytes that the copy engine brings
  wait,              // until the phase of this parity has completed
  test,              // 1 if the phase of parity 0 has, 2 if that of parity 1 has
  initialise_again,  // with this count
};
inline constexpr int kPhaseOps = 64, kPhaseBytes = 1024, kPhaseHead = 4 + 2 * kPhaseOps;

struct PhaseShared {
  alignas(16) uint32_t words[kPhaseBytes / 4];
  uint64_t barrier;
};

TC_DEVICE uint32_t run_phase_op(PhaseShared& s, PhaseOp op, uint32_t x, const uint32_t*& from,
                                uint32_t*& to) {
  if (op == PhaseOp::arrive) ptx::mbarrier_arrive(&s.barrier, x);
  if (op == PhaseOp::arrive_expect) ptx::mbarrier_arrive_expect_tx(&s.barrier, x);
  if (op == PhaseOp::expect) ptx::mbarrier_expect_tx(&s.barrier, x);
  if (op == PhaseOp::load) {
    ptx::cp_async_bulk_load(to, from, x, &s.barrier);
    from += x / 4;
    to += x / 4;
  }
  if (op == PhaseOp::wait)
    while (!ptx::mbarrier_try_wait_parity(&s.barrier, x)) {
    }
  if (op == PhaseOp::initialise_again) {
    ptx::mbarrier_inval(&s.barrier);
    ptx::mbarrier_init(&s.barrier, x);
    ptx::fence_mbarrier_init();
  }
  if (op != PhaseOp::test) return 0;
  return uint32_t(ptx::mbarrier_test_wait_parity(&s.barrier, 0)) |
         uint32_t(ptx::mbarrier_test_wait_parity(&s.barrier, 1)) << 1;
}

TC_DEVICE void mbarrier_phases(const Params& p) {
  if (threadIdx.x != 0) return;
  PhaseShared& s = static_shared<PhaseShared>();
  const uint32_t *in = block_in(p), *from = in + kPhaseHead;
  for (uint32_t& word : s.words) word = 0;
  ptx::fence_proxy_async();
  ptx::mbarrier_init(&s.barrier, in[0]);
  ptx::fence_mbarrier_init();
  uint32_t* to = s.words;
  for (int i = 0; i < kPhaseOps; ++i)
    block_out(p)[i] = run_phase_op(s, PhaseOp(in[4 + 2 * i]), in[5 + 2 * i], from, to);
  for (int i = 0; i < kPhaseBytes / 4; ++i) block_out(p)[kPhaseOps + i] = s.words[i];
}

// A ring of two stages between a producing and a consuming warp, by full and empty barriers.
inline constexpr int kPipeSteps = 9;
struct Pipe {
  uint32_t words[2][32];
  uint64_t full[2], empty[2];
};
TC_DEVICE void mbarrier_pipe(const Params& p) {
  Pipe& pipe = static_shared<Pipe>();
  const uint32_t lane = threadIdx.x % 32;
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_init(&pipe.full[i], 32);
      ptx::mbarrier_init(&pipe.empty[i], 32);
    }
  __syncthreads();
  for (uint32_t step = 0; step < kPipeSteps; ++step) {
    const uint32_t stage = step % 2, parity = step / 2 % 2;
    if (threadIdx.x < 32) {
      ptx::mbarrier_wait_parity(&pipe.empty[stage], parity ^ 1);
      pipe.words[stage][lane] = block_in(p)[step * 32 + lane];
      ptx::mbarrier_arrive(&pipe.full[stage]);
    } else {
      ptx::mbarrier_wait_parity(&pipe.full[stage], parity);
      block_out(p)[step * 32 + lane] = pipe.words[stage][31 - lane];
      ptx::mbarrier_arrive(&pipe.empty[stage]);
    }
  }
}

}  // namespace tensorcraft::test
