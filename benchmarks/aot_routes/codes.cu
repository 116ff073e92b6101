// SPDX-License-Identifier: Apache-2.0
// What stores codes of 8 bits and their scales: norms, quantisation; and back.
#include "tensorcraft/kernels/norm.cuh"
#include "tensorcraft/kernels/quantize.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

// One scale each row, or one scale in all.
template <class T>
void norms(Report& report, const char* type, int64_t n, int64_t cols) {
  constexpr DType kCodes = DType::float8_e4m3fn;
  const Tensor x = filled<T>({n, cols}, 1), w = filled<T>({cols}, 2), b = filled<T>({cols}, 3);
  const Tensor r = filled<T>({n, cols}, 4);
  Tensor out(kCodes, {n, cols}, kGpu), scales(DType::float32, {n}, kGpu);
  Tensor sum = filled<T>({n, cols}, 5);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', cols); };
  T *px = data<T>(x), *pw = data<T>(w), *pb = data<T>(b), *pr = data<T>(r), *ps = data<T>(sum);
  e4m3* const po = data<e4m3>(out);
  const tk::CodeScale each{.scales = data<float>(scales)}, one{.scale = 0.0125f};
  report.compare(
      {name("rms_norm codes"),
       {&out, &scales},
       [&] { return tk::launch_rms_norm_quantized(px, pw, po, each, n, cols, 1e-6f, stream()); },
       [&](std::string_view v) {
         rms_norm(
             out, x,
             {.weight = w, .out_dtype = kCodes, .per_token = true, .scales = scales, .variant = v});
       }});
  report.compare({name("rms_norm residual codes"),
                  {&out, &sum},
                  [&] {
                    return tk::launch_rms_norm_residual_quantized(px, pr, pw, po, ps, one, n, cols,
                                                                  1e-6f, stream());
                  },
                  [&](std::string_view v) {
                    rms_norm(out, x,
                             {.weight = w,
                              .residual = r,
                              .out_dtype = kCodes,
                              .scale = one.scale,
                              .residual_out = sum,
                              .variant = v});
                  }});
  report.compare({name("layer_norm codes"),
                  {&out, &scales},
                  [&] {
                    return tk::launch_layer_norm_quantized(px, pw, pb, po, each, n, cols, 1e-5f,
                                                           nullptr, nullptr, stream());
                  },
                  [&](std::string_view v) {
                    layer_norm(out, x,
                               {.weight = w,
                                .bias = b,
                                .out_dtype = kCodes,
                                .per_token = true,
                                .scales = scales,
                                .variant = v});
                  }});
  report.compare({name("layer_norm residual codes"),
                  {&out, &sum},
                  [&] {
                    return tk::launch_layer_norm_residual_quantized(px, pr, pw, pb, po, ps, one, n,
                                                                    cols, 1e-5f, stream());
                  },
                  [&](std::string_view v) {
                    layer_norm(out, x,
                               {.weight = w,
                                .bias = b,
                                .residual = r,
                                .out_dtype = kCodes,
                                .scale = one.scale,
                                .residual_out = sum,
                                .variant = v});
                  }});
}

template <class T, class Q>
void quantized(Report& report, const char* type, DType codes, int64_t n, int64_t cols) {
  const Tensor x = filled<T>({n, cols}, 1);
  const int64_t blocks = (cols + 127) / 128, lines = (n + 3) / 4 * 4;
  Tensor out(codes, {n, cols}, kGpu), back = filled<T>({n, cols}, 2);
  Tensor tokens(DType::float32, {n, 1}, kGpu), rows(DType::float32, {n, blocks}, kGpu);
  Tensor columns(DType::float32, {blocks, lines}, kGpu);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', cols); };
  T *px = data<T>(x), *pb = data<T>(back);
  Q* const po = data<Q>(out);
  report.compare(
      {name("quantize token"),
       {&out, &tokens},
       [&] {
         return tk::launch_quantize_tokens(px, po, data<float>(tokens), n, cols, false, stream());
       },
       [&](std::string_view v) {
         quantize(
             out, x,
             {.dtype = codes, .scheme = QuantizeScheme::token, .scales = tokens, .variant = v});
       }});
  report.compare(
      {name("dequantize token"),
       {&back},
       [&] { return tk::launch_dequantize_tokens(po, data<float>(tokens), pb, n, cols, stream()); },
       [&](std::string_view v) {
         dequantize(back, out, tokens,
                    {.dtype = x.dtype(), .scheme = QuantizeScheme::token, .variant = v});
       }});
  for (const bool column : {false, true}) {
    Tensor& scales = column ? columns : rows;
    const ScalesLayout layout = column ? ScalesLayout::column : ScalesLayout::row;
    const char* lie = column ? " column" : "";
    report.compare({name("quantize block") + lie,
                    {&out, &scales},
                    [&] {
                      return tk::launch_quantize_blocks(px, po, data<float>(scales), n, cols,
                                                        column, true, stream());
                    },
                    [&](std::string_view v) {
                      quantize(out, x,
                               {.dtype = codes,
                                .scheme = QuantizeScheme::block,
                                .scales_layout = layout,
                                .power_of_two = true,
                                .scales = scales,
                                .variant = v});
                    }});
    report.compare({name("dequantize block") + lie,
                    {&back},
                    [&] {
                      return tk::launch_dequantize_blocks(po, data<float>(scales), pb, n, cols,
                                                          column, stream());
                    },
                    [&](std::string_view v) {
                      dequantize(back, out, scales,
                                 {.dtype = x.dtype(),
                                  .scheme = QuantizeScheme::block,
                                  .scales_layout = layout,
                                  .variant = v});
                    }});
  }
}

}  // namespace

void compare_codes(Report& report) {
  norms<bf16>(report, "bfloat16", 8192, 4096);
  norms<bf16>(report, "bfloat16", 333, 1001);
  quantized<bf16, e4m3>(report, "bfloat16", DType::float8_e4m3fn, 8192, 4096);
  quantized<float, int8_t>(report, "float32", DType::int8, 333, 1001);
}

}  // namespace aot_routes
