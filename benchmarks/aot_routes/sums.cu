// SPDX-License-Identifier: Apache-2.0
// Reductions, sums along rows, the largest of a row, means of sequences.
#include "tensorcraft/kernels/cumulative_sum.cuh"
#include "tensorcraft/kernels/masked_mean.cuh"
#include "tensorcraft/kernels/reduce.cuh"
#include "tensorcraft/kernels/topk.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

struct Shape {
  int64_t outer, reduced, inner;
};

Tensor workspace_of(size_t bytes) {
  return Tensor(DType::uint8, {std::max(int64_t(bytes), int64_t(1))}, kGpu);
}

template <tk::Operation operation, class T>
void reduced(Report& report, const char* name, DType result, const Shape& s,
             const std::function<void(const Tensor&, const Tensor&, std::string_view)>& library) {
  using Out = typename kernel::reduce::Reducer<T, operation>::Out;
  const Tensor x = filled<T>({s.outer, s.reduced, s.inner}, 1);
  Tensor out(result, {s.outer, s.inner}, kGpu);
  const Tensor workspace =
      workspace_of(tk::reduce_workspace_bytes<operation>(data<T>(x), s.outer, s.reduced, s.inner));
  report.compare({join(name, ' ', x.dtype(), ' ', s.outer, 'x', s.reduced, 'x', s.inner),
                  {&out},
                  [&] {
                    return tk::launch_reduce<operation>(data<T>(x), data<Out>(out), s.outer,
                                                        s.reduced, s.inner, workspace.data(), 0.0f,
                                                        stream());
                  },
                  [&](std::string_view v) { library(out, x, v); }});
}

template <class Options>
using Function = void (*)(const TensorView&, const TensorView&, const Options&);

template <class T>
void reductions(Report& report, const Shape& s) {
  const DType dtype = dtype_of(T{});
  const auto by = []<class Options>(Function<Options> function, const Options& given) {
    return [=](const Tensor& out, const Tensor& x, std::string_view v) {
      Options options = given;
      options.variant = v;
      function(out, x, options);
    };
  };
  const ReduceOptions all_of{.axis = Dims{1}};
  const SumOptions total{.axis = Dims{1}};
  const ArgmaxOptions place{.axis = 1};
  const VarOptions spread{.axis = Dims{1}};
  using O = tk::Operation;
  reduced<O::sum, T>(report, "sum", dtype, s, by(Function<SumOptions>(sum), total));
  reduced<O::prod, T>(report, "prod", dtype, s, by(Function<SumOptions>(prod), total));
  reduced<O::mean, T>(report, "mean", dtype, s, by(Function<ReduceOptions>(mean), all_of));
  reduced<O::max, T>(report, "max", dtype, s, by(Function<ReduceOptions>(max), all_of));
  reduced<O::min, T>(report, "min", dtype, s, by(Function<ReduceOptions>(min), all_of));
  reduced<O::any, T>(report, "any", DType::bool_, s, by(Function<ReduceOptions>(any), all_of));
  reduced<O::all, T>(report, "all", DType::bool_, s, by(Function<ReduceOptions>(all), all_of));
  reduced<O::count, T>(report, "count_nonzero", DType::int64, s,
                       by(Function<ReduceOptions>(count_nonzero), all_of));
  reduced<O::argmax, T>(report, "argmax", DType::int64, s,
                        by(Function<ArgmaxOptions>(argmax), place));
  reduced<O::argmin, T>(report, "argmin", DType::int64, s,
                        by(Function<ArgmaxOptions>(argmin), place));
  reduced<O::var, T>(report, "var", dtype, s, by(Function<VarOptions>(var), spread));
  reduced<O::std, T>(report, "std", dtype, s, by(Function<VarOptions>(tensorcraft::std), spread));
}

template <class T>
void along_rows(Report& report, int64_t n, int64_t cols) {
  const Tensor x = filled<T>({n, cols}, 25);
  Tensor out = filled<T>({n, cols}, 26);
  const auto name = [&](const char* op) { return join(op, ' ', x.dtype(), ' ', n, 'x', cols); };
  const Tensor workspace = workspace_of(tk::cumulative_sum_workspace_bytes(data<T>(x), n, cols));
  report.compare({name("cumulative_sum"),
                  {&out},
                  [&] {
                    return tk::launch_cumulative_sum(data<T>(x), data<T>(out), n, cols,
                                                     workspace.data(), stream());
                  },
                  [&](std::string_view v) { cumulative_sum(out, x, {.axis = 1, .variant = v}); }});
  constexpr int64_t k = 8;
  Tensor largest = filled<T>({n, k}, 27), indices(DType::int64, {n, k}, kGpu);
  report.compare(
      {name("topk"),
       {&largest, &indices},
       [&] {
         return tk::launch_topk(data<T>(x), data<T>(largest), data<int64_t>(indices), n, cols, k,
                                stream());
       },
       [&](std::string_view v) { topk(largest, x, {.k = k, .indices = indices, .variant = v}); }});
}

template <class T, class Length>
void means(Report& report, int64_t batch, int64_t steps, int64_t cols) {
  const Tensor x = filled<T>({batch, steps, cols}, 22);
  const Tensor lengths = filled<Length>({batch}, 23, uint32_t(steps + 1));
  Tensor out = filled<T>({batch, cols}, 24);
  report.compare({join("masked_mean ", x.dtype(), ' ', batch, 'x', steps, 'x', cols),
                  {&out},
                  [&] {
                    return tk::launch_masked_mean(data<T>(x), data<Length>(lengths), data<T>(out),
                                                  batch, steps, cols, stream());
                  },
                  [&](std::string_view v) { masked_mean(out, x, lengths, {.variant = v}); }});
}

}  // namespace

void compare_sums(Report& report) {
  reductions<float>(report, {8192, 4096, 1});  // rows
  reductions<bf16>(report, {4, 4194304, 1});   // blocks share a row
  reductions<float>(report, {4, 4096, 1024});  // columns
  reductions<bf16>(report, {100000, 5, 3});    // few elements each
  reduced<tk::Operation::sum, int32_t>(report, "sum", DType::int64, {512, 1000, 1},
                                       [](const Tensor& out, const Tensor& x, auto v) {
                                         sum(out, x, SumOptions{.axis = Dims{1}, .variant = v});
                                       });
  along_rows<float>(report, 16384, 256);
  along_rows<float>(report, 16, 262144);
  along_rows<bf16>(report, 333, 1001);
  means<bf16, int32_t>(report, 64, 128, 1024);
  means<float, int64_t>(report, 33, 17, 100);
}

}  // namespace aot_routes
