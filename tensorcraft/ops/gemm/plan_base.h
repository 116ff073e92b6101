// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/gemm/params.h"

#include <algorithm>
#include <string_view>

// What the choices of gemm's rungs are written in; host only.
namespace tensorcraft::kernel::gemm {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;

// What the call says besides Params.
struct Given {
  int operand_bytes, result_bytes;  // of an element
  int64_t batch = 1;                // entries, which may outnumber the 32 bits of batch_shape
  Activation activation = Activation::none;
  bool has_c = false, has_bias = false;
  bool allow_tf32 = false;  // float32 operands may be rounded
  bool is_float32() const { return operand_bytes == 4; }
};

// A matrix as Params have it. Along a size of 1 no stride is used but for addresses behind the
// matrix, from which nothing is copied: with 0 they stay aligned.
inline Matrix matrix_of(const void* data, int64_t rows, int64_t cols, int64_t row_stride,
                        int64_t col_stride) {
  return {.data = const_cast<void*>(data),
          .row_stride = rows > 1 ? row_stride : 0,
          .col_stride = cols > 1 ? col_stride : 0};
}

// One product of dense matrices: A and B in the order of their layouts, C and D row-major. C counts
// only if beta is not 0: else it may hold NaN.
inline Params contiguous_params(const void* a, Layout a_layout, const void* b, Layout b_layout,
                                const void* c, void* d, int64_t m, int64_t n, int64_t k,
                                float alpha, float beta) {
  const auto dense = [](const void* data, int64_t rows, int64_t cols, Layout layout) {
    return layout == Layout::row_major ? matrix_of(data, rows, cols, cols, 1)
                                       : matrix_of(data, rows, cols, 1, rows);
  };
  return {.m = m,
          .n = n,
          .k = k,
          .a = dense(a, m, k, a_layout),
          .b = dense(b, k, n, b_layout),
          .c = beta != 0 ? dense(c, m, n, Layout::row_major) : Matrix{},
          .d = dense(d, m, n, Layout::row_major),
          .alpha = alpha,
          .beta = beta};
}

// A matrix as lines along the index with stride 1. Along a size of 1 no stride matters.
struct Lines {
  const Params& call;
  const Matrix& matrix;
  Layout layout;            // row_major: the rows are the lines
  int64_t length, count;    // elements of a line, lines
  int64_t step, next_line;  // strides
  int element_bytes;

  bool are_dense() const { return length <= 1 || step == 1; }
  // Do all lines start at multiples of `elements`, counted from the first?
  bool start_at_multiples(int elements) const {
    if (next_line % elements) return false;
    for (int i = 0; i < call.batch_rank; ++i)
      if (call.batch_shape[i] > 1 && matrix.batch_strides[i] % elements) return false;
    return true;
  }
  bool is_aligned(int bytes) const {
    return reinterpret_cast<uintptr_t>(matrix.data) % unsigned(bytes) == 0;
  }
};
inline Lines lines_of(const Params& p, const Matrix& x, int64_t rows, int64_t cols,
                      int element_bytes, Layout layout) {
  if (layout == Layout::row_major)
    return {p, x, layout, cols, rows, x.col_stride, x.row_stride, element_bytes};
  return {p, x, layout, rows, cols, x.row_stride, x.col_stride, element_bytes};
}
inline Layout layout_of(const Matrix& x, int64_t cols) {
  if (x.col_stride == 1) return Layout::row_major;
  if (x.row_stride == 1) return Layout::column_major;
  return cols <= 1 ? Layout::row_major : Layout::column_major;
}
inline Lines a_lines(const Params& p, const Given& given) {
  return lines_of(p, p.a, p.m, p.k, given.operand_bytes, layout_of(p.a, p.k));
}
inline Lines b_lines(const Params& p, const Given& given) {
  return lines_of(p, p.b, p.k, p.n, given.operand_bytes, layout_of(p.b, p.n));
}

// The most elements, up to `most`, that divide a line, the distances of lines and the address: one
// access can move that many.
inline int vector_of(const Lines& x, int most) {
  if (!x.are_dense()) return 1;
  int v = most;
  while (v > 1 && (x.length % v || !x.start_at_multiples(v) || !x.is_aligned(v * x.element_bytes)))
    v /= 2;
  return v;
}

// Every line starts at a multiple of 16 bytes; its length is free.
inline bool has_aligned_lines(const Lines& x) {
  return x.is_aligned(16) && x.start_at_multiples(16 / x.element_bytes);
}

// Can the copy engine walk along the lines and entries? It does not see a batch dimension of
// stride 0.
inline bool has_engine_strides(const Lines& x, int64_t batch) {
  constexpr int64_t kMax = int64_t(1) << 30;  // coordinates have 32 bits, strides 40
  const int64_t next_entry = x.call.batch_rank ? x.matrix.batch_strides[0] : 0;
  return std::max({x.length, x.count, batch, x.next_line, next_entry}) <= kMax &&
         x.next_line >= (x.count > 1) && next_entry >= 0;
}

inline int64_t num_tiles(const Params& p, const Given& given, int block_m, int block_n) {
  const double tiles =
      double(div_ceil(p.m, block_m)) * double(div_ceil(p.n, block_n)) * double(given.batch);
  return tiles > double(op::kMaxBlocks) ? op::kMaxBlocks + 1 : int64_t(tiles);
}

// The Config of a tile with what the call says: layouts, the widest accesses, the epilogue.
inline Config for_call(const Params& p, const Given& given, Config c) {
  const Lines a = a_lines(p, given), b = b_lines(p, given);
  const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, Layout::row_major);
  c.a_layout = a.layout;
  c.b_layout = b.layout;
  c.a_vector = vector_of(a, 16 / given.operand_bytes);
  c.b_vector = vector_of(b, 16 / given.operand_bytes);
  c.d_vector = vector_of(d, 4) == 4 ? 4 : 1;
  c.activation = given.activation;
  c.has_c = given.has_c;
  c.has_bias = given.has_bias;
  return c;
}

