// SPDX-License-Identifier: Apache-2.0
// Matrix products, attention, rotary embedding.
#include "tensorcraft/kernels/attention.cuh"
#include "tensorcraft/kernels/gemm.cuh"
#include "tensorcraft/kernels/gemm_grouped.cuh"
#include "tensorcraft/kernels/gemm_interface.cuh"
#include "tensorcraft/kernels/rope.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

// 0, step, 2 step, ...
Tensor ascending(int64_t count, int64_t step) {
  Tensor t(DType::int32, {count}, kGpu);
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = int32_t(int64_t(i) * step);
  t.copy_from_host(values.data(), t.nbytes());
  return t;
}

template <class T>
void products(Report& report, tk::GemmVersion version, int64_t size) {
  const Tensor a = filled<T>({size, size}, 6), b = filled<T>({size, size}, 7);
  Tensor d = filled<T>({size, size}, 8);
  report.compare({join("gemm ", a.dtype(), ' ', size),
                  {&d},
                  [&] {
                    return tk::launch_gemm(data<T>(a), data<T>(b), data<T>(d), size, size, size,
                                           0.5f, 0.0f, version, stream());
                  },
                  [&](std::string_view v) { gemm(d, a, b, {.alpha = 0.5f, .variant = v}); }});
}

// Groups of any size, of which some are empty, and as many first rows of each matrix.
template <class T>
void grouped_products(Report& report, int64_t groups, int64_t rows, int64_t n, int64_t k) {
  const Tensor b = filled<T>({groups, n, k}, 10);
  const Tensor sizes = filled<int32_t>({groups}, 11, uint32_t(rows + 1));
  const int64_t all = groups * rows;
  const Tensor a = filled<T>({all, k}, 12), apart = filled<T>({groups, rows, k}, 13);
  Tensor d = filled<T>({all, n}, 14), d_apart = filled<T>({groups, rows, n}, 15);
  const std::string size = join(b.dtype(), ' ', groups, 'x', rows, ' ', n, 'x', k);
  report.compare({join("grouped_gemm ", size),
                  {&d},
                  [&] {
                    return tk::execute_grouped(data<T>(a), data<T>(b), data<T>(d),
                                               data<int32_t>(sizes), groups, all, n, k, {},
                                               stream());
                  },
                  [&](std::string_view v) {
                    grouped_gemm(d, a, b, {.sizes = sizes, .transpose_b = true, .variant = v});
                  }});
  const Tensor offsets = ascending(groups + 1, rows);
  report.compare({join("grouped_gemm of offsets ", size),
                  {&d},
                  [&] {
                    return tk::launch_grouped_gemm(data<T>(a), data<T>(b), data<T>(d),
                                                   data<int32_t>(offsets), groups, all, n, k, {},
                                                   stream());
                  },
                  [&](std::string_view v) {
                    grouped_gemm(d, a, b, {.offsets = offsets, .transpose_b = true, .variant = v});
                  }});
  report.compare({join("masked_gemm ", size),
                  {&d_apart},
                  [&] {
                    return tk::launch_masked_gemm(data<T>(apart), data<T>(b), data<T>(d_apart),
                                                  data<int32_t>(sizes), groups, rows, n, k, {},
                                                  stream());
                  },
                  [&](std::string_view v) {
                    masked_gemm(d_apart, apart, b, sizes, {.transpose_b = true, .variant = v});
                  }});
}

// GEMMInterface<e4m3> is not here: it runs thread_tiled, which the library has not for float8.
// examples/aot runs it.
template <class T>
void interface(Report& report, MemoryLayout layout, int64_t size) {
  const Tensor a = filled<T>({size, size}, 6), b = filled<T>({size, size}, 7);
  const Tensor c = filled<T>({size, size}, 8);
  Tensor d = filled<T>({size, size}, 9);
  report.compare(
      {join("GEMMInterface ", a.dtype(), ' ', size, " layout ", int(layout)),
       {&d},
       [&] {
         return tk::GEMMInterface<T>::execute(data<T>(a), data<T>(b), data<T>(c), data<T>(d), size,
                                              size, size, 0.5f, 2.0f, layout, stream());
       },
       [&](std::string_view v) {
         gemm(d, a, b, with_layout(layout, {.c = c, .alpha = 0.5f, .beta = 2.0f, .variant = v}));
       }});
}

