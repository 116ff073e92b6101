// SPDX-License-Identifier: Apache-2.0
// What moves elements, and gates that read two of them.
#include "tensorcraft/kernels/embedding.cuh"
#include "tensorcraft/kernels/gated_activation.cuh"
#include "tensorcraft/kernels/gather.cuh"
#include "tensorcraft/kernels/pad.cuh"
#include "tensorcraft/kernels/permute.cuh"
#include "tensorcraft/kernels/scatter.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

template <class T>
void gates(Report& report, int64_t n, int64_t cols) {
  const Tensor x = filled<T>({n, 2 * cols}, 1);
  Tensor out = filled<T>({n, cols}, 2);
  T *px = data<T>(x), *po = data<T>(out);
  const auto name = [&](const char* op) { return join(op, ' ', x.dtype(), ' ', n, 'x', cols); };
  report.compare({name("silu_and_mul"),
                  {&out},
                  [&] { return tk::launch_silu_and_mul(px, po, n, cols, stream()); },
                  [&](std::string_view v) { silu_and_mul(out, x, {.variant = v}); }});
  report.compare({name("gelu_and_mul"),
                  {&out},
                  [&] { return tk::launch_gelu_and_mul(px, po, n, cols, stream()); },
                  [&](std::string_view v) { gelu_and_mul(out, x, {.variant = v}); }});
  report.compare({name("gelu_tanh_and_mul"),
                  {&out},
                  [&] { return tk::launch_gelu_tanh_and_mul(px, po, n, cols, stream()); },
                  [&](std::string_view v) {
                    gelu_and_mul(out, x, {.approximate = GeluApproximation::tanh, .variant = v});
                  }});
}

template <class T, class Id>
void lookups(Report& report, int64_t count, int64_t rows, int64_t cols) {
  const Tensor ids = filled<Id>({count}, 19, uint32_t(rows)), table = filled<T>({rows, cols}, 20);
  Tensor out = filled<T>({count, cols}, 21);
  report.compare({join("embedding ", table.dtype(), ' ', count, " of ", rows, 'x', cols),
                  {&out},
                  [&] {
                    return tk::launch_embedding(data<Id>(ids), data<T>(table), data<T>(out), count,
                                                rows, cols, stream());
                  },
                  [&](std::string_view v) { embedding(out, ids, table, {.variant = v}); }});
}

// Sizes of a dense array in front of an axis, along it, and behind it.
struct Sizes {
  int64_t outer, size, inner;
};

template <class T, class Id>
void taken(Report& report, const Sizes& s, int64_t count) {
  const Tensor x = filled<T>({s.outer, s.size, s.inner}, 1);
  const Tensor indices = filled<Id>({count}, 2, uint32_t(s.size));
  Tensor out = filled<T>({s.outer, count, s.inner}, 3);
  report.compare({join("take ", x.dtype(), ' ', s.outer, 'x', s.size, 'x', s.inner, ' ', count),
                  {&out},
                  [&] {
                    return tk::launch_take(data<T>(x), data<Id>(indices), data<T>(out), s.outer,
                                           s.size, s.inner, count, stream());
                  },
                  [&](std::string_view v) { take(out, x, indices, {.axis = 1, .variant = v}); }});
}

template <class T, class Id>
void scattered(Report& report, const Sizes& s, int64_t count) {
  using Operation = kernel::scatter::Operation;
  const Tensor x = filled<T>({s.outer, s.size, s.inner}, 1);
  const Tensor indices = filled<Id>({s.outer, count, s.inner}, 2, uint32_t(s.size));
  const Tensor updates = filled<T>({s.outer, count, s.inner}, 3);
  Tensor out = filled<T>({s.outer, s.size, s.inner}, 4);
  const T *px = data<T>(x), *pu = data<T>(updates);
  const Id* const pi = data<Id>(indices);
  T* const po = data<T>(out);
  const auto compare = [&](const char* how, ScatterReduction reduction, auto launcher) {
    report.compare(
        {join("scatter", how, ' ', x.dtype(), ' ', s.outer, 'x', s.size, 'x', s.inner, ' ', count),
         {&out},
         launcher,
         [&](std::string_view v) {
           scatter(out, x, indices, updates, {.axis = 1, .reduction = reduction, .variant = v});
         }});
  };
  compare("", ScatterReduction::none, [&] {
    return tk::launch_scatter(px, pi, pu, po, s.outer, s.size, s.inner, count, stream());
  });
  const auto combined = [&]<Operation operation>() {
    return tk::launch_scatter_combined<operation>(px, pi, pu, po, s.outer, s.size, s.inner, count,
                                                  stream());
  };
  compare(" add", ScatterReduction::add,
          [&] { return combined.template operator()<Operation::add>(); });
  compare(" multiply", ScatterReduction::multiply,
          [&] { return combined.template operator()<Operation::multiply>(); });
  compare(" max", ScatterReduction::max,
          [&] { return combined.template operator()<Operation::max>(); });
  compare(" min", ScatterReduction::min,
          [&] { return combined.template operator()<Operation::min>(); });
}

template <class T>
void padded(Report& report, int64_t rows, int64_t cols) {
  const Tensor x = filled<T>({rows, cols}, 1);
  Tensor out = filled<T>({rows + 3, cols + 5}, 2);
  report.compare(
      {join("pad ", x.dtype(), ' ', rows, 'x', cols),
       {&out},
       [&] {
         return tk::launch_pad(data<T>(x), data<T>(out), {{rows, 1, 2}, {cols, 2, 3}}, T(1.5f),
                               stream());
       },
       [&](std::string_view v) {
         pad(out, x,
             {.pad_width = {.before = {1, 2}, .after = {2, 3}}, .value = 1.5, .variant = v});
       }});
}

template <class T>
void transposed(Report& report, int64_t count, int64_t rows, int64_t cols) {
  const Tensor x = filled<T>({count, rows, cols}, 1);
  Tensor out = filled<T>({count, cols, rows}, 2);
  report.compare(
      {join("transpose ", x.dtype(), ' ', count, 'x', rows, 'x', cols),
       {&out},
       [&] { return tk::launch_transpose(data<T>(x), data<T>(out), rows, cols, count, stream()); },
       [&](std::string_view v) { transpose(out, x, {.variant = v}); }});
}

}  // namespace

void compare_moves(Report& report) {
  gates<bf16>(report, 4096, 8192);
  gates<float>(report, 333, 1001);
  lookups<bf16, int32_t>(report, 8192, 4096, 1024);
  lookups<float, int64_t>(report, 1000, 333, 101);
  taken<bf16, int64_t>(report, {16, 1000, 512}, 2000);
  taken<float, int32_t>(report, {100, 333, 1}, 77);
  scattered<float, int64_t>(report, {64, 1000, 32}, 500);
  scattered<bf16, int32_t>(report, {1000, 333, 1}, 77);
  scattered<int32_t, int64_t>(report, {8, 4, 5}, 100);  // many updates of few places
  padded<bf16>(report, 4096, 4096);
  padded<float>(report, 10000, 2);
  transposed<float>(report, 1, 4096, 4096);
  transposed<bf16>(report, 7, 333, 1001);
  transposed<int64_t>(report, 3, 5, 10000);
}

}  // namespace aot_routes
