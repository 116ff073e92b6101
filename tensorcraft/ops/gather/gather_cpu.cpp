// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gather/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/gather/params.h"
#include "tensorcraft/op/checks/rows.hpp"

#include <algorithm>
#include <cstring>

namespace tensorcraft::kernel::gather {
namespace {

int64_t index_at(const TensorView& indices, int64_t offset) {
  return indices.dtype() == DType::int32 ? indices.data_as<const int32_t>()[offset]
                                         : indices.data_as<const int64_t>()[offset];
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

// The last axis of what is read and written, and its indices.
struct LastAxis {
  int64_t length, out_step, x_step, index_step;

  explicit LastAxis(const Problem& q) {
    const int last = q.out.rank() - 1;
    length = last < 0 ? 1 : q.out.shape(last);
    out_step = last < 0 ? 0 : q.out.stride(last);
    x_step = last < 0 ? 0 : q.x.stride(last);
    index_step = last < 0 ? 0 : q.indices.stride(last);
  }
  bool is_run() const { return index_step == 0 && out_step == 1 && x_step == 1; }
};

// Runs along the last axis: one index and one copy if it brings a run, else one for each
// element. T has the size of the dtype.
template <class T, class Index>
void gather(const Problem& q) {
  const LastAxis axis(q);
  const int last = q.out.rank() - 1;
  const RowMap out_rows = op::row_map(q.out, last), x_rows = op::row_map(q.x, last),
               index_rows = op::row_map(q.indices, last);
  const auto move = [&](int64_t row) {
    T* out = q.out.data_as<T>() + out_rows.offset(row);
    const T* x = q.x.data_as<const T>() + x_rows.offset(row);
    const Index* indices = q.indices.data_as<const Index>() + index_rows.offset(row);
    if (axis.is_run()) {
      std::copy_n(x + position(*indices, q.axis_size) * q.x_step, axis.length, out);
      return;
    }
    for (int64_t i = 0; i < axis.length; ++i)
      out[i * axis.out_step] =
          x[i * axis.x_step + position(indices[i * axis.index_step], q.axis_size) * q.x_step];
  };
  host::for_each_row(q.out.size() / axis.length, axis.length, move);
}

template <class T>
void gather(const Problem& q) {
  q.indices.dtype() == DType::int32 ? gather<T, int32_t>(q) : gather<T, int64_t>(q);
}

}  // namespace

void cpu(const Problem& q) {
  check_indices(q);
  host::with_bits_of_size(dtype_bytes(q.out.dtype()), [&]<class T>(T*) { gather<T>(q); });
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
