// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#include "tensorcraft/device/wgmma.cuh"
#include "tests/wrappers/kernels/params.h"

// Addresses and descriptors of shared memory, as device code computes them.
namespace tensorcraft::test {

// in: an address a thread. out: span, pattern and place of it in each of the four layouts.
TC_DEVICE void swizzle(const Params& p) {
  for (int i = 0; i < 4; ++i) {
    uint32_t* out = block_out(p) + (threadIdx.x * 4 + unsigned(i)) * 3;
    out[0] = swizzle_span(Swizzle(i));
    out[1] = swizzle_pattern(Swizzle(i));
    out[2] = swizzled(Swizzle(i), block_in(p)[threadIdx.x]);
  }
}

// in: address, leading, stride, swizzle, base offset of an operand a thread. out: its descriptor,
// and what that says.
TC_DEVICE void descriptor(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 5;
  const uint64_t bits = wgmma_descriptor({in[0], in[1], in[2], Swizzle(in[3]), int(in[4])});
  const WgmmaOperand operand = decode_descriptor(bits);
  uint32_t* out = block_out(p) + threadIdx.x * 7;
  out[0] = uint32_t(bits);
  out[1] = uint32_t(bits >> 32);
  out[2] = operand.address;
  out[3] = operand.leading;
  out[4] = operand.stride;
  out[5] = uint32_t(operand.swizzle);
  out[6] = uint32_t(operand.base_offset);
}

struct Addressed {
  alignas(1024) uint32_t words[256];
};
// Dynamic shared memory begins at a multiple of 1024 bytes, and addresses count bytes from there.
TC_DEVICE void shared_addresses(const Params& p) {
  Addressed& s = dynamic_shared<Addressed>();
  const uint32_t i = block_in(p)[threadIdx.x] % 256;
  block_out(p)[threadIdx.x * 2] = ptx::cvta_to_shared(&s) % 1024;
  block_out(p)[threadIdx.x * 2 + 1] = ptx::cvta_to_shared(&s.words[i]) - ptx::cvta_to_shared(&s);
}

}  // namespace tensorcraft::test