template <class T>
void attentions(Report& report, int64_t seq, int64_t head_dim, bool causal) {
  constexpr int64_t kHeads = 8;
  const Dims shape{2, kHeads, seq, head_dim};
  const Tensor q = filled<T>(shape, 10), k = filled<T>(shape, 11), v = filled<T>(shape, 12);
  Tensor out = filled<T>(shape, 13);
  report.compare({join("attention ", q.dtype(), ' ', seq, 'x', head_dim, causal ? " causal" : ""),
                  {&out},
                  [&] {
                    return tk::launch_attention(data<T>(q), data<T>(k), data<T>(v), data<T>(out),
                                                {2, kHeads, kHeads, seq, seq, head_dim},
                                                {.causal = causal}, stream());
                  },
                  [&](std::string_view name) {
                    attention(out, q, k, v, {.causal = causal, .variant = name});
                  }});
}

// x and k of 8 and 2 heads, with angles of a table or computed ones.
template <class T, tk::RopeStyle style>
void rotations(Report& report, int64_t batch, int64_t seq, int64_t dim, bool has_table) {
  constexpr int64_t kHeads = 8, kHeadsOfK = 2;
  const RopeStyle library_style =
      style == tk::RopeStyle::half ? RopeStyle::Half : RopeStyle::Interleaved;
  const Tensor x = filled<T>({batch, seq, kHeads, dim}, 1);
  const Tensor k = filled<T>({batch, seq, kHeadsOfK, dim}, 2);
  const Tensor cos = filled<float>({seq, dim / 2}, 3), sin = filled<float>({seq, dim / 2}, 4);
  Tensor out = filled<T>({batch, seq, kHeads, dim}, 5);
  Tensor k_out = filled<T>({batch, seq, kHeadsOfK, dim}, 6);
  tk::RopeArguments<T> arguments{.k = data<T>(k), .k_out = data<T>(k_out), .heads_k = kHeadsOfK};
  RopeOptions options{.k = k, .style = library_style, .k_out = k_out};
  if (has_table) {
    arguments.cos = data<float>(cos);
    arguments.sin = data<float>(sin);
    arguments.max_seq = seq;
    options.cos = cos;
    options.sin = sin;
  }
  report.compare(
      {join("rope ", x.dtype(), ' ', batch, 'x', seq, 'x', kHeads, 'x', dim,
            style == tk::RopeStyle::half ? " half" : " interleaved", has_table ? " table" : ""),
       {&out, &k_out},
       [&] {
         return tk::launch_rope<style>(data<T>(x), data<T>(out), {batch * seq, seq, kHeads, dim},
                                       arguments, stream());
       },
       [&](std::string_view v) {
         RopeOptions named = options;
         named.variant = v;
         rope(out, x, named);
       }});
}

}  // namespace

void compare_products(Report& report) {
  products<float>(report, tk::GemmVersion::Naive, 512);
  products<float>(report, tk::GemmVersion::Tiled, 1024);
  products<bf16>(report, tk::GemmVersion::Tiled, 1024);
  for (const int64_t size : {256, 333, 1000, 2048, 4096})
    products<bf16>(report, tk::GemmVersion::TensorCore, size);
  products<f16>(report, tk::GemmVersion::TensorCore, 1024);
  if (tk::current_gpu({}).architecture == 90)
    for (const int64_t size : {256, 1000, 2048, 4096})
      products<bf16>(report, tk::GemmVersion::WGMMA_TMA, size);
  for (const int64_t size : {333, 1024, 2048})
    products<float>(report, tk::GemmVersion::DoubleBuffer, size);
  for (const MemoryLayout layout : {MemoryLayout::ROW_ROW, MemoryLayout::ROW_COL,
                                    MemoryLayout::COL_ROW, MemoryLayout::COL_COL}) {
    interface<float>(report, layout, 1024);
    interface<bf16>(report, layout, 1024);
    interface<f16>(report, layout, 333);
  }
  grouped_products<bf16>(report, 8, 300, 1000, 512);
  grouped_products<f16>(report, 40, 16, 264, 200);
  grouped_products<float>(report, 5, 70, 96, 100);
  attentions<bf16>(report, 1024, 64, false);
  attentions<bf16>(report, 1024, 128, true);
  attentions<bf16>(report, 100, 40, false);
  attentions<f16>(report, 512, 96, true);
  attentions<float>(report, 512, 64, true);
  rotations<bf16, tk::RopeStyle::half>(report, 4, 2048, 128, true);
  rotations<bf16, tk::RopeStyle::half>(report, 4, 2048, 128, false);
  rotations<float, tk::RopeStyle::interleaved>(report, 3, 333, 64, true);
  rotations<f16, tk::RopeStyle::interleaved>(report, 3, 333, 30, false);
}

}  // namespace aot_routes
