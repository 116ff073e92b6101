// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/gemm.cuh"
#include "tensorcraft/ops/gemm/choice/grouped_plan.h"

// Products of groups of rows, each by a matrix of its own, and of the first rows of each matrix.
// Compiled for each T, with the matrices of the groups as columns: naive (a kernel), for f16 and
// bf16 tensor_core in its four tiles, with 16-byte and with single accesses (8), and persistent in
// three tiles, which store by the copy engine or by rows (6), for float async in its four tiles
// (8).
namespace tensorcraft::kernels {

// Options of a call: a variant by name, and how many rows a group is expected to have, which the
// tile is chosen for.
struct MoeConfig {
  std::string_view variant = {};  // empty: the best that serves
  int64_t expected_rows = 0;      // 0: the average, of counts the most
};

namespace detail::gemm_grouped {

using namespace detail::gemm;

constexpr Config of_groups(Config c) {
  c.b_layout = Layout::column_major;
  c.has_c = 0;
  c.has_groups = 1;
  return c;
}

inline constexpr std::array kNaiveGroups{Instance<Config>{of_groups(element_tile(kNaiveTile))}};

// Every tile with config(tile, wide).
template <size_t n, class F>
constexpr auto wide_and_single(const TileShape (&tiles)[n], F config) {
  std::array<Instance<Config>, 2 * n> all{};
  size_t count = 0;
  for (const TileShape& t : tiles)
    for (const bool wide : {false, true}) all[count++] = {of_groups(config(t, wide)), t.min_blocks};
  return all;
}
// Both operands are copied along k: one element at a time.
inline constexpr auto kAsyncGroups =
    wide_and_single(kAsyncTiles, [](const TileShape& t, bool wide) {
      Config c = async_tile(t);
      if (wide) c.d_vector = 4;
      return c;
    });
template <class T>
inline constexpr auto kTensorCoreGroups =
    wide_and_single(kTensorCoreTiles, [](const TileShape& t, bool wide) {
      return tensor_core_config<T>(t, kRows, Layout::column_major, wide, false);
    });
inline constexpr auto kPersistentGroups = [] {
  std::array<Instance<Config>, 2 * std::size(kLauncherRingTiles)> all{};
  size_t count = 0;
  for (const RingTile& t : kLauncherRingTiles)
    for (const int slots : {kByRows, kEngineSlots}) {
      Config& c = all[count++].config;
      c = of_groups(ring_tile(t, 2, 1, slots));
      c.d_vector = slots == kEngineSlots ? 4 : 1;
    }
  return all;
}();

// The instance of kPersistentGroups for a call.
inline Choice compiled_persistent(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const Params expected = as_expected(p, given);
  std::optional<WeighedTile> best;
  for_each_tile(expected, given, gpu, kLauncherRingTiles, {}, [&](const WeighedTile& w) {
    if (!w.tile.swap && (!best || w.us < best->us)) best = w;
  });
  if (!best || best->config.a_layout != kRows || best->config.b_layout != Layout::column_major)
    return op::refuse("needs n and k of 2 or more");
  best->config.c_vector = 1;
  if (best->config.slots == kByRows) best->config.d_vector = 1;
  Start start = ring_start(best->config, given, 0);
  start.blocks = grouped_blocks(p, given, gpu, best->config);
  return start;
}

template <class T>
bool launch_persistent(const GroupedCall& call, const GroupedParams& p, const Given& all,
                       cudaStream_t stream, DebugInfo where) {
  using Compiled = Kernels<OnHopper, kPersistentGroups, T, T>;
  const Choice choice = compiled_persistent(p, all, current_gpu(where));
  if (!choice.refusal.empty()) return false;
  const auto* kernel =
      reinterpret_cast<const void*>(Compiled::template entry<Constant<Compiled::list[0]>>());
  if (!has_code(kernel, where)) return false;
  const Config& c = choice.start.config;
  WithResultMap<GroupedParams> full{{p, {}, {}}, {}};
  const auto encode = [&](const Matrix& x, int64_t length, int64_t count, int box_lines) {
    const int64_t next = x.batch_strides[0];
    return encode_lines<T>(x.data, length, count, length, box_lines, where, next ? call.groups : 1,
                           next);
  };
  full.a_map = encode(p.a, p.k, p.m, a_box_lines(c));
  full.b_map = encode(p.b, p.k, p.n, b_box_lines(c));
  if (c.slots == kEngineSlots) full.d_map = encode(p.d, p.n, p.m, slot_shape(c, sizeof(T)).rows);
  launch_or_fail<Compiled>("persistent", choice.start, full, stream, where);
  return true;
}

// The start that a rung chooses, with accesses as they were compiled.
template <class T>
Start compiled_start(Choice choice) {
  Config& c = choice.start.config;
  constexpr int kWide = 16 / int(sizeof(T));
  const bool is_async = c.stages > 1,
             is_wide =
                 (is_async || (c.a_vector == kWide && c.b_vector == kWide)) && c.d_vector == 4;
  c.a_layout = kRows;
  c.b_layout = Layout::column_major;
  c.a_vector = c.b_vector = is_wide && !is_async ? kWide : 1;
  c.d_vector = is_wide ? 4 : 1;
  if (choice.start.shared_bytes && !is_async)
    choice.start.shared_bytes = tensor_core_shared_bytes(c, int(sizeof(T)));
  return choice.start;
}

// A name that no variant of T has.
template <class T>
bool is_unknown(std::string_view variant) {
  if (variant.empty() || variant == "naive") return false;
  return sizeof(T) == 2 ? variant != "persistent" && variant != "tensor_core" : variant != "async";
}

template <class T>
std::string_view launch(const GroupedCall& call, const MoeConfig& config, cudaStream_t stream,
                        DebugInfo where) {
  if (call.groups < 0 || call.rows < 0 || call.n < 0 || call.k < 0 || call.rows > kMostGroupedRows)
    throw std::invalid_argument("Invalid matrix dimensions");
  if (call.groups == 0 || call.rows == 0 || call.n == 0) return {};
  if ((call.k > 0 && (!call.a || !call.b)) || !call.d || !call.array)
    throw std::invalid_argument("Null pointer arguments");
  if (is_unknown<T>(config.variant))
    throw std::invalid_argument("launch_grouped_gemm: no variant of this type is named \"" +
                                std::string(config.variant) + "\"");
  const GroupedParams p = contiguous_params(call);
  Given all = given_of(call, sizeof(T));
  if (config.expected_rows > 0) all.expected_rows = config.expected_rows;
  const op::Gpu gpu = current_gpu(where);
  const auto is_wanted = [&](std::string_view variant) {
    return config.variant.empty() || config.variant == variant;
  };
  const auto run = [&](auto compiled, auto choose) {
    if (!is_wanted(compiled.variant)) return false;
    const Choice choice = choose(p, all, gpu);
    return choice.refusal.empty() &&
           launch_listed<decltype(compiled)>(compiled_start<T>(choice), p, stream, where);
  };
  if constexpr (sizeof(T) == 2) {
    if (is_wanted("persistent") && launch_persistent<T>(call, p, all, stream, where))
      return "persistent";
    if (run(Kernels<TensorCore, kTensorCoreGroups<T>, T, T>{"tensor_core"}, grouped<tensor_core>))
      return "tensor_core";
  } else {
    if (run(Kernels<Async, kAsyncGroups, T, T>{"async"}, grouped<async>)) return "async";
  }
  if (run(Kernels<Naive, kNaiveGroups, T, T>{"naive"}, grouped<naive>)) return "naive";
  fail({ErrorKind::unsupported, where}, "launch_grouped_gemm: ", config.variant,
       " does not serve this call");
}

}  // namespace detail::gemm_grouped

// D[r, :] = A[r, :] B[g]^T for the rows r from offsets[g] to offsets[g + 1], all row-major: A
// [rows, k], B [groups, n, k], D [rows, n] of T: float, f16 or bf16. Sums are float, rounded once.
// offsets [groups + 1] are on the device and are not read by the host; groups may be empty, and
// rows of no group keep what D had. Returns the name of the variant that was launched, empty if
// there is no group, row or column. Throws std::invalid_argument for a null array, a negative
// dimension, 2^30 rows or a variant that T has not, Error of kind unsupported if that of the
// config does not serve the call, std::runtime_error if CUDA refuses.
template <class T>
std::string_view launch_grouped_gemm(const T* a, const T* b, T* d, const int32_t* offsets,
                                     int64_t groups, int64_t rows, int64_t n, int64_t k,
                                     const MoeConfig& config = {}, cudaStream_t stream = nullptr,
                                     DebugInfo where = {}) {
  using namespace detail::gemm_grouped;
  const GroupedCall call{a, b, d, offsets, GroupForm::ranges, groups, rows, n, k};
  return launch<T>(call, config, stream, where);
}

// The same by the rows of each expert, which lie one expert's behind the other's.
template <class T>
std::string_view execute_grouped(const T* a, const T* b, T* d, const int32_t* expert_sizes,
                                 int64_t num_experts, int64_t rows, int64_t n, int64_t k,
                                 const MoeConfig& config = {}, cudaStream_t stream = nullptr,
                                 DebugInfo where = {}) {
  using namespace detail::gemm_grouped;
  const GroupedCall call{a, b, d, expert_sizes, GroupForm::sizes, num_experts, rows, n, k};
  return launch<T>(call, config, stream, where);
}

// The same as a configuration manager says: get_moe_config(num_experts, rows, n, k), a MoeConfig.
template <class Manager, class T>
std::string_view schedule_moe_gemm(Manager&& manager, const T* a, const T* b, T* d,
                                   const int32_t* expert_sizes, int64_t num_experts, int64_t rows,
                                   int64_t n, int64_t k, cudaStream_t stream = nullptr,
                                   DebugInfo where = {}) {
  const MoeConfig config = manager.get_moe_config(num_experts, rows, n, k);
  return execute_grouped(a, b, d, expert_sizes, num_experts, rows, n, k, config, stream, where);
}

// D[g, r, :] = A[g, r, :] B[g]^T for the rows r before counts[g], all row-major: A [groups, rows,
// k], B [groups, n, k], D [groups, rows, n]. counts [groups] are on the device; rows from counts[g]
// on keep what D had. The rest as in launch_grouped_gemm().
template <class T>
std::string_view launch_masked_gemm(const T* a, const T* b, T* d, const int32_t* counts,
                                    int64_t groups, int64_t rows, int64_t n, int64_t k,
                                    const MoeConfig& config = {}, cudaStream_t stream = nullptr,
                                    DebugInfo where = {}) {
  using namespace detail::gemm_grouped;
  const GroupedCall call{a, b, d, counts, GroupForm::counts, groups, rows, n, k};
  return launch<T>(call, config, stream, where);
}

}  // namespace tensorcraft::kernels
