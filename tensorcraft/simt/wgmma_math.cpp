// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/wgmma_math.hpp"

#include "tensorcraft/simt/fragments.hpp"
#include "tensorcraft/simt/tensor_core.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

constexpr uint32_t kUnit = 16;
constexpr uint32_t kAddressMask = 0x3ffff;  // what a descriptor can reach

uint32_t plain_offset(const WgmmaOperand& o, Major major, uint32_t i, uint32_t j) {
  const uint32_t span = swizzle_span(o.swizzle), units = span / kUnit;
  if (major == Major::k)
    return i % 8 * span + i / 8 * o.stride + j * (units == 1 ? o.leading : kUnit);
  if (units == 1) return i * o.stride + j % 8 * kUnit + j / 8 * o.leading;
  return i % units * kUnit + i / units * o.leading + j % 8 * span + j / 8 * o.stride;
}

uint32_t bits_at(const std::byte* at, int bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, size_t(bytes));
  return bits;
}

int along_k(WgmmaType type) { return 32 / element_bytes(type); }

}  // namespace

uint32_t unit_address(const WgmmaOperand& operand, Major major, int i, int j) {
  const uint32_t plain = operand.address + plain_offset(operand, major, uint32_t(i), uint32_t(j));
  // The pattern counts its rows of 128 bytes from the base offset.
  const uint32_t base = uint32_t(operand.base_offset) << 7;
  return (swizzled(operand.swizzle, plain - base) + base) & kAddressMask;
}

std::vector<uint32_t> unit_addresses(const WgmmaOperand& operand, Major major, int extent,
                                     WgmmaType type) {
  const int rows = major == Major::k ? extent : extent / 8;
  const int columns = major == Major::k ? 2 : along_k(type);
  std::vector<uint32_t> addresses;
  addresses.reserve(size_t(rows) * size_t(columns));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) addresses.push_back(unit_address(operand, major, i, j));
  return addresses;
}

std::vector<double> read_operand(const std::byte* shared, const WgmmaOperand& operand, Major major,
                                 int extent, WgmmaType type) {
  const int k = along_k(type), bytes = element_bytes(type), per_unit = int(kUnit) / bytes;
  const auto addresses = unit_addresses(operand, major, extent, type);
  const int columns = major == Major::k ? 2 : k;
  std::vector<double> values(size_t(extent) * size_t(k));
  for (size_t u = 0; u < addresses.size(); ++u) {
    const int i = int(u) / columns, j = int(u) % columns;
    for (int e = 0; e < per_unit; ++e) {
      const int row = major == Major::k ? i : i * per_unit + e;
      const int column = major == Major::k ? j * per_unit + e : j;
      values[size_t(row * k + column)] =
          element_value(type, bits_at(shared + addresses[u] + e * bytes, bytes));
    }
  }
  return values;
}

std::vector<double> read_registers(const std::array<const uint32_t*, kWarpgroup>& a,
                                   WgmmaType type) {
  const int k = along_k(type), bits = 8 * element_bytes(type), per_register = 32 / bits;
  std::vector<double> values(size_t(64 * k));
  for (int thread = 0; thread < kWarpgroup; ++thread)
    for (int reg = 0; reg < 4; ++reg)
      for (int e = 0; e < per_register; ++e) {
        const Element at = a_element(per_register, thread % 32, reg, e);
        values[size_t((thread / 32 * 16 + at.row) * k + at.column)] =
            element_value(type, a[size_t(thread)][reg] >> (e * bits));
      }
  return values;
}

void multiply(const Wgmma& op, const std::vector<double>& a, const std::vector<double>& b,
              bool accumulate, const std::array<float*, kWarpgroup>& d) {
  const int k = wgmma_k(op);
  const double sign = op.negate_a == op.negate_b ? 1 : -1;
  std::vector<double> by_k(size_t(k * op.n)), sums(size_t(64 * op.n));
  for (int j = 0; j < op.n; ++j)
    for (int l = 0; l < k; ++l) by_k[size_t(l * op.n + j)] = sign * b[size_t(j * k + l)];
  multiply_add(a.data(), by_k.data(), sums.data(), 64, op.n, k);
  for (int thread = 0; thread < kWarpgroup; ++thread)
    for (int reg = 0; reg < op.n / 2; ++reg) {
      const Element at = c_element(thread % 32, reg);
      float& value = d[size_t(thread)][reg];
      const double sum = sums[size_t((thread / 32 * 16 + at.row) * op.n + at.column)];
      if (is_integer(op))
        value =
            bit_cast<float>(uint32_t(int64_t(sum)) + (accumulate ? bit_cast<uint32_t>(value) : 0));
      else
        value = round_sum(accumulate ? sum + value : sum);
    }
}

}  // namespace tensorcraft::simt
