// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/csr/problem.hpp"

#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tensorcraft::kernel::csr {
namespace {

constexpr int64_t kGrainRows = 256;

template <class T>
struct Strided {
  T* data;  // const for what is read
  int64_t stride;
  explicit Strided(const TensorView& t) : data(t.data_as<T>()), stride(t.stride(0)) {}
  T& operator[](int64_t i) const { return data[i * stride]; }
};

// f.template operator()<I>(...) of the integers, or f.template operator()<T, I>().
template <class F>
void with_index(const Problem& q, F&& f) {
  q.index == DType::int64 ? f(static_cast<int64_t*>(nullptr)) : f(static_cast<int32_t*>(nullptr));
}
template <class F>
void with_both(const Problem& q, const TensorView& elements, F&& f) {
  host::with_bits_of_size(dtype_bytes(elements.dtype()), [&]<class T>(T* bits) {
    if constexpr (sizeof(T) == 2 || sizeof(T) == 4)
      with_index(q, [&]<class I>(I* index) { f(bits, index); });
  });
}

// Where row r begins, inside the stored elements.
template <class I>
int64_t begin_of(const Problem& q, int64_t r) {
  return std::clamp<int64_t>(Strided<const I>(*q.indptr_in)[r], 0, q.stored);
}
int64_t begin_of(const Problem& q, const host::Elements& indptr, int64_t r) {
  return std::clamp<int64_t>(indptr.integer(r), 0, q.stored);
}

template <class F>
void for_rows(const Problem& q, F&& f) {
  host::parallel_for(q.rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row);
  });
}

// Facts of the rows from `begin` to `end`; index(k) and offset(r) say what the arrays hold.
template <class Index, class Offset>
Facts facts_of(const Problem& q, int64_t begin, int64_t end, Index index, Offset offset) {
  Facts facts{};
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = offset(row), last = offset(row + 1), from = q.rows - row;
    if (first > last || first < 0 || last > q.stored || (row == 0 && first != 0) ||
        (from == 1 && last != q.stored)) {
      facts.bad_offsets = std::max(facts.bad_offsets, from);
      continue;
    }
    facts.longest_row = std::max(facts.longest_row, last - first);
    facts.empty_rows += first == last;
    for (int64_t k = first, before = -1; k < last; before = index(k++)) {
      const int64_t at = index(k);
      if (at < 0 || at >= q.cols || at < before)
        facts.bad_indices = std::max(facts.bad_indices, from);
      else if (at == before)
        facts.repeated = std::max(facts.repeated, from);
    }
  }
  return facts;
}

void write(const Problem& q, const Facts& facts) {
  const host::Elements out(*q.data);
  out.set_integer(0, facts.longest_row);
  out.set_integer(1, facts.empty_rows);
  out.set_integer(2, q.rows - facts.bad_offsets);
  out.set_integer(3, q.rows - facts.bad_indices);
  out.set_integer(4, q.rows - facts.repeated);
}

Facts together(const Facts& a, const Facts& b) {
  return {std::max(a.longest_row, b.longest_row), a.empty_rows + b.empty_rows,
          std::max(a.bad_offsets, b.bad_offsets), std::max(a.bad_indices, b.bad_indices),
          std::max(a.repeated, b.repeated)};
}

// The bytes of an element are not all 0.
bool is_stored(const std::byte* element, size_t bytes) {
  return std::any_of(element, element + bytes, [](std::byte b) { return b != std::byte{}; });
}

void clear(const TensorView& t) {
  const host::Elements elements(t);
  for (int64_t i = 0; i < t.size(); ++i)
    std::memset(elements.address(i), 0, dtype_bytes(t.dtype()));
}

}  // namespace

void report_cpu(const Problem& q) {
  with_index(q, [&]<class I>(I*) {
    const Strided<const I> indices(*q.indices_in), indptr(*q.indptr_in);
    const int64_t parts = div_ceil(q.rows, kGrainRows);
    std::vector<Facts> all(size_t(parts), Facts{});
    host::parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        all[size_t(part)] = facts_of(
            q, part * kGrainRows, std::min(q.rows, (part + 1) * kGrainRows),
            [&](int64_t k) { return int64_t(indices[k]); },
            [&](int64_t r) { return int64_t(indptr[r]); });
    });
    Facts facts{};
    for (const Facts& part : all) facts = together(facts, part);
    write(q, facts);
  });
}
void report_reference(const Problem& q) {
  const host::Elements indices(*q.indices_in), indptr(*q.indptr_in);
  write(q, facts_of(
               q, 0, q.rows, [&](int64_t k) { return indices.integer(k); },
               [&](int64_t r) { return indptr.integer(r); }));
}

