// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/warpgroup.h"
#include "tensorcraft/device/wgmma.cuh"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// Computes the result of a wgmma.mma_async, without its timing: pure functions of memory and
// registers.
namespace tensorcraft::simt {

// The place of the 16-byte unit (i, j) of an operand in shared memory. k-major: unit j along k of
// row i; mn-major: unit i along m or n at k = j.
uint32_t unit_address(const WgmmaOperand& operand, Major major, int i, int j);

// All units an instruction reads, by j within i; `extent` is 64 for A and n for B.
std::vector<uint32_t> unit_addresses(const WgmmaOperand& operand, Major major, int extent,
                                     WgmmaType type);

// An operand as values, extent x k, row-major. `shared` is address 0 of the block's shared memory;
// every unit must be in it.
std::vector<double> read_operand(const std::byte* shared, const WgmmaOperand& operand, Major major,
                                 int extent, WgmmaType type);
// A from the registers of the 128 threads, 4 words each.
std::vector<double> read_registers(const std::array<const uint32_t*, kWarpgroup>& a,
                                   WgmmaType type);

// D = A B + D, or A B, into the registers of the 128 threads, op.n / 2 floats each, or the bits of
// int32_t. a is 64 x k, b
// is n x k.
void multiply(const Wgmma& op, const std::vector<double>& a, const std::vector<double>& b,
              bool accumulate, const std::array<float*, kWarpgroup>& d);

}  // namespace tensorcraft::simt
