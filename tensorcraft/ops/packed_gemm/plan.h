// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/pack4.h"
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/packed_gemm/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::packed_gemm {

using Choice = op::Choice<Config>;

inline constexpr int64_t kMaxK = (int64_t(1) << 31) - 1;

struct Given {
  int element_bytes;  // of a
  int group;          // what the format of e2m1 codes demands; 0 for int4
};

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.m * p.n, int64_t(Config().threads));
  return op::Start<Config>{{}, blocks};
}

inline Groups groups_for(const Params& p) {
  if (p.group % kCodesOfBlock == 0) return Groups::one;
  const bool is_whole = reinterpret_cast<uintptr_t>(p.zeros) % 4 == 0;
  return p.group * 4 == kCodesOfBlock && is_whole && op::is_vector_aligned(p.offsets) ? Groups::four
                                                                                      : Groups::any;
}

// Few tokens: a block shares rows of W. The more rows it has the less often `a` is read; the
// smaller blocks are, the more of them wait while others compute, which is better where a code of
// int4 has more to do. Else warps share tokens.
inline Config config_for(const Params& p, const Given& given, const op::Gpu& gpu) {
  const bool is_int4 = given.group == 0;
  const Groups groups = is_int4 ? groups_for(p) : Groups::any;
  const Zeros zeros = p.offsets ? Zeros::offsets : Zeros::codes;
  if (p.m > 16) return {.tokens = is_int4 ? 32 : 64, .parts = 2, .groups = groups, .zeros = zeros};
  const bool is_small = is_int4 && (p.m > 8 || groups != Groups::one);
  Config c{.threads = is_small ? 128 : 256,
           .tokens = p.m <= 8 ? 8 : 16,
           .row_tiles = is_small             ? 1
                        : is_int4 || p.m > 8 ? 2
                                             : 4,
           .parts = is_small ? 4 : 8,
           .groups = groups,
           .zeros = zeros};
  while (c.row_tiles > 1 && 4 * div_ceil(p.n, int64_t(rows_of_block(c))) < 3 * gpu.num_sms)
    c.row_tiles /= 2;
  return c;
}

inline Choice tensor_core(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (given.element_bytes != 2) return op::refuse("a must be float16 or bfloat16");
  if (p.k % kCodesOfBlock) return op::refuse("k must be a multiple of 128");
  if (p.k > kMaxK) return op::refuse("k must be below 2^31");
  if (p.group != given.group && given.group)
    return op::refuse("the group must be 16 for nvfp4 and 32 for mxfp4");
  if (!given.group && p.group % 32) return op::refuse("the group must be a multiple of 32");
  if (p.a_strides[1] != 1 || p.a_strides[0] % 8 || !op::is_vector_aligned(p.a) ||
      !op::is_vector_aligned(p.codes) || !op::is_vector_aligned(p.scales))
    return op::refuse(
        "rows of a, codes and scales must be contiguous and begin at multiples of 16 bytes");
  const Config config = config_for(p, given, gpu);
  const int64_t blocks =
      div_ceil(p.n, int64_t(rows_of_block(config))) * div_ceil(p.m, int64_t(config.tokens));
  return op::Start<Config>{config, blocks};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "tensor_core",
     .file = "01_tensor_core.cuh",
     .idea = "mma.sync with weights unpacked in registers, scales on sums, parts of k by warp",
     .choose = tensor_core},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::packed_gemm
