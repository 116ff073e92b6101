// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.h"
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/tensor_map.h"
#include "tensorcraft/device/warpgroup.h"

// D = act(alpha a_scale b_scale A B + beta C + bias) for one batch entry: A is m x k, B is k x n, C
// and D m x n. Gated: B is k x 2n, D = act(X) Y of the left and right half of what is activated.
namespace tensorcraft::kernel::gemm {

inline constexpr int kMaxBatchRank = 6;

// One matrix operand. Strides are in elements and may be 0 or negative, so a transposed, sliced or
// broadcast matrix needs no copy.
struct Matrix {
  void* data;
  int64_t row_stride, col_stride;
  int64_t batch_strides[kMaxBatchRank];
};

// The integers that mean 0 in A and B of int8: of a row, and of a column. What they take from a sum
// is known from the sums of A's rows and of B's columns, which line_sums leaves in the workspace.
struct ZeroPoints {
  const int32_t *a, *b;        // null: 0
  int64_t a_stride, b_stride;  // 0: one number
  const int32_t* sums;         // of A's rows if b is there, then of B's columns if a is, by entry
  int64_t b_sums_at;           // elements in front of the latter
};

// Run time: what the host passes to every rung.
struct Params {
  int64_t m, n, k;
  Matrix a, b, c, d;
  const void* bias;  // an element a column or a row
  int64_t bias_stride;
  const float *a_scale, *b_scale;          // factors; null: 1
  int64_t a_scale_stride, b_scale_stride;  // along rows, and columns or squares; 0: one number
  int64_t a_scale_step, b_scale_step;      // from a block along k to the next, of scales by block
  const float* out_scale;                  // factor of a result of 8 bits; null: 1
  ZeroPoints zero;
  float alpha, beta;
  uint32_t batch_shape[kMaxBatchRank];
  int32_t batch_rank;
  int32_t scale_columns;  // of B that share a scale in a block along k; 0: scales are not by block
};

// Which index of a matrix has stride 1: neighbouring threads read along it.
enum class Layout : int { row_major, column_major };

// Consumers compute parts of one tile, or each a tile of its own, taking turns to multiply.
enum class Schedule : int { together, ping_pong };

// A further step of a finished sum: nothing, an expression that is compiled into the kernel, or
// one whose steps it reads.
enum class Expression : int { none, compiled, interpreted };

// How sums of 8-bit floats are kept, of which tensor cores keep few bits: they stay there,
// or those of kScaleBlock elements along k leave as they are (plain) or times the scales of their
// block: of A's rows, and of B's columns or of squares of B.
enum class Promotion : int { none, plain, by_column, by_square };
inline constexpr int kScaleBlock = 128;
TC_HOST_DEVICE constexpr bool is_by_block(Promotion p) {
  return p == Promotion::by_column || p == Promotion::by_square;
}

// Compile time. Structural, without padding, and as small as a kernel's key allows.
struct Config {
  int block_m = 0, block_n = 0, block_k = 0;  // a block's tile of D, and one step along k
  int warp_m = 0, warp_n = 0;                 // a warp's part of it (from async on)
  int thread_m = 0, thread_n = 0;             // a thread's part of it (thread_tiled to async)
  int threads = 0;
  int stages = 1;  // steps along k that shared memory holds (from async on), or registers (gemv)
  int cluster_m = 1, cluster_n = 1;  // blocks of a cluster, whose tiles are neighbours (tma on)
  int consumers = 0;                 // warpgroups that multiply (from wgmma on)
  Schedule schedule = Schedule::together;  // how they share tiles
  int swap = 0;   // the product of the transposed matrices: block_m is along n
  int split = 1;  // parts of k, each of a block of the cluster (split_k, gemv)
  int slots = 0;  // how D leaves a consumer: kStraight from registers, kByRows through shared
                  // memory, or in so many pieces that the copy engine has on their way
  int parts = 1;  // of each element of A and B, one behind the other along k: 1 or kTf32Parts
  Layout a_layout = Layout::row_major, b_layout = Layout::row_major;
  int a_vector = 1, b_vector = 1, d_vector = 1;  // elements one access moves
  int c_vector = 1;  // elements one access moves of C and of what each column has one of
  Activation activation = Activation::none;  // gated: of the left half
  int has_c = 0, has_bias = 0;               // has_bias: kByColumn or kByRow
  int has_scales = 0, gated = 0;  // has_scales: of rows or columns, or zero points; of 8-bit
                                  // operands those that are one number are a part of alpha
  Expression expression = Expression::none;
  Promotion promotion = Promotion::none;
  int has_groups = 0;  // the batch entries are groups: kGroupsOfRows or kGroupsOfK
};
inline constexpr int kByColumn = 1, kByRow = 2;
inline constexpr int kGroupsOfRows = 1, kGroupsOfK = 2;
inline constexpr int kStraight = 0, kByRows = 1, kEngineSlots = 2;

// The arguments of an expression beside the sum. Its arrays are broadcast to D. Neither struct has
// bytes between or behind its fields after the first array of structs: what clears those for the
// plan cache (GCC 12) clears others there.
struct ExpressionParams : Params {
  static constexpr int kMaxArrays = 7, kMaxNumbers = 10;
  Matrix arrays[kMaxArrays];
  uint64_t numbers[kMaxNumbers];  // the bits of a float, or an int64_t
  uint64_t filler[4];
};
// Arguments with the steps of an expression, for the one kernel that serves every expression.
struct InterpretedParams : ExpressionParams {
  static constexpr int kMaxSteps = 64, kStepBytes = 6;
  uint8_t steps[kMaxSteps * kStepBytes];
  uint8_t dtypes[kMaxArrays];
  uint8_t num_arrays, num_numbers, num_steps;
  uint8_t steps_filler[2];
  Activation activation;
  uint8_t end_filler[48];
};
static_assert(sizeof(ExpressionParams) % alignof(TensorMap) == 0 &&
              sizeof(InterpretedParams) % alignof(TensorMap) == 0);
// An array on the device says of each group where its rows begin and where they end, how many
// they are, one group behind the other, or how many of the first rows of its own matrices.
enum class GroupForm : int32_t { ranges, sizes, counts };

// Group i has element i * step of the array, and with ranges, end_at elements on, the second. What
// an array has no business to say, a negative count or a row that is not there, is taken as the
// nearest that it may.
struct Groups {
  const void* array;
  int64_t step, end_at;
  int32_t count;  // of groups
  GroupForm form;
  int32_t is_wide;  // int64, else int32
  int32_t filler;
};
// Rows of A and D belong to groups, and each group has its own B: batch entry i is group i. m: the
// rows of all groups, or with counts the most rows of one, below 2^30.
inline constexpr int64_t kMostGroupedRows = (int64_t(1) << 30) - 1;
// Groups along k have all rows of A and columns of B, whose k is below 2^30, and a D each.
struct GroupedParams : Params {
  Groups groups;
  int64_t a_scale_group, b_scale_group;  // from the scales of a group to those of the next
};
// The params of a kernel of this Config.
template <Config C>
using ParamsOf = Select<
    C.has_groups != 0, GroupedParams,
    Select<C.expression == Expression::none, Params,
           Select<C.expression == Expression::compiled, ExpressionParams, InterpretedParams>>>;

// Further params of tma: how the copy engine finds A and B, with `swap` B and A, as 128 bytes
// along the unit stride, lines and batch.
template <class Base>
struct WithMaps : Base {
  TensorMap a_map, b_map;
};
template <Config C>
using TmaParams = WithMaps<ParamsOf<C>>;
// From wgmma on: D too, as a slot's columns, its rows and batch.
template <class Base>
struct WithResultMap : WithMaps<Base> {
  TensorMap d_map;
};
template <Config C>
using WgmmaParams = WithResultMap<ParamsOf<C>>;

// Has every column of the result to the kernel scales of its own in each block along k?
TC_HOST_DEVICE constexpr bool has_column_scales(const Config& c) {
  return is_by_block(c.promotion) && (c.swap || c.promotion == Promotion::by_column);
}

// The columns of D in a tile. A gated tile has block_n columns of B for block_n / 2 of D: those of
// the left half of B, then as many of the right.
TC_HOST_DEVICE constexpr int tile_columns(const Config& c) {
  return c.gated ? c.block_n / 2 : c.block_n;
}

// Shared memory that the warps' sums pass through on their way out: 16 padded rows a warp.
TC_HOST_DEVICE constexpr int slab_bytes(const Config& c) {
  return c.threads / 32 * 16 * (c.warp_n + 8) * 4;
}

// Dynamic shared memory of tensor_core: two stages of both operands, each line padded by 16 bytes,
// or the slabs, whichever is more.
TC_HOST_DEVICE constexpr int tensor_core_shared_bytes(const Config& c, int element_bytes) {
  const int pad = 16 / element_bytes;
  const int a = c.a_layout == Layout::row_major ? c.block_m * (c.block_k + pad)
                                                : c.block_k * (c.block_m + pad);
  const int b = c.b_layout == Layout::row_major ? c.block_k * (c.block_n + pad)
                                                : c.block_n * (c.block_k + pad);
  const int stages = 2 * element_bytes * (a + b), slabs = slab_bytes(c);
  return stages > slabs ? stages : slabs;
}

// The threads of a warp over its part of a tile of `async`.
inline constexpr int kAsyncLanesM = 8, kAsyncLanesN = 4;

// Dynamic shared memory of async: rows of both panels are padded by 16 bytes.
TC_HOST_DEVICE constexpr int async_shared_bytes(const Config& c) {
  return c.stages * c.block_k * (c.block_m + c.block_n + 8) * 4;
}

// Dynamic shared memory of swizzled: lines without padding, or the slabs.
TC_HOST_DEVICE constexpr int swizzled_shared_bytes(const Config& c, int element_bytes) {
  const int stages = c.stages * c.block_k * (c.block_m + c.block_n) * element_bytes;
  const int slabs = slab_bytes(c);
  return stages > slabs ? stages : slabs;
}

// The lines that one box of the copy engine brings of the operand that has block_m, which is A
// without `swap`, and of the other one. The blocks of a cluster bring parts of what they share.
TC_HOST_DEVICE constexpr int a_box_lines(const Config& c) {
  return box_lines(c.a_layout == Layout::row_major, c.block_m / c.cluster_n, c.block_k);
}
TC_HOST_DEVICE constexpr int b_box_lines(const Config& c) {
  const int cols = c.block_n / c.cluster_m;  // of a gated tile each half by itself
  return box_lines(c.b_layout == Layout::column_major,
                   c.gated && c.cluster_m == 1 ? cols / 2 : cols, c.block_k);
}
// The blocks of tma's cluster, which share their rows of A.
inline constexpr int kTmaCluster = 2;
// Dynamic shared memory of tma: stages or slabs as in swizzled and two barriers a stage; a multiple
// of 1024, which the copy engine's swizzle needs.
TC_HOST_DEVICE constexpr int tma_shared_bytes(const Config& c, int element_bytes) {
  return round_up(swizzled_shared_bytes(c, element_bytes) + 2 * c.stages * 8, 1024);
}

// The part of D that one store of the copy engine takes: rows, and columns of at most 128 bytes.
// With `swap` 64 rows of the sums are 64 columns: of 4 bytes, two stores.
struct SlotShape {
  int rows, cols;
};
TC_HOST_DEVICE constexpr SlotShape slot_shape(const Config& c, int result_bytes) {
  int size = c.swap ? 64 : 128 / result_bytes;  // along block_n
  while (tile_columns(c) % size != 0) size /= 2;
  return c.swap ? SlotShape{size, result_bytes == 4 ? 32 : kGroupRows}
                : SlotShape{kGroupRows, size};
}
inline constexpr int kSlotBytes = 64 * 128;  // the largest

// Two of them hold the sums of 64 x 64 outputs by rows, of a gated tile two times 64 x 32.
TC_HOST_DEVICE constexpr int num_slots(const Config& c) {
  return c.slots == kStraight ? 0 : 2 * c.consumers;
}

// Their dynamic shared memory: stages, slots, and two barriers a stage.
TC_HOST_DEVICE constexpr int ring_shared_bytes(const Config& c, int element_bytes) {
  const int stage = c.block_k * (c.block_m + c.block_n) * element_bytes;
  const int slots = num_slots(c) > 0 ? num_slots(c) : 1;
  return round_up(c.stages * stage + slots * kSlotBytes + 2 * c.stages * 8, 1024);
}

// With kTf32Parts an element is hi + lo, tf32 each, and a product lo hi + hi lo + hi hi, as many
// steps along k for each. Every part of a line is whole steps long, 0 behind the end.
inline constexpr int kTf32Parts = 2, kTf32Products = 3;
TC_HOST_DEVICE constexpr int64_t part_length(int64_t k, int parts, int element_bytes) {
  const int64_t unit = (parts > 1 ? 128 : 16) / element_bytes;
  return div_ceil(k, unit) * unit;
}

// The operand that pack copies: the rows of A or the columns of B, entry by entry, each a line of
// the copy, `parts` times `part` long.
struct PackParams {
  Matrix in;         // a row is a line
  void* workspace;   // of the launch
  int64_t out_at;    // bytes of it in front of the copy
  int64_t lines, k;  // of an entry
  int64_t part;      // part_length()
  uint32_t batch_shape[kMaxBatchRank];
  int32_t batch_rank;
};

struct PackConfig {
  int threads = 256;
  Layout layout = Layout::row_major;  // row_major: neighbours along k are read by neighbours
  int vector = 1;                     // elements one access reads
  int parts = 1;                      // kTf32Parts: float32 elements become hi and lo
};

// Lines of int8 along k, each of which line_sums adds up: rows of A or columns of B.
struct LinesToSum {
  Matrix in;           // a row is a line
  int64_t lines;       // of an entry
  int64_t all_lines;   // of all; 0: none are needed
  int64_t out_at;      // elements of the workspace in front of their sums
  int32_t is_along_k;  // neighbours along k are neighbours in memory; else those of a column are
  int32_t has_words;   // and lines begin at multiples of 16 bytes
};
struct LineSumsParams {
  LinesToSum of[2];
  void* workspace;
  int64_t k;
  uint32_t batch_shape[kMaxBatchRank];
  int32_t batch_rank;
};
struct LineSumsConfig {
  int threads = 256;
};
// The lines of a block: a warp has one, or, across k, a part of 32.
TC_HOST_DEVICE constexpr int lines_of_block(const LineSumsConfig& c, bool is_along_k) {
  return is_along_k ? c.threads / 32 : 32;
}

// The input from which group_ranges makes the ranges of groups, each two of int32: the group of
// each row.
struct GroupRangesParams {
  const void* ids;
  void* workspace;  // of the launch, and zeros: the ranges
  int64_t rows, groups, step;
  int32_t is_wide;  // int64, else int32
  int32_t filler;
};
struct GroupRangesConfig {
  int threads = 256;
};

// The lines of a tile of pack, and its elements along k.
inline constexpr int kPackTile = 64;

}  // namespace tensorcraft::kernel::gemm