inline Start start(const Params& p, const Given& given, const Config& c, int min_blocks = 1,
                   int shared_bytes = 0) {
  return {c, num_tiles(p, given, c.block_m, c.block_n), min_blocks, shared_bytes};
}

inline Choice choice(std::string_view refusal, const Start& start, std::string_view later = {}) {
  if (!refusal.empty()) return op::refuse(refusal);
  if (start.blocks > op::kMaxBlocks) return op::refuse("needs 2^31 blocks or more");
  return {start, later};
}

inline std::string_view unit_stride_refusal(const Params& p, const Given& given) {
  if (!a_lines(p, given).are_dense()) return "a has no axis with stride 1";
  return b_lines(p, given).are_dense() ? "" : "b has no axis with stride 1";
}

// Why a rung on tensor cores cannot take the operands, or empty; `tf32`: the rung rounds float32.
inline std::string_view tensor_operands_refusal(const Params& p, const Given& given,
                                                const op::Gpu& gpu, bool tf32) {
  if (given.is_float32() != tf32)
    return tf32 ? "takes float32 operands"
                : "takes 16-bit operands; for float32 there are the tf32 variants";
  if (tf32 && !given.allow_tf32)
    return "float32 would be rounded to tf32, which allow_tf32 is not set for";
  if (!gpu.has_cp_async()) return "needs sm_80 or newer";
  return unit_stride_refusal(p, given);
}

inline std::string_view swizzled_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                         bool tf32) {
  if (const auto why = tensor_operands_refusal(p, given, gpu, tf32); !why.empty()) return why;
  if (!has_aligned_lines(a_lines(p, given)))
    return "a line of a does not start at a multiple of 16 bytes";
  return has_aligned_lines(b_lines(p, given))
             ? ""
             : "a line of b does not start at a multiple of 16 bytes";
}

// Why the copy engine cannot bring both operands, or empty.
inline std::string_view engine_refusal(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (!gpu.has_clusters()) return "needs sm_90 or newer";
  if (const auto why = swizzled_refusal(p, given, gpu, false); !why.empty()) return why;
  if (p.batch_rank > 1) return "takes one batch axis, or several that merge into one";
  if (!has_engine_strides(a_lines(p, given), given.batch))
    return "a has a stride or a size that the copy engine cannot take";
  return has_engine_strides(b_lines(p, given), given.batch)
             ? ""
             : "b has a stride or a size that the copy engine cannot take";
}

}  // namespace tensorcraft::kernel::gemm
