// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/spmm/params.h"

#include <algorithm>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::spmm {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

struct Given {
  int element_bytes;
  int64_t longest_row;  // below 0: not known
};

// x is copied first unless its columns are neighbours.
inline bool is_packed(const Params& p) { return p.x_strides[1] != 1 && p.columns > 1; }
// Rows in the workspace begin at whole vectors.
inline constexpr int kMostVector = 4;
inline int64_t packed_pitch(const Params& p) { return round_up(p.columns, int64_t(kMostVector)); }

// As many columns a lane as leave no lane of a warp idle, if x can be read so.
inline int vector_of(const Params& p, const Given& given) {
  int vector = p.columns > 64 ? 4 : p.columns > 32 ? 2 : 1;
  if (is_packed(p)) return vector;
  const auto fits = [&](int n) {
    return p.columns % n == 0 && p.x_strides[0] % n == 0 &&
           reinterpret_cast<uintptr_t>(p.x) % uint64_t(n * given.element_bytes) == 0;
  };
  while (vector > 1 && !fits(vector)) vector /= 2;
  return vector;
}

inline Choice warps(const Params& p, const Given& given, int64_t parts_of_rows) {
  if ((p.a.data_stride != 1 || p.a.indices_stride != 1) && p.a.stored > 1)
    return op::refuse("data and indices must be contiguous");
  const Config config{.vector = vector_of(p, given)};
  const int64_t count = parts_of_rows * column_parts(p, config.vector);
  const int64_t blocks = div_ceil(count, int64_t(config.threads / 32));
  constexpr int64_t kFew = 8;
  const Start start{config, std::max<int64_t>(blocks, 1)};
  if (p.columns < kFew) return {start, "fewer than 8 columns leave most lanes idle"};
  return start;
}

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.a.rows * p.columns, int64_t(Config().threads));
  return Start{{}, blocks};
}

inline Choice warp(const Params& p, const Given& given, const op::Gpu&) {
  return warps(p, given, p.a.rows);
}

// Equal parts serve rows of any lengths; what joins them is not needed if rows are alike.
inline Choice merge_path(const Params& p, const Given& given, const op::Gpu&) {
  Choice choice = warps(p, given, std::max<int64_t>(tiles(p), 1));
  const int64_t mean = p.a.rows ? div_ceil(p.a.stored, p.a.rows) : 0;
  const bool are_alike = given.longest_row >= 0 && given.longest_row <= 256 + 8 * mean;
  if (choice.refusal.empty() && choice.preference.empty() && are_alike)
    choice.preference = "rows are about as long as one another";
  return choice;
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "merge_path",
     .file = "02_merge_path.cuh",
     .idea = "an equal part of row ends and stored elements a warp, kept in shared memory",
     .choose = merge_path},
    {.name = "warp",
     .file = "01_warp.cuh",
     .idea = "a warp has a row and up to 128 columns; elements are handed on by shuffles",
     .choose = warp},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element of out, any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::spmm