void starts_cpu(const Problem& q) {
  const Csr a{.data = nullptr,
              .indices = nullptr,
              .indptr = q.indptr_in->data(),
              .rows = q.rows,
              .cols = q.cols,
              .stored = q.stored,
              .data_stride = 0,
              .indices_stride = 0,
              .indptr_stride = q.indptr_in->stride(0)};
  const Strided<int64_t> out(*q.data);
  with_index(q, [&]<class I>(I*) {
    for (int64_t tile = 0; tile < q.data->size(); ++tile)
      out[tile] = rows_before<I>(a, std::min(tile * kMergeTile, q.rows + q.stored));
  });
}
// Walks the merge.
void starts_reference(const Problem& q) {
  const host::Elements indptr(*q.indptr_in), out(*q.data);
  int64_t row = 0;
  for (int64_t tile = 0; tile < q.data->size(); ++tile) {
    const int64_t steps = std::min(tile * kMergeTile, q.rows + q.stored);
    while (row < q.rows && row + begin_of(q, indptr, row + 1) < steps) ++row;
    out.set_integer(tile, row);
  }
}

void offsets_cpu(const Problem& q) {
  const TensorView& x = *q.dense;
  std::vector<int64_t> counts(size_t(q.rows));
  host::with_bits_of_size(dtype_bytes(x.dtype()), [&]<class T>(T*) {
    for_rows(q, [&](int64_t row) {
      const T* const from = x.data_as<const T>() + row * x.stride(0);
      int64_t count = 0;
      for (int64_t i = 0; i < q.cols; ++i) count += from[i * x.stride(1)] != 0;
      counts[size_t(row)] = count;
    });
  });
  const host::Elements out(*q.indptr);
  int64_t at = 0;
  out.set_integer(0, 0);
  for (int64_t row = 0; row < q.rows; ++row) out.set_integer(row + 1, at += counts[size_t(row)]);
}
void offsets_reference(const Problem& q) {
  const host::Elements x(*q.dense), out(*q.indptr);
  int64_t count = 0;
  out.set_integer(0, 0);
  for (int64_t row = 0; row < q.rows; ++row) {
    for (int64_t i = 0; i < q.cols; ++i)
      count += is_stored(x.address(row * q.cols + i), dtype_bytes(q.dense->dtype()));
    out.set_integer(row + 1, count);
  }
}

void from_dense_cpu(const Problem& q) {
  const TensorView& x = *q.dense;
  with_both(q, x, [&]<class T, class I>(T*, I*) {
    const Strided<T> data(*q.data);
    const Strided<I> indices(*q.indices);
    for_rows(q, [&](int64_t row) {
      const T* const from = x.data_as<const T>() + row * x.stride(0);
      int64_t k = begin_of<I>(q, row);
      const int64_t end = begin_of<I>(q, row + 1);
      for (int64_t i = 0; i < q.cols && k < end; ++i)
        if (const T value = from[i * x.stride(1)]; value != 0) {
          data[k] = value;
          indices[k++] = I(i);
        }
      // Places of an indptr that is not of this matrix.
      const auto clear = [&](int64_t place, int64_t last) {
        for (; place < last; ++place) {
          data[place] = 0;
          indices[place] = 0;
        }
      };
      clear(k, end);
      if (row == 0) clear(0, std::min(begin_of<I>(q, 0), end));
      if (row == q.rows - 1) clear(std::max(begin_of<I>(q, row), end), q.stored);
    });
  });
}
void from_dense_reference(const Problem& q) {
  const host::Elements x(*q.dense), indptr(*q.indptr_in), data(*q.data), indices(*q.indices);
  const size_t bytes = dtype_bytes(q.dense->dtype());
  clear(*q.data);
  clear(*q.indices);
  for (int64_t row = 0; row < q.rows; ++row) {
    int64_t k = begin_of(q, indptr, row);
    for (int64_t i = 0; i < q.cols && k < begin_of(q, indptr, row + 1); ++i) {
      const std::byte* const element = x.address(row * q.cols + i);
      if (!is_stored(element, bytes)) continue;
      std::memcpy(data.address(k), element, bytes);
      indices.set_integer(k++, i);
    }
  }
}

