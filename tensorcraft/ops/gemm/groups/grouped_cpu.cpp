// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <vector>

// Grouped products on the host: gemm of one group after the other.
namespace tensorcraft::kernel::gemm {
namespace {

struct RowRange {
  int64_t first, end;
};
// The rows that groups divide, and whose they are: along k those of b.
struct Rows {
  int64_t count;
  std::string_view matrix;
};

[[noreturn]] void no_such_rows(std::string_view name, int64_t group, int64_t first, int64_t end,
                               const Rows& rows) {
  fail(ErrorKind::value, "grouped_gemm: ", name, ": group ", group, " would have the rows ", first,
       " to ", end, ", and ", rows.matrix, " has rows 0 to ", rows.count,
       "; groups must ascend within them");
}

// Groups whose rows begin where the ones before end.
std::vector<RowRange> ranges_of_sizes(const host::Elements& sizes, int64_t groups,
                                      const Rows& rows) {
  std::vector<RowRange> all;
  int64_t first = 0;
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t size = sizes.integer(i);
    if (size < 0 || size > rows.count - first) no_such_rows("sizes", i, first, first + size, rows);
    all.push_back({first, first + size});
    first += size;
  }
  return all;
}

std::vector<RowRange> ranges_of_offsets(const host::Elements& offsets, int64_t groups,
                                        const Rows& rows) {
  std::vector<RowRange> all;
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t first = offsets.integer(i), end = offsets.integer(i + 1);
    if (first < 0 || end < first || end > rows.count) no_such_rows("offsets", i, first, end, rows);
    all.push_back({first, end});
  }
  return all;
}

std::vector<RowRange> ranges_of_ids(const host::Elements& ids, int64_t groups, int64_t rows) {
  std::vector<RowRange> all(size_t(groups), RowRange{0, 0});
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t group = ids.integer(row);
    if (group < 0 || group >= groups) continue;
    RowRange& range = all[size_t(group)];
    if (range.end == 0) range = {row, row};
    if (range.end != row)
      fail(ErrorKind::value, "grouped_gemm: ids: row ", row, " is of group ", group,
           ", whose rows ended at ", range.end, "; sort rows by group, as moe_permute does");
    range.end = row + 1;
  }
  return all;
}

std::vector<RowRange> ranges_of_counts(const host::Elements& counts, int64_t groups, int64_t rows) {
  std::vector<RowRange> all;
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t count = counts.integer(i);
    if (count < 0 || count > rows)
      fail(ErrorKind::value, "masked_gemm: counts: group ", i, " has ", count,
           " rows, expected 0 to ", rows);
    all.push_back({0, count});
  }
  return all;
}

std::vector<RowRange> ranges(const Problem& q) {
  const host::Elements array(q.groups->array);
  const Rows rows = q.groups->along_k() ? Rows{q.k(), "b"} : Rows{q.m(), "a"};
  switch (q.groups->kind) {
    case GroupArray::offsets:
      return ranges_of_offsets(array, q.batch(), rows);
    case GroupArray::sizes:
      return ranges_of_sizes(array, q.batch(), rows);
    case GroupArray::ids:
      return ranges_of_ids(array, q.batch(), q.m());
    case GroupArray::counts:
      break;
  }
  return ranges_of_counts(array, q.batch(), q.m());
}

void for_each_group(const Problem& q, void (*product)(const Problem&)) {
  const std::vector<RowRange> all = ranges(q);
  for (int64_t i = 0; i < q.batch(); ++i) {
    const auto [first, end] = all[size_t(i)];
    const bool along_k = q.groups->along_k();
    if (first == end && !along_k) continue;
    Problem one = q;
    one.groups = std::nullopt;
    one.a = q.a.select(0, i).slice(along_k ? 1 : 0, first, end);
    one.b = q.b.select(0, i);
    one.d = q.d.select(0, i);
    if (q.a_scale) one.a_scale = q.a_scale->select(0, i);
    if (one.a_scale && one.a_scale->rank()) one.a_scale = one.a_scale->slice(0, first, end);
    if (q.b_scale) one.b_scale = q.b_scale->select(0, i);
    if (along_k)
      one.b = one.b.slice(0, first, end);
    else
      one.d = one.d.slice(0, first, end);
    product(one);
  }
}

}  // namespace

void cpu_grouped(const Problem& q) { for_each_group(q, cpu); }

void reference_grouped(const Problem& q) { for_each_group(q, reference); }

}  // namespace tensorcraft::kernel::gemm
