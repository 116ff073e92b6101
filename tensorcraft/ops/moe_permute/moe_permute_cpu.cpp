// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_permute/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tensorcraft::kernel::moe_permute {
namespace {

// A counting sort; returns the source of each row.
std::vector<int32_t> sorted(const SortProblem& q) {
  const SortParams p = sort_params(q);
  std::vector<int32_t> next(size_t(p.experts) + 1, 0), sources(size_t(p.rows), -1);
  for (int32_t i = 0; i < p.entries; ++i)
    if (const int32_t expert = expert_of(p, i); expert >= 0) ++next[size_t(expert)];
  int32_t first = 0;
  for (int32_t e = 0; e <= p.experts; ++e) {
    store_offset(p, e, first);
    const int32_t size = next[size_t(e)];
    next[size_t(e)] = first;
    first += round_up(size, p.align);
  }
  for (int32_t i = 0; i < p.entries; ++i) {
    const int32_t expert = expert_of(p, i), row = expert < 0 ? -1 : next[size_t(expert)]++;
    if (row >= 0) sources[size_t(row)] = i;
    if (p.row_map) row_of(p, i) = row;
  }
  if (p.sources)
    for (int32_t row = 0; row < p.rows; ++row) source_of(p, row) = sources[size_t(row)];
  return sources;
}

// Gives the same by a stable sort of all ids.
std::vector<int32_t> sorted_exactly(const SortProblem& q) {
  const host::Elements ids(q.ids);
  std::vector<int32_t> order, sources;
  for (int64_t i = 0; i < q.entries(); ++i)
    if (ids.integer(i) >= 0 && ids.integer(i) < q.experts) order.push_back(int32_t(i));
  std::ranges::stable_sort(order, {}, [&](int32_t i) { return ids.integer(i); });
  if (q.row_map)
    for (int64_t i = 0; i < q.entries(); ++i) host::Elements(*q.row_map).set_integer(i, -1);
  auto next = order.begin();
  for (int64_t e = 0; e <= q.experts; ++e) {
    if (q.offsets) host::Elements(*q.offsets).set_integer(e, int64_t(sources.size()));
    for (; next != order.end() && ids.integer(*next) == e; ++next) {
      if (q.row_map) host::Elements(*q.row_map).set_integer(*next, int64_t(sources.size()));
      sources.push_back(*next);
    }
    while (int64_t(sources.size()) % q.align != 0) sources.push_back(-1);
  }
  sources.resize(size_t(q.rows), -1);
  if (q.sources)
    for (int64_t row = 0; row < q.rows; ++row)
      host::Elements(*q.sources).set_integer(row, sources[size_t(row)]);
  return sources;
}

}  // namespace

void sort_cpu(const SortProblem& q) { sorted(q); }
void sort_reference(const SortProblem& q) { sorted_exactly(q); }

void cpu(const Problem& q) {
  const std::vector<int32_t> sources = sorted(q.sort);
  const auto bytes = int64_t(dtype_bytes(q.x.dtype()));
  const int64_t hidden = q.x.shape(1), k = q.sort.ids.shape(1);
  const bool is_contiguous = q.x.stride(1) == 1 && q.out.stride(1) == 1;
  const auto move = [&](int64_t row) {
    const int32_t source = sources[size_t(row)];
    std::byte* to = q.out.data_as<std::byte>() + row * q.out.stride(0) * bytes;
    const std::byte* from = q.x.data_as<const std::byte>();
    if (source >= 0) from += source / k * q.x.stride(0) * bytes;
    if (is_contiguous && source >= 0) {
      std::memcpy(to, from, size_t(hidden * bytes));
      return;
    }
    for (int64_t c = 0; c < hidden; ++c) {
      std::byte* const element = to + c * q.out.stride(1) * bytes;
      if (source >= 0)
        std::memcpy(element, from + c * q.x.stride(1) * bytes, size_t(bytes));
      else
        std::memset(element, 0, size_t(bytes));
    }
  };
  constexpr int64_t kGrainRows = 32;
  host::parallel_for(q.sort.rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) move(row);
  });
}

void reference(const Problem& q) {
  const std::vector<int32_t> sources = sorted_exactly(q.sort);
  const host::Elements to(q.out), from(q.x);
  const int64_t hidden = q.x.shape(1), k = q.sort.ids.shape(1);
  const auto bytes = dtype_bytes(q.x.dtype());
  for (int64_t i = 0; i < q.out.size(); ++i) {
    const int64_t source = sources[size_t(i / hidden)];
    if (source < 0)
      std::memset(to.address(i), 0, bytes);
    else
      std::memcpy(to.address(i), from.address(source / k * hidden + i % hidden), bytes);
  }
}

}  // namespace tensorcraft::kernel::moe_permute
