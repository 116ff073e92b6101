// SPDX-License-Identifier: Apache-2.0
// Faults of ordinary code: barriers, warps, shared memory.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tests/simt/faults/fault.hpp"

namespace tensorcraft::test {
namespace {

struct Tile {
  float values[64];
};

// A tile in shared memory, read by other threads than wrote it.
void missing_barrier(const FaultParams& p, bool fault) {
  Tile& tile = static_shared<Tile>();
  tile.values[threadIdx.x] = p.in[threadIdx.x];
  if (!fault) __syncthreads();
  p.out[threadIdx.x] = tile.values[63 - threadIdx.x];
}

// The barrier at the end of the loop over tiles.
void missing_second_barrier(const FaultParams& p, bool fault) {
  Tile& tile = static_shared<Tile>();
  float sum = 0;
  for (int step = 0; step < 3; ++step) {
    tile.values[threadIdx.x] = p.in[step * 64 + threadIdx.x];
    __syncthreads();
    sum += tile.values[63 - threadIdx.x];
    if (!fault) __syncthreads();
  }
  p.out[threadIdx.x] = sum;
}

// The next tile goes into the stage that is read, not into the other.
void prefetch_into_read_stage(const FaultParams& p, bool fault) {
  struct Stages {
    float values[2][64];
  };
  Stages& s = static_shared<Stages>();
  s.values[0][threadIdx.x] = p.in[threadIdx.x];
  __syncthreads();
  float sum = 0;
  for (int step = 0; step < 4; ++step) {
    const int stage = step % 2;
    s.values[fault ? stage : stage ^ 1][threadIdx.x] = p.in[(step + 1) * 64 + threadIdx.x];
    sum += s.values[stage][63 - threadIdx.x];
    __syncthreads();
  }
  p.out[threadIdx.x] = sum;
}

void off_by_one_tail(const FaultParams& p, bool fault) {
  for (int i = int(threadIdx.x); i < kFaultValues + int(fault); i += int(blockDim.x))
    p.out[i] = 2 * p.in[i < kFaultValues ? i : 0];
}

void off_by_one_shared(const FaultParams& p, bool fault) {
  Tile& tile = static_shared<Tile>();
  float* const values = tile.values;
  for (int i = int(threadIdx.x); i < 64 + int(fault); i += 32) values[i] = p.in[i];
  __syncthreads();
  p.out[threadIdx.x] = tile.values[63 - threadIdx.x];
}

// Every warp adds its sum to one total.
void race_in_reduction(const FaultParams& p, bool fault) {
  struct Total {
    float value;
  };
  Total& total = static_shared<Total>();
  if (threadIdx.x == 0) total.value = 0;
  __syncthreads();
  const float sum = warp_sum(p.in[threadIdx.x]);
  if (threadIdx.x % 32 == 0) {
    if (fault)
      total.value += sum;
    else
      atomic_add(&total.value, sum);
  }
  __syncthreads();
  p.out[threadIdx.x] = total.value;
}

// Two reductions through one scratch, with no barrier between.
void scratch_reused(const FaultParams& p, bool fault) {
  struct Scratch {
    float parts[2][2];
  };
  Scratch& s = static_shared<Scratch>();
  const unsigned warp = threadIdx.x / 32;
  float result = 0;
  for (int i = 0; i < 2; ++i) {
    float* const parts = s.parts[fault ? 0 : i];
    const float sum = warp_sum(p.in[i * 64 + int(threadIdx.x)]);
    if (threadIdx.x % 32 == 0) parts[warp] = sum;
    __syncthreads();
    result += parts[0] + parts[1];
  }
  p.out[threadIdx.x] = result;
}

// Zeros past the end of the row are left out.
void stale_shared_read(const FaultParams& p, bool fault) {
  Tile& tile = static_shared<Tile>();
  const bool inside = threadIdx.x < 50;
  if (inside || !fault) tile.values[threadIdx.x] = inside ? p.in[threadIdx.x] : 0;
  __syncthreads();
  p.out[threadIdx.x] = tile.values[63 - threadIdx.x];
}

// Lanes exchange values through their warp's slab.
void missing_syncwarp(const FaultParams& p, bool fault) {
  Tile& slab = static_shared<Tile>();
  slab.values[threadIdx.x] = p.in[threadIdx.x];
  if (!fault) __syncwarp();
  p.out[threadIdx.x] = slab.values[threadIdx.x ^ 1u];
}

void barrier_in_divergent_code(const FaultParams& p, bool fault) {
  Tile& tile = static_shared<Tile>();
  tile.values[threadIdx.x] = p.in[threadIdx.x];
  if (fault && threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  p.out[threadIdx.x] = tile.values[63 - threadIdx.x];
}

void deadlock(const FaultParams& p, bool fault) {
  const unsigned lane = threadIdx.x % 32;
  // A ring: each of three lanes waits for the next.
  if (fault && lane < 3) __syncwarp(lane == 0 ? 3u : lane == 1 ? 6u : 5u);
  __syncthreads();
  p.out[threadIdx.x] = p.in[threadIdx.x];
}

void lane_outside_mask(const FaultParams& p, bool fault) {
  const unsigned half = threadIdx.x < 16 || fault ? 0xffffu : 0xffff0000u;
  p.out[threadIdx.x] = __shfl_xor_sync(half, p.in[threadIdx.x], 1);
}

struct alignas(16) Matrices {
  uint16_t rows[32][8];
  uint16_t more[8];
};

void whole_warp(const FaultParams& p, bool fault) {
  Matrices& m = static_shared<Matrices>();
  for (int i = 0; i < 8; ++i) m.rows[threadIdx.x][i] = uint16_t(threadIdx.x);
  __syncwarp();
  if (fault && threadIdx.x == 31) return;
  uint32_t registers[4];
  ptx::ldmatrix_x4(registers, m.rows[threadIdx.x]);
  p.out[threadIdx.x] = float(registers[3] & 0xffffu);
}

void misaligned_ldmatrix(const FaultParams& p, bool fault) {
  Matrices& m = static_shared<Matrices>();
  for (int i = 0; i < 8; ++i) m.rows[threadIdx.x][i] = uint16_t(threadIdx.x);
  if (threadIdx.x < 8) m.more[threadIdx.x] = 0;
  __syncwarp();
  uint32_t registers[4];
  ptx::ldmatrix_x4(registers, m.rows[threadIdx.x] + (fault ? 4 : 0));
  p.out[threadIdx.x] = float(registers[0] & 0xffffu);
}

void misaligned_vector(const FaultParams& p, bool fault) {
  const auto v = load_vector<4>(p.in + threadIdx.x * 4 + (fault ? 1 : 0));
  store_vector(p.out + threadIdx.x * 4, v);
}

void too_much_shared(const FaultParams& p, bool fault) {
  struct Larger {
    float values[65];
  };
  float* const values = fault ? dynamic_shared<Larger>().values : dynamic_shared<Tile>().values;
  values[threadIdx.x] = p.in[threadIdx.x];
  __syncthreads();
  p.out[threadIdx.x] = values[63 - threadIdx.x];
}

void named_barrier_count(const FaultParams& p, bool fault) {
  Tile& tile = static_shared<Tile>();
  tile.values[threadIdx.x] = p.in[threadIdx.x];
  ptx::bar_sync(1, fault && threadIdx.x >= 32 ? 32 : 64);
  p.out[threadIdx.x] = tile.values[63 - threadIdx.x];
}

// Half the block waits at a barrier that names too many.
void named_barrier_waits(const FaultParams& p, bool fault) {
  Tile& tile = static_shared<Tile>();
  tile.values[threadIdx.x] = p.in[threadIdx.x];
  if (threadIdx.x >= 32) {
    p.out[threadIdx.x] = 1;
    return;
  }
  ptx::bar_sync(2, fault ? 64 : 32);
  p.out[threadIdx.x] = tile.values[31 - threadIdx.x];
}

}  // namespace

std::span<const Fault> thread_faults() {
  static constexpr char kUnwritten[] = "which was never written", kRace[] = "race: this thread",
                        kWrong[] = "wrong result";
  static const Fault faults[] = {
      {.name = "missing barrier",
       .pattern = "block tile",
       .kernel = missing_barrier,
       .block = {64},
       .any = kWrong,
       .race = kUnwritten},
      {.name = "missing second barrier",
       .pattern = "loop over tiles",
       .kernel = missing_second_barrier,
       .block = {64},
       .race = kRace},
      {.name = "prefetch into the stage being read",
       .pattern = "two stages",
       .kernel = prefetch_into_read_stage,
       .block = {64},
       .any = kWrong,
       .race = kRace},
      {.name = "off-by-one tail",
       .pattern = "elementwise loop",
       .kernel = off_by_one_tail,
       .block = {64},
       .asan = "heap-buffer-overflow"},
      {.name = "off-by-one in shared memory",
       .pattern = "block tile",
       .kernel = off_by_one_shared,
       .asan = "use-after-poison",
       .race = "out of bounds: 4 bytes"},
      {.name = "race in a reduction",
       .pattern = "block sum",
       .kernel = race_in_reduction,
       .block = {64},
       .race = kRace},
      {.name = "scratch of a reduction reused",
       .pattern = "two block sums",
       .kernel = scratch_reused,
       .block = {64},
       .race = kRace},
      {.name = "stale shared read",
       .pattern = "zeros at a tail",
       .kernel = stale_shared_read,
       .block = {64},
       .any = kWrong,
       .race = kUnwritten},
      {.name = "missing __syncwarp",
       .pattern = "epilogue's slab",
       .kernel = missing_syncwarp,
       .any = kWrong,
       .race = kUnwritten},
      {.name = "barrier in divergent code",
       .pattern = "block tile",
       .kernel = barrier_in_divergent_code,
       .block = {64},
       .any = "barrier divergence"},
      {.name = "deadlock",
       .pattern = "__syncwarp with masks",
       .kernel = deadlock,
       .block = {64},
       .any = "deadlock: every thread waits"},
      {.name = "lane outside its mask",
       .pattern = "shuffle",
       .kernel = lane_outside_mask,
       .any = "is not in its own mask 0xffff"},
      {.name = "warp-wide instruction without its warp",
       .pattern = "ldmatrix",
       .kernel = whole_warp,
       .any = "needs its whole warp"},
      {.name = "misaligned ldmatrix",
       .pattern = "fragment load",
       .kernel = misaligned_ldmatrix,
       .any = "is not at a multiple of 16 bytes"},
      {.name = "misaligned vector access",
       .pattern = "16-byte loads",
       .kernel = misaligned_vector,
       .asan = "misaligned address"},
      {.name = "shared memory beyond the declared size",
       .pattern = "dynamic_shared",
       .kernel = too_much_shared,
       .block = {64},
       .shared_bytes = sizeof(Tile),
       .any = "lays out 260 bytes of dynamic shared memory, the launch gives 256"},
      {.name = "named barrier, two counts",
       .pattern = "bar.sync",
       .kernel = named_barrier_count,
       .block = {64},
       .any = "bar.sync expects 32 threads, others wait there for 64"},
      {.name = "named barrier, count too large",
       .pattern = "bar.sync",
       .kernel = named_barrier_waits,
       .block = {64},
       .any = "deadlock: every thread waits"},
  };
  return faults;
}

}  // namespace tensorcraft::test
