// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA's own words for a plain C++ compiler, as declarations: tensorcraft/simt/ defines them. A
// rung reads the same on the host as on a GPU.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>

namespace tensorcraft {

struct Wgmma;  // device/wgmma.cuh

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
};

// All threads of a block share one OS thread; the emulator sets these at each switch.
extern thread_local constinit Index3 threadIdx, blockIdx, blockDim, gridDim;

// Reports name the line that waited.
using SourceLine = std::source_location;
void __syncthreads(SourceLine line = SourceLine::current());
void __syncwarp(unsigned mask = 0xffffffffu, SourceLine line = SourceLine::current());
void __threadfence();
void __threadfence_block();

namespace simt {
int lane();
// How a shuffle's operand names the lane whose value it gives, in segments of `width` lanes.
enum class ShuffleMode { index, exclusive_or, down, up };
// The value that lane passed, or the caller's own if the lane is outside the segment; every lane of
// mask must call.
uint64_t shuffle(unsigned mask, uint64_t value, ShuffleMode mode, int operand, int width,
                 const SourceLine& line);
// Bit i is set if lane i of mask passed true.
unsigned ballot(unsigned mask, bool predicate, const SourceLine& line);
// Ends the launch with an error of kind index: "OP: WHAT is INDEX, expected [0, SIZE)".
[[noreturn]] void fail_index(const char* op, const char* what, int64_t index, int64_t size);
// Fails with kind value: "OP: WHAT: element I is COUNT, expected [0, ROOM], LIMIT".
[[noreturn]] void fail_count(const char* op, const char* what, int64_t element, int64_t count,
                             int64_t room, const char* limit);
void* static_shared(const void* key, size_t bytes, size_t align);
void* dynamic_shared(size_t bytes);

// The shared-memory address that PTX would have for a pointer into the block's shared memory: the
// distance from its start, which is a multiple of 1024 bytes. A pointer elsewhere is reported.
uint32_t shared_address(const void* pointer, const SourceLine& line = SourceLine::current());

// The warp's matrix instructions; registers as device/ptx/ldmatrix.cuh and mma.cuh describe them.
// Reports name the line of the wrapper.
void ldmatrix_x1(uint32_t (&to)[1], const void* row, bool transposed,
                 const SourceLine& line = SourceLine::current());
void ldmatrix_x2(uint32_t (&to)[2], const void* row, bool transposed,
                 const SourceLine& line = SourceLine::current());
void ldmatrix_x4(uint32_t (&to)[4], const void* row, bool transposed,
                 const SourceLine& line = SourceLine::current());
void stmatrix_x1(void* row, const uint32_t (&from)[1], bool transposed,
                 const SourceLine& line = SourceLine::current());
void stmatrix_x2(void* row, const uint32_t (&from)[2], bool transposed,
                 const SourceLine& line = SourceLine::current());
void stmatrix_x4(void* row, const uint32_t (&from)[4], bool transposed,
                 const SourceLine& line = SourceLine::current());
uint32_t movmatrix(uint32_t x, const SourceLine& line = SourceLine::current());
void mma_m16n8k8_f16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                     const float (&c)[4], const SourceLine& line = SourceLine::current());
void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const float (&c)[4], const SourceLine& line = SourceLine::current());
void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4], const SourceLine& line = SourceLine::current());
void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const float (&c)[4], const SourceLine& line = SourceLine::current());
void mma_m16n8k32_e4m3(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4], const SourceLine& line = SourceLine::current());
void mma_m16n8k32_e5m2(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4], const SourceLine& line = SourceLine::current());
void mma_m16n8k32_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const int32_t (&c)[4], const SourceLine& line = SourceLine::current());
void mma_m16n8k32_u8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const int32_t (&c)[4], const SourceLine& line = SourceLine::current());

// Warp-wide reductions of integers, and the choice of one lane.
enum class Reduction { add, min_s32, max_s32, min_u32, max_u32, bit_and, bit_or, bit_xor };
uint32_t redux(Reduction op, unsigned mask, uint32_t value,
               const SourceLine& line = SourceLine::current());
bool elect(unsigned mask, const SourceLine& line = SourceLine::current());

// The warpgroup's matrix instructions. A thread's D is op.n / 2 floats, A in registers 4 words.
void wgmma_fence(const SourceLine& line = SourceLine::current());
void wgmma_commit_group(const SourceLine& line = SourceLine::current());
void wgmma_wait_group(int pending, const SourceLine& line = SourceLine::current());
void wgmma_mma_async(float* d, const Wgmma& op, uint64_t a_descriptor, uint64_t b_descriptor,
                     bool accumulate, const SourceLine& line = SourceLine::current());
void wgmma_mma_async(float* d, const Wgmma& op, const uint32_t* a, uint64_t b_descriptor,
                     bool accumulate, const SourceLine& line = SourceLine::current());

// Atomic read, change and write; the old value. Bits of the type that the operation names.
enum class Atomic {
  add_u32,
  add_f32,
  add_f16x2,
  add_bf16x2,
  min_s32,
  max_s32,
  min_u32,
  max_u32,
  increment_u32,
  exchange_u32
};
uint32_t atomic(Atomic op, uint32_t* address, uint32_t value,
                const SourceLine& line = SourceLine::current());
uint64_t atomic_add_u64(uint64_t* address, uint64_t value,
                        const SourceLine& line = SourceLine::current());
uint32_t atomic_cas_u32(uint32_t* address, uint32_t expected, uint32_t value,
                        const SourceLine& line = SourceLine::current());
uint64_t atomic_cas_u64(uint64_t* address, uint64_t expected, uint64_t value,
                        const SourceLine& line = SourceLine::current());

// cp.async: `bytes` of `size` bytes from global, then zeros; lands no later than the wait that
// covers its group.
void cp_async(void* shared, const void* global, int size, int bytes,
              const SourceLine& line = SourceLine::current());
void cp_async_commit();
void cp_async_wait_group(int pending);
void cp_async_wait_all();

template <class T>
T shuffle_value(unsigned mask, T x, ShuffleMode mode, int operand, int width,
                const SourceLine& line) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof(T));
  bits = shuffle(mask, bits, mode, operand, width, line);
  std::memcpy(&x, &bits, sizeof(T));
  return x;
}
}  // namespace simt

template <class T>
T __shfl_sync(unsigned mask, T x, int source, int width = 32,
              SourceLine line = SourceLine::current()) {
  return simt::shuffle_value(mask, x, simt::ShuffleMode::index, source, width, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int lanes, int width = 32,
                  SourceLine line = SourceLine::current()) {
  return simt::shuffle_value(mask, x, simt::ShuffleMode::exclusive_or, lanes, width, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned lanes, int width = 32,
                   SourceLine line = SourceLine::current()) {
  return simt::shuffle_value(mask, x, simt::ShuffleMode::down, int(lanes), width, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned lanes, int width = 32,
                 SourceLine line = SourceLine::current()) {
  return simt::shuffle_value(mask, x, simt::ShuffleMode::up, int(lanes), width, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              SourceLine line = SourceLine::current()) {
  return simt::ballot(mask, predicate != 0, line);
}
inline int __any_sync(unsigned mask, int predicate, SourceLine line = SourceLine::current()) {
  return simt::ballot(mask, predicate != 0, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SourceLine line = SourceLine::current()) {
  return simt::ballot(mask, predicate == 0, line) == 0;
}

}  // namespace tensorcraft
