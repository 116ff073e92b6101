// SPDX-License-Identifier: Apache-2.0
// The warp's matrix instructions: ldmatrix, stmatrix, movmatrix and mma.sync.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/cluster.hpp"
#include "tensorcraft/simt/fragments.hpp"
#include "tensorcraft/simt/tensor_core.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

constexpr unsigned kFullWarp = 0xffffffffu;
constexpr int kRowBytes = 16;

// One lane's part in moving `count` matrices between rows in shared memory and registers.
struct Move {
  std::byte* row;
  uint32_t* registers;
};

// Whether the lane names a row, which is checked: row lane % 8 of matrix lane / 8.
bool names_row(const WarpInstruction& instruction, const void* row, int count,
               const SourceLine& line) {
  Cluster& cluster = *Cluster::current();
  const Thread& self = cluster.self();
  if (self.lane >= 8 * count) return false;
  if (reinterpret_cast<uintptr_t>(row) % kRowBytes != 0)
    cluster.fault(join(instruction.name, ": the row of lane ", self.lane,
                       " is not at a multiple of 16 bytes"),
                  &line);
  if (!cluster.is_shared(*self.block, row, kRowBytes))
    cluster.fault(join(instruction.name, ": the row of lane ", self.lane,
                       " is outside the shared memory of its block"),
                  &line);
  return true;
}

// Calls visit(element in memory, lane's register, which half) for each element.
template <int kCount, bool kTransposed, class Visit>
void for_each_element(const LaneArguments& lanes, Visit visit) {
  for (int matrix = 0; matrix < kCount; ++matrix)
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 2; ++i) {
        const Element at = matrix_element(lane, i, kTransposed);
        std::byte* row = static_cast<const Move*>(lanes[size_t(matrix * 8 + at.row)])->row;
        uint32_t* registers = static_cast<const Move*>(lanes[size_t(lane)])->registers;
        visit(row + 2 * at.column, registers[matrix], i);
      }
}

template <int kCount, bool kTransposed>
void load(const LaneArguments& lanes) {
  for_each_element<kCount, kTransposed>(lanes, [](const std::byte* from, uint32_t& reg, int i) {
    uint16_t element;
    std::memcpy(&element, from, sizeof(element));
    reg = i == 0 ? element : reg | uint32_t(element) << 16;
  });
}

template <int kCount, bool kTransposed>
void store(const LaneArguments& lanes) {
  for_each_element<kCount, kTransposed>(lanes, [](std::byte* to, uint32_t reg, int i) {
    const auto element = uint16_t(reg >> (16 * i));
    std::memcpy(to, &element, sizeof(element));
  });
}

constexpr WarpInstruction kLoad[2][3] = {
    {{"ldmatrix.x1", true}, {"ldmatrix.x2", true}, {"ldmatrix.x4", true}},
    {{"ldmatrix.x1.trans", true}, {"ldmatrix.x2.trans", true}, {"ldmatrix.x4.trans", true}}};
constexpr WarpInstruction kStore[2][3] = {
    {{"stmatrix.x1", true}, {"stmatrix.x2", true}, {"stmatrix.x4", true}},
    {{"stmatrix.x1.trans", true}, {"stmatrix.x2.trans", true}, {"stmatrix.x4.trans", true}}};

template <int kCount>
void ldmatrix(uint32_t* to, const void* row, bool transposed, const SourceLine& line) {
  const WarpInstruction& instruction = kLoad[transposed][kCount / 2];
  if (names_row(instruction, row, kCount, line)) shadow_read(row, kRowBytes, instruction.name);
  Move mine{static_cast<std::byte*>(const_cast<void*>(row)), to};
  warp_collective(instruction, kFullWarp, &mine,
                  transposed ? load<kCount, true> : load<kCount, false>, line);
}

template <int kCount>
void stmatrix(void* row, const uint32_t* from, bool transposed, const SourceLine& line) {
  const WarpInstruction& instruction = kStore[transposed][kCount / 2];
  if (names_row(instruction, row, kCount, line)) shadow_write(row, kRowBytes, instruction.name);
  Move mine{static_cast<std::byte*>(row), const_cast<uint32_t*>(from)};
  warp_collective(instruction, kFullWarp, &mine,
                  transposed ? store<kCount, true> : store<kCount, false>, line);
}

// One lane's registers of an mma.sync.
template <class Sum>
struct Operands {
  Sum* d;
  const uint32_t *a, *b;
  const Sum* c;
};

// Fills A, 16 x k, and B, k x 8, from the lanes' registers; value(bits) is that of an element.
template <int kPerRegister, int kRegisters, class Sum, class Value, class Get>
void gather(const LaneArguments& lanes, Value* a, Value* b, Get value) {
  constexpr int bits = 32 / kPerRegister, k = kRegisters / 2 * 4 * kPerRegister;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const Operands<Sum>*>(lanes[size_t(lane)]);
    for (int reg = 0; reg < kRegisters; ++reg)
      for (int i = 0; i < kPerRegister; ++i) {
        const Element at = a_element(kPerRegister, lane, reg, i);
        a[at.row * k + at.column] = value(mine.a[reg] >> (i * bits % 32));
      }
    for (int reg = 0; reg < kRegisters / 2; ++reg)
      for (int i = 0; i < kPerRegister; ++i) {
        const Element at = b_element(kPerRegister, lane, reg, i);
        b[at.row * 8 + at.column] = value(mine.b[reg] >> (i * bits % 32));
      }
  }
}

