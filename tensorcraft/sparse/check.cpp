// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/sparse/check.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/checks/csr.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <array>
#include <utility>

namespace tensorcraft::sparse {
namespace {

// "sparse.csr: row", or of columns.
struct Words {
  std::string_view name, axis, other;
};
Words words(bool is_csr) {
  return is_csr ? Words{"sparse.csr", "row", "column"} : Words{"sparse.csc", "column", "row"};
}

Tensor on_host(const TensorView& t) { return copy(t).to(Device::cpu()); }

std::vector<int64_t> report_of(const Arrays& a, int64_t other) {
  return integers(csr_report(a.indices, a.indptr, {.cols = other}));
}
int64_t fact(const std::vector<int64_t>& report, CsrFact which) { return report[size_t(which)]; }

[[noreturn]] void fail_by_offsets(const Words& w, const Arrays& a, int64_t at) {
  const std::vector<int64_t> ends = integers(a.indptr.slice(0, at, at + 2));
  fail(ErrorKind::value, w.name, ": indptr: ", w.axis, " ", at, " has the elements ", ends[0],
       " to ", ends[1], ", expected the next part of the ", a.indices.size(), " stored: from ",
       at ? "where the one before ends" : "0",
       at + 2 == a.indptr.size() ? ", to their end" : ", in ascending order");
}

[[noreturn]] void fail_by_indices(const Words& w, const Arrays& a, int64_t at, int64_t other,
                                  bool only_repeated) {
  const std::vector<int64_t> ends = integers(a.indptr.slice(0, at, at + 2));
  const std::vector<int64_t> own = integers(a.indices.slice(0, ends[0], ends[1]));
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] < 0 || own[i] >= other)
      fail(ErrorKind::value, w.name, ": indices: ", w.axis, " ", at, " names ", w.other, " ",
           own[i], " (element ", ends[0] + int64_t(i), "), expected one in [0, ", other, ")");
    if (i == 0 || own[i] > own[i - 1]) continue;
    if (own[i] < own[i - 1])
      fail(ErrorKind::value, w.name, ": indices: ", w.axis, " ", at, " names ", w.other, " ",
           own[i], " behind ", own[i - 1], " (element ", ends[0] + int64_t(i),
           "), expected ascending order; sort them with their data");
    if (only_repeated)
      fail(ErrorKind::value, w.name, ": indices: ", w.axis, " ", at, " names ", w.other, " ",
           own[i], " twice (element ", ends[0] + int64_t(i),
           "); sum_duplicates=True adds such elements up");
  }
  fail(ErrorKind::internal, w.name, ": the fault of ", w.axis, " ", at, " is gone");
}

// Neighbours with one index become one, on the host, since how many are left decides sizes.
Arrays summed(const Arrays& a) {
  const Tensor data = on_host(a.data), indices = on_host(a.indices);
  const std::vector<int64_t> indptr = integers(a.indptr), columns = integers(indices);
  const host::Elements elements(data);
  std::vector<double> sums;
  std::vector<int64_t> kept, ends{0};
  for (size_t row = 0; row + 1 < indptr.size(); ++row) {
    for (int64_t k = indptr[row]; k < indptr[row + 1]; ++k) {
      const bool repeats = k > indptr[row] && columns[size_t(k)] == columns[size_t(k) - 1];
      if (repeats) {
        sums.back() += elements[k];
        continue;
      }
      kept.push_back(columns[size_t(k)]);
      sums.push_back(elements[k]);
    }
    ends.push_back(int64_t(kept.size()));
  }
  const auto made = std::make_shared<std::array<Tensor, 3>>();
  const auto count = int64_t(kept.size());
  Tensor new_data(a.data.dtype(), {count}), new_indices(a.indices.dtype(), {count}),
      new_indptr(a.indptr.dtype(), {int64_t(ends.size())});
  for (int64_t k = 0; k < count; ++k) {
    host::Elements(new_data).set(k, sums[size_t(k)]);
    host::Elements(new_indices).set_integer(k, kept[size_t(k)]);
  }
  for (size_t row = 0; row < ends.size(); ++row)
    host::Elements(new_indptr).set_integer(int64_t(row), ends[row]);
  const Device device = a.data.device();
  *made = {new_data.to(device), new_indices.to(device), new_indptr.to(device)};
  return {(*made)[0], (*made)[1], (*made)[2], made};
}

}  // namespace

std::vector<int64_t> integers(const TensorView& t) {
  const Tensor host = on_host(t);
  const host::Elements elements(host);
  std::vector<int64_t> all;
  all.reserve(size_t(t.size()));
  for (int64_t i = 0; i < t.size(); ++i) all.push_back(elements.integer(i));
  return all;
}

Arrays contiguous(Arrays a, bool is_csr) {
  const std::string_view name = words(is_csr).name;
  op::checked_csr(name, a.data, a.indices, a.indptr, 0);
  for (const auto& [what, t] : {std::pair("indices", &a.indices), {"indptr", &a.indptr}})
    if (t->device() != a.data.device())
      fail(ErrorKind::value, name, ": ", what, " is on ", t->device(), " and data on ",
           a.data.device(), "; move them to one device");
  const auto kept = std::make_shared<std::pair<std::shared_ptr<const void>, std::vector<Tensor>>>();
  kept->first = std::move(a.owner);
  for (TensorView* t : {&a.data, &a.indices, &a.indptr})
    if (!t->is_contiguous()) *t = kept->second.emplace_back(copy(*t));
  a.owner = kept;
  return a;
}

Facts facts_of(const Arrays& a, int64_t other) {
  const std::vector<int64_t> report = report_of(a, other);
  return {fact(report, CsrFact::longest_row), fact(report, CsrFact::empty_rows)};
}

Facts checked(Arrays& a, int64_t size, int64_t other, bool is_csr, bool sums) {
  const Words w = words(is_csr);
  for (const int64_t n : {size, other})
    if (n < 0) fail(ErrorKind::value, w.name, ": shape must not be negative, got ", n);
  if (a.indptr.size() != size + 1)
    fail(ErrorKind::value, w.name, ": indptr must have ", size + 1, " elements, one more than ",
         w.axis, "s, got ", a.indptr.size());
  if (size == 0 && a.indices.size() > 0)
    fail(ErrorKind::value, w.name, ": a matrix without ", w.axis, "s stores nothing, got ",
         a.indices.size(), " elements");
  const std::vector<int64_t> report = report_of(a, other);
  if (const int64_t at = fact(report, CsrFact::bad_offsets); at < size) fail_by_offsets(w, a, at);
  if (const int64_t at = fact(report, CsrFact::bad_indices); at < size)
    fail_by_indices(w, a, at, other, false);
  const int64_t repeated = fact(report, CsrFact::repeated);
  if (repeated < size && !sums) fail_by_indices(w, a, repeated, other, true);
  if (repeated == size)
    return {fact(report, CsrFact::longest_row), fact(report, CsrFact::empty_rows)};
  a = summed(a);
  return facts_of(a, other);
}

}  // namespace tensorcraft::sparse
