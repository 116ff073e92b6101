// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/gemm/choice/config_plan.h"
#include "tensorcraft/ops/gemm/params.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

// A call as choices see it: its matrices as lines of memory, how wide accesses to them are, what
// a Config takes from the call, and why operands are refused; host only.
namespace tensorcraft::kernel::gemm {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;

// Facts of the call besides Params.
struct Given {
  int operand_bytes, result_bytes;  // of an element
  int64_t batch = 1;                // entries, which may outnumber the 32 bits of batch_shape
  Activation activation = Activation::none;
  bool has_c = false;
  bool has_scales = false;  // that the kernel is compiled for
  bool gated = false;
  bool has_expression = false;
  int has_bias = 0;                       // kByColumn or kByRow
  bool allow_tf32 = false;                // float32 operands may be rounded
  bool splits_tf32 = false;               // they may become two parts of tf32 instead
  bool batch_invariant = false;           // the sums of a row are the same whatever m and batch are
  GemmConfig config = {};                 // what the caller fixed
  Promotion promotion = Promotion::none;  // of 8-bit floats, as the caller wants it
  bool is_integer = false;                // the operands' elements are
  int grouped = 0;                        // kGroupsOfRows or kGroupsOfK: the batch entries are
  bool are_groups_apart = false;          // each in matrices of its own
  int64_t expected_rows = 0;              // of a group, or its length along k
  bool is_float32() const { return operand_bytes == 4; }
  bool is_byte() const { return operand_bytes == 1; }
  bool has_codes() const { return result_bytes == 1; }  // D has
  int bias_bytes() const {
    return !is_byte() ? operand_bytes : has_codes() ? int(sizeof(float)) : result_bytes;
  }
  // Is anything done to a sum but to scale it?
  bool has_epilogue() const {
    return has_c || has_scales || gated || has_expression || has_bias || has_codes() ||
           activation != Activation::none;
  }
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
// All of B, of which a gated product has two halves of n columns.
inline Lines b_lines(const Params& p, const Given& given) {
  const int64_t cols = given.gated ? 2 * p.n : p.n;
  return lines_of(p, p.b, p.k, cols, given.operand_bytes, layout_of(p.b, cols));
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

// That vector of B. If its lines are rows, the right half has to begin as the left one does.
inline int b_vector_of(const Params& p, const Given& given, int most) {
  Lines b = b_lines(p, given);
  if (given.gated && b.layout == Layout::row_major) b.length = p.n;
  return vector_of(b, most);
}
// The vector of C, of bias and of scales by column: all that a row of D is finished with.
inline int c_vector_of(const Params& p, const Given& given) {
  constexpr int kMost = 4;
  const auto is_whole = [&](const void* data, int64_t stride, int bytes) {
    return stride == 1 && reinterpret_cast<uintptr_t>(data) % unsigned(kMost * bytes) == 0;
  };
  const bool by_column = given.has_bias == kByColumn,
             scales = given.has_scales && p.b_scale && p.b_scale_stride;
  if ((!given.has_c && !by_column && !scales) || p.n % kMost) return 1;
  if (given.has_c &&
      vector_of(lines_of(p, p.c, p.m, p.n, given.result_bytes, Layout::row_major), kMost) < kMost)
    return 1;
  if (by_column && !is_whole(p.bias, p.bias_stride, given.bias_bytes())) return 1;
  // Scales of groups may begin anywhere.
  return scales && (given.grouped || !is_whole(p.b_scale, p.b_scale_stride, 4)) ? 1 : kMost;
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

// The time(params, given) of a call. With batch_invariant neither m nor batch may choose: then
// it is the geometric mean of one entry with few, more and many rows.
template <class Time>
double weighed(const Params& p, const Given& given, const Time& time) {
  if (!given.batch_invariant) return time(p, given);
  constexpr int64_t kRows[] = {16, 256, 4096};
  Params params = p;
  Given one = given;
  one.batch = 1;
  double logs = 0;
  for (const int64_t rows : kRows) {
    params.m = rows;
    logs += std::log(time(params, one));
  }
  return std::exp(logs / double(std::size(kRows)));
}

// The Config of a tile with what the call says: layouts, the widest accesses, the epilogue.
inline Config for_call(const Params& p, const Given& given, Config c) {
  const Lines a = a_lines(p, given), b = b_lines(p, given);
  const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, Layout::row_major);
  c.a_layout = a.layout;
  c.b_layout = b.layout;
  c.a_vector = vector_of(a, 16 / given.operand_bytes);
  c.b_vector = b_vector_of(p, given, 16 / given.operand_bytes);
  c.d_vector = vector_of(d, 4) == 4 ? 4 : 1;
  c.activation = given.activation;
  c.c_vector = c_vector_of(p, given);
  c.has_c = given.has_c;
  c.has_bias = given.has_bias;
  c.has_scales = given.has_scales;
  c.gated = given.gated;
  c.promotion = given.promotion;
  c.has_groups = given.grouped;
  return c;
}

// The Config of the product of the transposed matrices, whose A is the transpose of B.
constexpr Layout transposed(Layout layout) {
  return layout == Layout::row_major ? Layout::column_major : Layout::row_major;
}
constexpr Config of_transpose(Config c) {
  const Layout a = c.a_layout;
  c.swap = 1;
  c.a_layout = transposed(c.b_layout);
  c.b_layout = transposed(a);
  std::swap(c.a_vector, c.b_vector);
  return c;
}

inline Start start(const Params& p, const Given& given, const Config& c, int min_blocks = 1,
                   int shared_bytes = 0) {
  return {c, num_tiles(p, given, c.block_m, tile_columns(c)), min_blocks, shared_bytes};
}

inline Choice choice(std::string_view refusal, const Start& start, std::string_view later = {}) {
  if (!refusal.empty()) return op::refuse(refusal);
  return {start, later};
}

// The refusal of a gated product by rungs without tensor cores, but naive.
inline constexpr std::string_view kGatesNothing = "does not gate; naive does, and tensor cores do";

// The refusal of 8-bit operands by rungs that have none.
inline constexpr std::string_view kTakesNoBytes =
    "takes no 8-bit operands; naive does, and along k swizzled and wgmma do";

// The refusal by rungs that few rows alone should have.
inline constexpr std::string_view kNotInvariant = "batch_invariant: it sums in an order of its own";

inline std::string_view unit_stride_refusal(const Params& p, const Given& given) {
  if (!a_lines(p, given).are_dense()) return "a has no axis with stride 1";
  return b_lines(p, given).are_dense() ? "" : "b has no axis with stride 1";
}

// Why a rung on tensor cores cannot take the operands, or empty; `tf32`: the rung rounds float32.
inline std::string_view tensor_core_refusal(const Params& p, const Given& given, bool tf32) {
  if (given.is_byte()) return kTakesNoBytes;
  if (given.is_float32() != tf32)
    return tf32 ? "takes float32 operands"
                : "takes 16-bit operands; for float32 there are the tf32 variants";
  if (tf32 && !given.allow_tf32)
    return "float32 would be rounded to tf32, which allow_tf32 is not set for";
  return unit_stride_refusal(p, given);
}

inline std::string_view unaligned_refusal(const Params& p, const Given& given) {
  if (!has_aligned_lines(a_lines(p, given)))
    return "a line of a does not start at a multiple of 16 bytes";
  const Lines b = b_lines(p, given);
  if (!has_aligned_lines(b)) return "a line of b does not start at a multiple of 16 bytes";
  // A box of the copy engine begins at a multiple of 16 bytes too.
  if (given.gated && b.layout == Layout::row_major && p.n * given.operand_bytes % 16)
    return "the right half of a row of b does not start at a multiple of 16 bytes";
  return {};
}

// Why 8-bit operands are not such that tensor cores read them along k.
inline std::string_view along_k_refusal(const Params& p, const Given& given) {
  if (const auto why = unit_stride_refusal(p, given); !why.empty()) return why;
  if (a_lines(p, given).layout != Layout::row_major)
    return "a does not lie along k, as tensor cores read 8-bit operands";
  if (b_lines(p, given).layout != Layout::column_major)
    return "b does not lie along k, as tensor cores read 8-bit operands";
  return unaligned_refusal(p, given);
}
inline std::string_view swizzled_byte_refusal(const Params& p, const Given& given,
                                              const op::Gpu& gpu) {
  if (is_by_block(given.promotion))
    return "has no scales by block; naive does, and the rungs on wgmma do";
  if (!given.is_integer && gpu.architecture < 89) return "needs sm_89 or newer for float8";
  return along_k_refusal(p, given);
}

inline std::string_view swizzled_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                         bool tf32) {
  if (given.is_byte())
    return tf32 ? "takes float32 operands" : swizzled_byte_refusal(p, given, gpu);
  const auto why = tensor_core_refusal(p, given, tf32);
  return why.empty() ? unaligned_refusal(p, given) : why;
}

// Why the copy engine cannot walk aligned operands.
inline std::string_view engine_refusal(const Params& p, const Given& given) {
  if (p.batch_rank > 1) return "takes one batch axis, or several that merge into one";
  if (!has_engine_strides(a_lines(p, given), given.batch))
    return "a has a stride or a size that the copy engine cannot take";
  return has_engine_strides(b_lines(p, given), given.batch)
             ? ""
             : "b has a stride or a size that the copy engine cannot take";
}

inline std::string_view tma_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                    bool tf32 = false) {
  if (given.is_byte()) return kTakesNoBytes;
  if (!gpu.has_clusters()) return "needs sm_90 or newer";
  if (gpu.architecture >= 120) return "sm_120 copies no tile into two blocks at once";
  const auto why = swizzled_refusal(p, given, gpu, tf32);
  return why.empty() ? engine_refusal(p, given) : why;
}

// Why the copy engine cannot bring operands to tensor cores, or empty.
inline std::string_view copied_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                       bool tf32) {
  if (!given.is_byte()) return tma_refusal(p, given, gpu, tf32);
  if (tf32) return "takes float32 operands";
  const auto why = along_k_refusal(p, given);
  return why.empty() ? engine_refusal(p, given) : why;
}

}  // namespace tensorcraft::kernel::gemm
