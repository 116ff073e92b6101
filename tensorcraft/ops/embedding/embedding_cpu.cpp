// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/embedding/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/checks/rows.hpp"

#include <cstring>

namespace tensorcraft::kernel::embedding {
namespace {

int64_t id_at(const TensorView& ids, const RowMap& map, int64_t i) {
  const int64_t at = map.offset(i);
  return ids.dtype() == DType::int32 ? ids.data_as<const int32_t>()[at]
                                     : ids.data_as<const int64_t>()[at];
}

void check_ids(const TensorView& ids, const TensorView& table) {
  const RowMap map = op::element_map(ids);
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = id_at(ids, map, i);
    if (id < 0 || id >= table.shape(0))
      fail(ErrorKind::index, "embedding: ids: element ", i, " is ", id, ", expected [0, ",
           table.shape(0), "), the rows of table");
  }
}

}  // namespace

void cpu(const Problem& q) {
  const auto& [out, ids, table] = q;
  check_ids(ids, table);
  const size_t bytes = dtype_bytes(table.dtype());
  const int64_t cols = table.shape(1), from_step = table.stride(1), to_step = out.strides().back();
  const RowMap id_map = op::element_map(ids), rows = op::row_map(out, out.rank() - 1);
  const auto copy_row = [&](int64_t i) {
    const std::byte* from =
        table.data_as<const std::byte>() + id_at(ids, id_map, i) * table.stride(0) * int64_t(bytes);
    std::byte* to = out.data_as<std::byte>() + rows.offset(i) * int64_t(bytes);
    if (from_step == 1 && to_step == 1) {
      std::memcpy(to, from, size_t(cols) * bytes);
      return;
    }
    for (int64_t c = 0; c < cols; ++c)
      std::memcpy(to + c * to_step * int64_t(bytes), from + c * from_step * int64_t(bytes), bytes);
  };
  constexpr int64_t kGrainRows = 32;
  host::parallel_for(ids.size(), kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) copy_row(i);
  });
}

void reference(const Problem& q) {
  const auto& [out, ids, table] = q;
  check_ids(ids, table);
  const host::Elements to(out), id(ids), from(table);
  const int64_t cols = table.shape(1);
  for (int64_t i = 0; i < out.size(); ++i) to.set(i, from[int64_t(id[i / cols]) * cols + i % cols]);
}

}  // namespace tensorcraft::kernel::embedding
