// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/layout.cuh"

namespace tensorcraft::test {
namespace {

constexpr size_t kThreads = 32;

template <void (*kKernel)(const Params&)>
Case layout(const char* name, size_t in_words, size_t out_words) {
  Case c{.name = name,
         .header = "layout.cuh",
         .in_words = int(in_words * kThreads),
         .out_words = int(out_words * kThreads),
         .simt = on_simt<kKernel>};
  c.fill = [](Random& random, int, std::span<uint32_t> in) {
    for (uint32_t& word : in) word = uint32_t(random()) % (228 * 1024);
  };
  return c;
}

// Bits 4 to 6 are the unit in a line of 128 bytes, the line's number begins at bit 7.
std::vector<Expected> expect_swizzles(Words in, int) {
  std::vector<Expected> out;
  for (const uint32_t address : in)
    for (uint32_t units : {1u, 2u, 4u, 8u}) {
      const uint32_t line = address / 128, unit = address / 16 % 8;
      const uint32_t moved = unit / units * units + (unit % units ^ line % units);
      out.push_back({units * 16});
      out.push_back({units == 1 ? 16 : units * 128});
      out.push_back({line * 128 + moved * 16 + address % 16});
    }
  return out;
}

void fill_descriptors(Random& random, int, std::span<uint32_t> in) {
  for (size_t i = 0; i < in.size(); i += 5) {
    for (size_t offset = 0; offset < 3; ++offset) in[i + offset] = uint32_t(random() % 0x4000) * 16;
    in[i + 3] = uint32_t(random() % 4);
    in[i + 4] = uint32_t(random() % 8);
  }
}

std::vector<Expected> expect_descriptors(Words in, int) {
  std::vector<Expected> out;
  for (size_t i = 0; i < in.size(); i += 5) {
    const uint32_t layout[] = {0, 3, 2, 1};
    out.push_back({in[i] / 16 | in[i + 1] / 16 << 16});
    out.push_back({in[i + 2] / 16 | in[i + 4] << 17 | layout[in[i + 3]] << 30});
    for (size_t field = 0; field < 5; ++field) out.push_back({in[i + field]});
  }
  return out;
}

std::vector<Expected> expect_addresses(Words in, int) {
  std::vector<Expected> out;
  for (const uint32_t word : in) {
    out.push_back({0});
    out.push_back({word % 256 * 4});
  }
  return out;
}

}  // namespace

std::vector<Case> layout_cases() {
  Case swizzles = layout<swizzle>("swizzle", 1, 12);
  swizzles.expect = expect_swizzles;
  Case descriptors = layout<descriptor>("descriptor", 5, 7);
  descriptors.fill = fill_descriptors;
  descriptors.expect = expect_descriptors;
  Case addresses = layout<shared_addresses>("shared_addresses", 1, 2);
  addresses.shared_bytes = sizeof(Addressed);
  addresses.expect = expect_addresses;
  return {swizzles, descriptors, addresses};
}

}  // namespace tensorcraft::test