void to_dense_cpu(const Problem& q) {
  const TensorView& out = *q.dense;
  with_both(q, out, [&]<class T, class I>(T*, I*) {
    const Strided<const T> data(*q.data_in);
    const Strided<const I> indices(*q.indices_in);
    for_rows(q, [&](int64_t row) {
      T* const to = out.data_as<T>() + row * out.stride(0);
      for (int64_t i = 0; i < q.cols; ++i) to[i * out.stride(1)] = 0;
      for (int64_t k = begin_of<I>(q, row); k < begin_of<I>(q, row + 1); ++k)
        if (indices[k] >= 0 && int64_t(indices[k]) < q.cols)
          to[int64_t(indices[k]) * out.stride(1)] = data[k];
    });
  });
}
void to_dense_reference(const Problem& q) {
  clear(*q.dense);
  const host::Elements data(*q.data_in), indices(*q.indices_in), indptr(*q.indptr_in),
      out(*q.dense);
  for (int64_t row = 0; row < q.rows; ++row)
    for (int64_t k = begin_of(q, indptr, row); k < begin_of(q, indptr, row + 1); ++k)
      if (const int64_t column = indices.integer(k); column >= 0 && column < q.cols)
        std::memcpy(out.address(row * q.cols + column), data.address(k),
                    dtype_bytes(q.dense->dtype()));
}

// A counting sort by columns, which keeps the order of rows.
void transpose_cpu(const Problem& q) {
  with_both(q, *q.data, [&]<class T, class I>(T*, I*) {
    const Strided<const T> from(*q.data_in);
    const Strided<T> data(*q.data);
    const Strided<const I> columns(*q.indices_in);
    const Strided<I> indices(*q.indices), indptr(*q.indptr);
    std::vector<int64_t> next(size_t(q.cols) + 1, 0);
    const auto each = [&](auto&& f) {
      for (int64_t row = 0; row < q.rows; ++row)
        for (int64_t k = begin_of<I>(q, row); k < begin_of<I>(q, row + 1); ++k)
          if (columns[k] >= 0 && int64_t(columns[k]) < q.cols) f(row, k, size_t(columns[k]));
    };
    each([&](int64_t, int64_t, size_t column) { ++next[column + 1]; });
    for (int64_t c = 0; c < q.cols; ++c) next[size_t(c) + 1] += next[size_t(c)];
    for (int64_t c = 0; c <= q.cols; ++c) indptr[c] = I(next[size_t(c)]);
    for (int64_t k = next[size_t(q.cols)]; k < q.stored; ++k) {
      data[k] = 0;
      indices[k] = 0;
    }
    each([&](int64_t row, int64_t k, size_t column) {
      const int64_t at = next[column]++;
      if (at >= q.stored) return;
      data[at] = from[k];
      indices[at] = I(row);
    });
  });
}
// A column after the other.
void transpose_reference(const Problem& q) {
  const host::Elements data(*q.data_in), columns(*q.indices_in), offsets(*q.indptr_in),
      data_out(*q.data), rows_out(*q.indices), offsets_out(*q.indptr);
  clear(*q.data);
  clear(*q.indices);
  int64_t at = 0;
  for (int64_t column = 0; column < q.cols; ++column) {
    offsets_out.set_integer(column, at);
    for (int64_t row = 0; row < q.rows; ++row)
      for (int64_t k = begin_of(q, offsets, row); k < begin_of(q, offsets, row + 1); ++k) {
        if (columns.integer(k) != column) continue;
        if (at < q.stored) {
          std::memcpy(data_out.address(at), data.address(k), dtype_bytes(q.data->dtype()));
          rows_out.set_integer(at, row);
        }
        ++at;
      }
  }
  offsets_out.set_integer(q.cols, at);
}

}  // namespace tensorcraft::kernel::csr
