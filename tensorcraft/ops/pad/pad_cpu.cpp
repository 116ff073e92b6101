// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pad/problem.hpp"

#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"

#include <algorithm>
#include <cstring>

namespace tensorcraft::kernel::pad {
namespace {

constexpr int64_t kGrainBytes = 64 * 1024;  // at least so many for a thread

// Elements [from, to) of one row of the output.
template <class T>
void write_run(const Params& p, const Place& row, int64_t from, int64_t to) {
  const int last = p.axes.count - 1;
  const int64_t out_step = p.axes.out_stride[last], x_step = p.axes.x_stride[last];
  T* const out = static_cast<T*>(p.out) + row.out;
  const auto value = T(p.value);
  const int64_t before = p.axes.before[last], inside = row.is_inside ? p.axes.inside[last] : 0;
  const int64_t begin = std::clamp(before, from, to), end = std::clamp(before + inside, begin, to);
  const auto fill = [&](int64_t first, int64_t past) {
    if (out_step == 1) return void(std::fill(out + first, out + past, value));
    for (int64_t i = first; i < past; ++i) out[i * out_step] = value;
  };
  fill(from, begin);
  if (begin < end) {
    const T* const x = static_cast<const T*>(p.x) + row.x;
    if (out_step == 1 && x_step == 1)
      std::memcpy(out + begin, x + (begin - before), size_t(end - begin) * sizeof(T));
    else
      for (int64_t i = begin; i < end; ++i) out[i * out_step] = x[(i - before) * x_step];
  }
  fill(end, to);
}

// Rows, cut so that all threads have some.
template <class T>
void write(const Params& p) {
  const int last = p.axes.count - 1;
  const int64_t length = p.axes.size[last];
  const int64_t run = std::min(length, kGrainBytes / int64_t(sizeof(T))),
                cuts = div_ceil(length, run), runs = p.count / length * cuts;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (run * int64_t(sizeof(T))));
  host::parallel_for(runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % cuts * run;
      write_run<T>(p, p.axes.place(i / cuts, last), from, std::min(from + run, length));
    }
  });
}

}  // namespace

void cpu(const Problem& q) {
  const Params p = params(q);
  host::with_bits_of_size(dtype_bytes(q.x.dtype()), [&]<class T>(T*) { write<T>(p); });
}

void reference(const Problem& q) {
  const host::Elements to(q.out), from(q.x);
  for (int64_t i = 0; i < q.out.size(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    bool is_inside = true;
    for (int axis = q.x.rank() - 1; axis >= 0; --axis) {
      const int64_t n = rest % q.out.shape(axis) - q.before[axis];
      rest /= q.out.shape(axis);
      is_inside = is_inside && n >= 0 && n < q.x.shape(axis);
      at += n * step;
      step *= q.x.shape(axis);
    }
    const void* source = is_inside ? static_cast<const void*>(from.address(at)) : &q.value;
    std::memcpy(to.address(i), source, dtype_bytes(q.x.dtype()));
  }
}

}  // namespace tensorcraft::kernel::pad
