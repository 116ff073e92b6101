// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/rows.hpp"

#include "tensorcraft/op/launch/shared_address.hpp"

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

LastAxisRows::LastAxisRows(const std::optional<TensorView>& t) {
  if (!t) return;
  const int axis = t->rank() - 1;
  data = shared_address(*t);
  step = t->stride(axis);
  map = row_map(*t, axis);
}

}  // namespace tensorcraft::op
