// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gather/gather_cpu.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/gather/params.h"
#include "tensorcraft/op/rows.hpp"

#include <algorithm>
#include <cstring>

namespace tensorcraft::kernel::gather {
namespace {

int64_t index_at(const TensorView& indices, int64_t offset) {
  return indices.dtype() == DType::int32 ? indices.data_as<int32_t>()[offset]
                                         : indices.data_as<int64_t>()[offset];
}

void check_indices(const Problem& q) {
  const RowMap map = op::element_map(q.given);
  for (int64_t i = 0; i < q.given.size(); ++i) {
    const int64_t index = index_at(q.given, map.offset(i));
    if (position(index, q.axis_size) < 0)
      fail(ErrorKind::index, q.op, ": indices: element ", i, " is ", index, ", expected [",
           -q.axis_size, ", ", q.axis_size, "), the axis of x");
  }
}

}  // namespace

// Runs along the last axis: one index and one copy where it brings a run, else one for each
// element.
void cpu(const Problem& q) {
  check_indices(q);
  const int last = q.out.rank() - 1;
  const int64_t length = last < 0 ? 1 : q.out.shape(last);
  const int64_t out_step = last < 0 ? 0 : q.out.stride(last),
                x_step = last < 0 ? 0 : q.x.stride(last),
                index_step = last < 0 ? 0 : q.indices.stride(last);
  const RowMap out_rows = op::row_map(q.out, last), x_rows = op::row_map(q.x, last),
               index_rows = op::row_map(q.indices, last);
  const auto bytes = int64_t(dtype_bytes(q.out.dtype()));
  const bool is_run = index_step == 0 && out_step == 1 && x_step == 1;
  const auto move = [&](int64_t row) {
    std::byte* out = q.out.data_as<std::byte>() + out_rows.offset(row) * bytes;
    const std::byte* x = q.x.data_as<std::byte>() + x_rows.offset(row) * bytes;
    const int64_t at = index_rows.offset(row);
    for (int64_t i = 0; i < (is_run ? 1 : length); ++i) {
      const int64_t from = position(index_at(q.indices, at + i * index_step), q.axis_size);
      std::memcpy(out + i * out_step * bytes, x + (i * x_step + from * q.x_step) * bytes,
                  size_t(is_run ? length * bytes : bytes));
    }
  };
  constexpr int64_t kGrainElements = 16384;
  host::parallel_for(q.out.size() / length, std::max<int64_t>(1, kGrainElements / length),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t row = begin; row < end; ++row) move(row);
                     });
}

void reference(const Problem& q) {
  check_indices(q);
  const host::Elements to(q.out), from(q.x), indices(q.indices);
  const auto bytes = int64_t(dtype_bytes(q.out.dtype()));
  for (int64_t i = 0; i < q.out.size(); ++i) {
    const int64_t row = position(indices.integer(i), q.axis_size);
    std::memcpy(to.address(i), from.address(i) + row * q.x_step * bytes, size_t(bytes));
  }
}

}  // namespace tensorcraft::kernel::gather
