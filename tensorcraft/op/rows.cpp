// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/rows.hpp"

#include <algorithm>
#include <bit>

namespace tensorcraft::op {
namespace {

static_assert(RowMap::kMaxAxes == kMaxRank);

RowMap merged(const TensorView& t, int skipped_axis) {
  RowMap map{};
  for (int i = 0; i < t.rank(); ++i) {
    if (i == skipped_axis || t.shape(i) == 1) continue;
    const int last = map.axes - 1;
    if (last >= 0 && map.stride[last] == t.stride(i) * t.shape(i)) {
      map.size[last] *= t.shape(i);
      map.stride[last] = t.stride(i);
      continue;
    }
    map.size[map.axes] = t.shape(i);
    map.stride[map.axes++] = t.stride(i);
  }
  return map;
}

}  // namespace

RowMap row_map(const TensorView& t, int axis) { return merged(t, axis); }
RowMap element_map(const TensorView& t) { return merged(t, -1); }

bool rows_aligned(const TensorView& t, int axis, size_t bytes) {
  if (!t.is_aligned(bytes)) return false;
  for (int i = 0; i < t.rank(); ++i)
    if (i != axis && t.shape(i) != 1 &&
        t.stride(i) * int64_t(dtype_bytes(t.dtype())) % int64_t(bytes))
      return false;
  return true;
}

bool has_unit_rows(const std::optional<TensorView>& t) {
  return !t || t->stride(t->rank() - 1) == 1 || t->shape(t->rank() - 1) == 1;
}

bool has_aligned_rows(const std::optional<TensorView>& t) {
  return !t || rows_aligned(*t, t->rank() - 1, 16);
}

LastAxisRows::LastAxisRows(const std::optional<TensorView>& t) {
  if (!t) return;
  const int axis = t->rank() - 1;
  data = t->data();
  step = t->stride(axis);
  map = row_map(*t, axis);
}

RowSplit split_rows(int64_t cols, int vector) {
  const int vectors = int(div_ceil(cols, int64_t(vector)));
  int threads = 256, group = 256;
  if (cols <= 4096) threads = group = 128;
  if (cols <= 1024) {
    group = std::clamp(int(std::bit_ceil(uint32_t(vectors))), 8, 32);
    // A smaller group that divides the row leaves no thread without elements.
    if (vectors % group != 0 && vectors % 16 == 0 && vectors * vector <= 16 * 32) group = 16;
  }
  const int slots = div_ceil(vectors, group);
  // Long scalar rows share kernels: their count of slots is rounded up.
  return {threads, group, slots <= 8 ? slots : round_up(slots, 4)};
}

}  // namespace tensorcraft::op
