// SPDX-License-Identifier: Apache-2.0
// Norms of channels. Channels and groups are many, so that the library too gives each one block: a
// cluster adds in another order.
#include "tensorcraft/kernels/batch_norm.cuh"
#include "tensorcraft/kernels/group_norm.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

constexpr int64_t kChannels = 512;

template <class T>
void batches(Report& report, const char* type, int64_t batch, int64_t spatial) {
  const Dims shape{batch, kChannels, spatial};
  const Tensor x = filled<T>(shape, 1), grad = filled<T>(shape, 2);
  const Tensor w = filled<float>({kChannels}, 3), b = filled<float>({kChannels}, 4);
  Tensor running = filled<float>({kChannels}, 5), variance = filled<float>({kChannels}, 6);
  Tensor out = filled<T>(shape, 7);
  Tensor mean = filled<float>({kChannels}, 8), rstd = filled<float>({kChannels}, 9);
  Tensor grad_w = filled<float>({kChannels}, 10), grad_b = filled<float>({kChannels}, 11);
  const auto name = [&](const char* op) {
    return join(op, ' ', type, ' ', batch, 'x', kChannels, 'x', spatial);
  };
  float *pw = data<float>(w), *pb = data<float>(b), *pm = data<float>(running),
        *pv = data<float>(variance);
  const auto ones = [&] {
    const std::vector<float> values(kChannels, 1);
    for (Tensor* t : {&running, &variance}) t->copy_from_host(values.data(), t->nbytes());
  };
  ones();
  report.compare({name("batch_norm"),
                  {&out},
                  [&] {
                    return tk::launch_batch_norm(data<T>(x), pm, pv, pw, pb, data<T>(out), batch,
                                                 kChannels, spatial, 1e-5f, stream());
                  },
                  [&](std::string_view v) {
                    batch_norm(out, x,
                               {.running_mean = running,
                                .running_var = variance,
                                .weight = w,
                                .bias = b,
                                .variant = v});
                  }});
  const tk::BatchStatistics<float> statistics{
      .mean = data<float>(mean), .rstd = data<float>(rstd), .running_mean = pm, .running_var = pv};
  report.compare({name("batch_norm training"),
                  {&out, &mean, &rstd, &running, &variance},
                  [&] {
                    return tk::launch_batch_norm_training(data<T>(x), pw, pb, data<T>(out),
                                                          statistics, batch, kChannels, spatial,
                                                          1e-5f, stream());
                  },
                  [&](std::string_view v) {
                    batch_norm(out, x,
                               {.running_mean = running,
                                .running_var = variance,
                                .weight = w,
                                .bias = b,
                                .training = true,
                                .mean = mean,
                                .rstd = rstd,
                                .running_mean_out = running,
                                .running_var_out = variance,
                                .variant = v});
                  },
                  ones});
  // With the mean and rstd that training left.
  report.compare({name("batch_norm backward"),
                  {&out, &grad_w, &grad_b},
                  [&] {
                    return tk::launch_batch_norm_backward(
                        data<T>(grad), data<T>(x), pw, data<float>(mean), data<float>(rstd),
                        data<T>(out), data<float>(grad_w), data<float>(grad_b), batch, kChannels,
                        spatial, stream());
                  },
                  [&](std::string_view v) {
                    batch_norm_backward(out, grad, x,
                                        {.weight = w,
                                         .mean = mean,
                                         .rstd = rstd,
                                         .grad_weight = grad_w,
                                         .grad_bias = grad_b,
                                         .variant = v});
                  }});
}

template <class T>
void groups(Report& report, const char* type, int64_t batch, int64_t groups, int64_t spatial) {
  const Tensor x = filled<T>({batch, kChannels, spatial}, 1);
  const Tensor w = filled<T>({kChannels}, 3), b = filled<T>({kChannels}, 4);
  Tensor out = filled<T>({batch, kChannels, spatial}, 5);
  report.compare(
      {join("group_norm ", type, ' ', batch, 'x', groups, " of ", kChannels, 'x', spatial),
       {&out},
       [&] {
         return tk::launch_group_norm(data<T>(x), data<T>(w), data<T>(b), data<T>(out), batch,
                                      kChannels, spatial, groups, 1e-5f, stream());
       },
       [&](std::string_view v) {
         group_norm(out, x, {.num_groups = groups, .weight = w, .bias = b, .variant = v});
       }});
}

}  // namespace

void compare_channels(Report& report) {
  batches<bf16>(report, "bfloat16", 16, 1024);
  batches<float>(report, "float32", 7, 49);
  batches<f16>(report, "float16", 64, 1);
  groups<bf16>(report, "bfloat16", 16, 32, 1024);
  groups<bf16>(report, "bfloat16", 16, 32, 2048);
  groups<float>(report, "float32", 33, 16, 49);
  groups<f16>(report, "float16", 128, 4, 131);
}

}  // namespace aot_routes
