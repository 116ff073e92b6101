// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/scatter/problem.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/scatter/update.cuh"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace tensorcraft::kernel::scatter {
namespace {

constexpr int64_t kGrainElements = 16384;  // at least so many for a thread

int64_t index_at(const void* indices, int bytes, int64_t offset) {
  return bytes == 4 ? static_cast<const int32_t*>(indices)[offset]
                    : static_cast<const int64_t*>(indices)[offset];
}

void check_indices(const Problem& q) {
  const RowMap map = op::element_map(q.indices);
  const int64_t size = q.x.shape(q.axis);
  const int bytes = int(dtype_bytes(q.indices.dtype()));
  for (int64_t i = 0; i < q.indices.size(); ++i) {
    const int64_t index = index_at(q.indices.data(), bytes, map.offset(i));
    if (position(index, size) < 0)
      fail(ErrorKind::index, "scatter: indices: element ", i, " is ", index, ", expected [", -size,
           ", ", size, "), the axis of x");
  }
}

// Calls f(lines) with some lines at a time, if those are neighbours, over all cores.
template <class F>
void for_lines(const Params& p, F&& f) {
  constexpr int64_t kNeighbours = 64;
  const int64_t some =
      p.is_axis_inner ? 1 : std::clamp<int64_t>(4 * kGrainElements / p.size, 1, kNeighbours);
  const int64_t grain = std::max<int64_t>(some, kGrainElements / (p.size + p.num_updates));
  host::parallel_for(p.num_lines, grain, [&](int64_t begin, int64_t end) {
    std::vector<Offsets> lines;
    for (int64_t at = begin; at < end; at += some) {
      lines.clear();
      for (int64_t i = at; i < std::min(at + some, end); ++i) lines.push_back(p.lines.offsets(i));
      f(std::span<const Offsets>(lines));
    }
  });
}

// Calls f(line, i) for n elements of each line, neighbours in memory one behind the other.
template <class F>
void for_elements(const Params& p, std::span<const Offsets> lines, int64_t n, F&& f) {
  if (p.is_axis_inner) {
    for (size_t line = 0; line < lines.size(); ++line)
      for (int64_t i = 0; i < n; ++i) f(line, i);
  } else {
    for (int64_t i = 0; i < n; ++i)
      for (size_t line = 0; line < lines.size(); ++line) f(line, i);
  }
}

template <class T>
void copy_lines(const Params& p, std::span<const Offsets> lines) {
  const T* x = static_cast<const T*>(p.x);
  T* out = static_cast<T*>(p.out);
  if (p.is_in_place) return;
  if (p.is_axis_inner && p.x_step == 1 && p.out_step == 1) {
    for (const Offsets& at : lines) std::memcpy(out + at.out, x + at.x, size_t(p.size) * sizeof(T));
    return;
  }
  for_elements(p, lines, p.size, [&](size_t line, int64_t i) {
    out[lines[line].out + i * p.out_step] = x[lines[line].x + i * p.x_step];
  });
}

// f(line, place, update) in the order of the updates of a line.
template <class T, class F>
void for_updates(const Params& p, std::span<const Offsets> lines, F&& f) {
  const T* updates = static_cast<const T*>(p.updates);
  for_elements(p, lines, p.num_updates, [&](size_t line, int64_t j) {
    const Offsets& at = lines[line];
    const int64_t index = index_at(p.indices, p.index_bytes, at.index + j * p.index_step);
    f(line, position(index, p.size), updates[at.update + j * p.update_step]);
  });
}

template <class T>
void place(const Params& p) {
  T* out = static_cast<T*>(p.out);
  for_lines(p, [&](std::span<const Offsets> lines) {
    copy_lines<T>(p, lines);
    for_updates<T>(p, lines, [&](size_t line, int64_t place, T update) {
      out[lines[line].out + place * p.out_step] = update;
    });
  });
}

template <class T>
void reduce(const Params& p) {
  T* out = static_cast<T*>(p.out);
  for_lines(p, [&](std::span<const Offsets> lines) {
    copy_lines<T>(p, lines);
    std::vector<Sum<T>> sums(lines.size() * size_t(p.size));
    std::vector<uint8_t> is_named(sums.size());
    const auto at = [&](size_t line, int64_t place) {
      return line * size_t(p.size) + size_t(place);
    };
    const auto result = [&](size_t line, int64_t place) -> T& {
      return out[lines[line].out + place * p.out_step];
    };
    for_updates<T>(p, lines, [&](size_t line, int64_t place, T update) {
      const size_t i = at(line, place);
      const Sum<T> before = is_named[i] ? sums[i] : Sum<T>(result(line, place));
      sums[i] = combine(p.operation, before, Sum<T>(update));
      is_named[i] = 1;
    });
    for_elements(p, lines, p.size, [&](size_t line, int64_t place) {
      const size_t i = at(line, place);
      if (is_named[i]) result(line, place) = T(sums[i]);
    });
  });
}

}  // namespace

void cpu(const Problem& q) {
  check_indices(q);
  const Params p = params(q);
  if (q.operation != Operation::none) {
    host::with_element_type(q.x.dtype(), [&]<class T>(T*) {
      if constexpr (!std::is_same_v<T, bool>) reduce<T>(p);
    });
    return;
  }
  host::with_bits_of_size(dtype_bytes(q.x.dtype()), [&]<class T>(T*) { place<T>(p); });
}

void reference(const Problem& q) {
  check_indices(q);
  const host::Elements to(q.out), from(q.x), indices(q.indices), updates(q.updates);
  const size_t bytes = dtype_bytes(q.x.dtype());
  // Element i of the indices names this element of x.
  const auto named = [&](int64_t i) {
    int64_t rest = i, at = 0, step = 1;
    for (int axis = q.x.rank() - 1; axis >= 0; --axis) {
      const int64_t n = rest % q.indices.shape(axis);
      rest /= q.indices.shape(axis);
      at += (axis == q.axis ? position(indices.integer(i), q.x.shape(axis)) : n) * step;
      step *= q.x.shape(axis);
    }
    return at;
  };
  if (q.out.data() != q.x.data())
    for (int64_t i = 0; i < q.x.size(); ++i) std::memcpy(to.address(i), from.address(i), bytes);
  if (q.operation == Operation::none) {
    for (int64_t i = 0; i < q.indices.size(); ++i)
      std::memcpy(to.address(named(i)), updates.address(i), bytes);
    return;
  }
  const bool is_float = is_floating(q.x.dtype());
  std::vector<double> sums(size_t(is_float ? q.x.size() : 0));
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = from[int64_t(i)];
  std::vector<bool> is_named(sums.size());
  for (int64_t i = 0; i < q.indices.size(); ++i) {
    const int64_t at = named(i);
    if (is_float) {
      sums[size_t(at)] = combine(q.operation, sums[size_t(at)], updates[i]);
      is_named[size_t(at)] = true;
    } else {
      to.set_integer(at, combine(q.operation, to.integer(at), updates.integer(i)));
    }
  }
  for (size_t i = 0; i < sums.size(); ++i)
    if (is_named[i]) to.set(int64_t(i), sums[i]);
}

}  // namespace tensorcraft::kernel::scatter
