// SPDX-License-Identifier: Apache-2.0
// Softmax and its forms, norms of rows, cross-entropy.
#include "tensorcraft/kernels/cross_entropy.cuh"
#include "tensorcraft/kernels/l2_normalize.cuh"
#include "tensorcraft/kernels/norm.cuh"
#include "tensorcraft/kernels/softmax.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

template <class T>
void softmaxes(Report& report, const char* type, int64_t n, int64_t cols) {
  const Tensor x = filled<T>({n, cols}, 1);
  Tensor out = filled<T>({n, cols}, 5), sums = filled<T>({n}, 6);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', cols); };
  T *px = data<T>(x), *po = data<T>(out), *ps = data<T>(sums);
  report.compare({name("softmax"),
                  {&out},
                  [&] { return tk::launch_softmax(px, po, n, cols, stream()); },
                  [&](std::string_view v) { softmax(out, x, {.variant = v}); }});
  report.compare({name("log_softmax"),
                  {&out},
                  [&] { return tk::launch_log_softmax(px, po, n, cols, stream()); },
                  [&](std::string_view v) { log_softmax(out, x, {.variant = v}); }});
  report.compare({name("logsumexp"),
                  {&sums},
                  [&] { return tk::launch_logsumexp(px, ps, n, cols, stream()); },
                  [&](std::string_view v) { logsumexp(sums, x, {.variant = v}); }});
}

template <class T>
void norms(Report& report, const char* type, int64_t n, int64_t cols) {
  const Tensor x = filled<T>({n, cols}, 1), w = filled<T>({cols}, 2), b = filled<T>({cols}, 3);
  const Tensor r = filled<T>({n, cols}, 4);
  Tensor out = filled<T>({n, cols}, 5), sum = filled<T>({n, cols}, 6);
  Tensor mean = filled<float>({n}, 7), rstd = filled<float>({n}, 8);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', cols); };
  T *px = data<T>(x), *pw = data<T>(w), *pb = data<T>(b), *pr = data<T>(r), *po = data<T>(out);
  T* const ps = data<T>(sum);
  report.compare({name("l2_normalize"),
                  {&out},
                  [&] { return tk::launch_l2_normalize(px, po, n, cols, 1e-12f, stream()); },
                  [&](std::string_view v) { l2_normalize(out, x, {.variant = v}); }});
  report.compare({name("rms_norm"),
                  {&out},
                  [&] { return tk::launch_rms_norm(px, pw, po, n, cols, 1e-6f, stream()); },
                  [&](std::string_view v) { rms_norm(out, x, {.weight = w, .variant = v}); }});
  report.compare(
      {name("rms_norm residual"),
       {&out, &sum},
       [&] { return tk::launch_rms_norm_residual(px, pr, pw, po, ps, n, cols, 1e-6f, stream()); },
       [&](std::string_view v) {
         rms_norm(out, x, {.weight = w, .residual = r, .residual_out = sum, .variant = v});
       }});
  report.compare({name("layer_norm"),
                  {&out, &mean, &rstd},
                  [&] {
                    return tk::launch_layer_norm(px, pw, pb, po, n, cols, 1e-5f, data<float>(mean),
                                                 data<float>(rstd), stream());
                  },
                  [&](std::string_view v) {
                    layer_norm(out, x,
                               {.weight = w, .bias = b, .mean = mean, .rstd = rstd, .variant = v});
                  }});
  report.compare(
      {name("layer_norm residual"),
       {&out, &sum},
       [&] {
         return tk::launch_layer_norm_residual(px, pr, pw, pb, po, ps, n, cols, 1e-5f, stream());
       },
       [&](std::string_view v) {
         layer_norm(out, x,
                    {.weight = w, .bias = b, .residual = r, .residual_out = sum, .variant = v});
       }});
}

template <class T, class Id>
void losses(Report& report, const char* type, int64_t n, int64_t classes) {
  const Tensor x = filled<T>({n, classes}, 1), targets = filled<Id>({n}, 2, uint32_t(classes));
  Tensor out = filled<float>({n}, 3), lse = filled<float>({n}, 4), mean = filled<float>({1}, 5);
  const TensorView number(mean.data(), DType::float32, {}, kGpu);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', classes); };
  const auto launch = [&] {
    return tk::launch_cross_entropy(data<T>(x), data<Id>(targets), data<float>(out),
                                    data<float>(lse), n, classes, -100, stream());
  };
  report.compare({name("cross_entropy"), {&out, &lse}, launch, [&](std::string_view v) {
                    cross_entropy(out, x, targets,
                                  {.reduction = LossReduction::none, .lse = lse, .variant = v});
                  }});
  report.compare(
      {name("mean_loss"),
       {&mean},
       [&] {
         const auto variant = launch();
         tk::launch_mean_loss(data<float>(out), data<float>(mean), n, stream());
         return variant;
       },
       [&](std::string_view v) { cross_entropy(number, x, targets, {.lse = lse, .variant = v}); }});
}

}  // namespace

void compare_rows(Report& report) {
  softmaxes<float>(report, "float32", 8192, 1024);
  softmaxes<float>(report, "float32", 1000, 1000);
  softmaxes<bf16>(report, "bfloat16", 8192, 4096);
  softmaxes<bf16>(report, "bfloat16", 333, 1001);
  softmaxes<f16>(report, "float16", 64, 100000);
  norms<float>(report, "float32", 8192, 1024);
  norms<float>(report, "float32", 1000, 1000);
  norms<bf16>(report, "bfloat16", 8192, 4096);
  norms<bf16>(report, "bfloat16", 333, 1001);
  losses<bf16, int64_t>(report, "bfloat16", 4096, 32000);
  losses<float, int32_t>(report, "float32", 1000, 1001);
}

}  // namespace aot_routes