template <WgmmaType kType, int kRegisters>
void multiply_floats(const LaneArguments& lanes) {
  constexpr int per_register = 4 / element_bytes(kType), k = kRegisters / 2 * 4 * per_register;
  double a[16 * k], b[k * 8], sums[16 * 8] = {};
  gather<per_register, kRegisters, float>(lanes, a, b,
                                          [](uint32_t bits) { return element_value(kType, bits); });
  multiply_add(a, b, sums, 16, 8, k);
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const Operands<float>*>(lanes[size_t(lane)]);
    for (int reg = 0; reg < 4; ++reg) {
      const Element at = c_element(lane, reg);
      mine.d[reg] = round_sum(sums[at.row * 8 + at.column] + mine.c[reg]);
    }
  }
}

template <class Byte>
void multiply_bytes(const LaneArguments& lanes) {
  constexpr int k = 32;
  int32_t a[16 * k], b[k * 8];
  gather<4, 4, int32_t>(lanes, a, b, [](uint32_t bits) { return int32_t(Byte(bits)); });
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const Operands<int32_t>*>(lanes[size_t(lane)]);
    for (int reg = 0; reg < 4; ++reg) {
      const Element at = c_element(lane, reg);
      int32_t sum = 0;
      for (int l = 0; l < k; ++l) sum += a[at.row * k + l] * b[l * 8 + at.column];
      mine.d[reg] = int32_t(uint32_t(mine.c[reg]) + uint32_t(sum));  // wraps
    }
  }
}

constexpr WarpInstruction kHalf8{"mma.sync.m16n8k8.f16", true},
    kHalf16{"mma.sync.m16n8k16.f16", true}, kBf16{"mma.sync.m16n8k16.bf16", true},
    kTf32{"mma.sync.m16n8k8.tf32", true}, kE4m3{"mma.sync.m16n8k32.e4m3", true},
    kE5m2{"mma.sync.m16n8k32.e5m2", true}, kS8{"mma.sync.m16n8k32.s8", true},
    kU8{"mma.sync.m16n8k32.u8", true}, kMovmatrix{"movmatrix.trans", true};

template <class Sum>
void mma(const WarpInstruction& instruction, void (*body)(const LaneArguments&), Sum* d,
         const uint32_t* a, const uint32_t* b, const Sum* c, const SourceLine& line) {
  Operands<Sum> mine{d, a, b, c};
  warp_collective(instruction, kFullWarp, &mine, body, line);
}

}  // namespace

void ldmatrix_x1(uint32_t (&to)[1], const void* row, bool transposed, const SourceLine& line) {
  ldmatrix<1>(to, row, transposed, line);
}
void ldmatrix_x2(uint32_t (&to)[2], const void* row, bool transposed, const SourceLine& line) {
  ldmatrix<2>(to, row, transposed, line);
}
void ldmatrix_x4(uint32_t (&to)[4], const void* row, bool transposed, const SourceLine& line) {
  ldmatrix<4>(to, row, transposed, line);
}
void stmatrix_x1(void* row, const uint32_t (&from)[1], bool transposed, const SourceLine& line) {
  stmatrix<1>(row, from, transposed, line);
}
void stmatrix_x2(void* row, const uint32_t (&from)[2], bool transposed, const SourceLine& line) {
  stmatrix<2>(row, from, transposed, line);
}
void stmatrix_x4(void* row, const uint32_t (&from)[4], bool transposed, const SourceLine& line) {
  stmatrix<4>(row, from, transposed, line);
}

uint32_t movmatrix(uint32_t x, const SourceLine& line) {
  struct Registers {
    uint32_t from, to;
  } mine{x, 0};
  warp_collective(
      kMovmatrix, kFullWarp, &mine,
      [](const LaneArguments& lanes) {
        uint16_t matrix[8][8];
        for (int lane = 0; lane < 32; ++lane)
          for (int i = 0; i < 2; ++i) {
            const Element at = matrix_element(lane, i, false);
            matrix[at.row][at.column] =
                uint16_t(static_cast<const Registers*>(lanes[size_t(lane)])->from >> (16 * i));
          }
        for (int lane = 0; lane < 32; ++lane)
          for (int i = 0; i < 2; ++i) {
            const Element at = matrix_element(lane, i, true);
            static_cast<Registers*>(lanes[size_t(lane)])->to |= uint32_t(matrix[at.row][at.column])
                                                                << (16 * i);
          }
      },
      line);
  return mine.to;
}

void mma_m16n8k8_f16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                     const float (&c)[4], const SourceLine& line) {
  mma(kHalf8, multiply_floats<WgmmaType::f16, 2>, d, a, b, c, line);
}
void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const float (&c)[4], const SourceLine& line) {
  mma(kHalf16, multiply_floats<WgmmaType::f16, 4>, d, a, b, c, line);
}
void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4], const SourceLine& line) {
  mma(kBf16, multiply_floats<WgmmaType::bf16, 4>, d, a, b, c, line);
}
void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const float (&c)[4], const SourceLine& line) {
  mma(kTf32, multiply_floats<WgmmaType::tf32, 4>, d, a, b, c, line);
}
void mma_m16n8k32_e4m3(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4], const SourceLine& line) {
  mma(kE4m3, multiply_floats<WgmmaType::e4m3, 4>, d, a, b, c, line);
}
void mma_m16n8k32_e5m2(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4], const SourceLine& line) {
  mma(kE5m2, multiply_floats<WgmmaType::e5m2, 4>, d, a, b, c, line);
}
void mma_m16n8k32_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const int32_t (&c)[4], const SourceLine& line) {
  mma(kS8, multiply_bytes<int8_t>, d, a, b, c, line);
}
void mma_m16n8k32_u8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const int32_t (&c)[4], const SourceLine& line) {
  mma(kU8, multiply_bytes<uint8_t>, d, a, b, c, line);
}

}  // namespace tensorcraft::simt
