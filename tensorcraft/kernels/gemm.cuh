// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/kernels/tensor_map.hpp"
#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"
#include "tensorcraft/ops/gemm/05_async.cuh"
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"
#include "tensorcraft/ops/gemm/parts/functor.cuh"
#include "tensorcraft/ops/gemm/11_persistent.cuh"
#include "tensorcraft/ops/gemm/plan.h"

// Matrix products by a rung that the caller names. Compiled for each T, for row-major matrices:
// naive and block_tiled (a kernel each), tensor_core in its four tiles and async in its four, both
// with 16-byte and with single accesses, with and without C (16 each), persistent in three tiles
// for f16 and bf16, which store by the copy engine or by rows (6). gemm_interface.cuh chooses
// itself and takes all four layouts.
namespace tensorcraft::kernels {

// The steps of the ladder by the names of the hardware documents.
enum class GemmVersion { Naive, Tiled, DoubleBuffer, TensorCore, WGMMA_TMA };

// The variant that a version is.
constexpr std::string_view variant_name(GemmVersion version) {
  constexpr std::string_view names[] = {"naive", "block_tiled", "async", "tensor_core",
                                        "persistent"};
  return names[int(version)];
}

namespace detail::gemm {

using namespace kernel::gemm;

constexpr Layout kRows = Layout::row_major;

// A kernel that can add C does if beta is not 0.
constexpr Config with_layouts(Config tile, Layout a, Layout b, bool has_c = true) {
  tile.a_layout = a;
  tile.b_layout = b;
  tile.has_c = has_c;
  return tile;
}

// tensor_core with 16-byte or with single accesses.
template <class T>
constexpr Config tensor_core_config(const TileShape& t, Layout a, Layout b, bool wide, bool has_c) {
  Config c = with_layouts(warp_tile(t, sizeof(T)), a, b, has_c);
  if (wide) c.a_vector = c.b_vector = 16 / int(sizeof(T)), c.d_vector = 4;
  return c;
}

// async for row-major operands, of which it copies A along k: one element at a time.
constexpr Config async_config(const TileShape& t, bool wide, bool has_c) {
  Config c = with_layouts(async_tile(t), kRows, kRows, has_c);
  if (wide) c.b_vector = c.d_vector = 4;
  return c;
}

inline constexpr std::array kNaiveList{
    Instance<Config>{with_layouts(element_tile(kNaiveTile), kRows, kRows)}};
inline constexpr std::array kBlockTiledList{
    Instance<Config>{with_layouts(element_tile(kBlockTile), kRows, kRows)}};

// Every tile with config(tile, wide, has_c).
template <size_t n, class F>
constexpr auto list_of(const TileShape (&tiles)[n], F config) {
  std::array<Instance<Config>, 4 * n> all{};
  size_t count = 0;
  for (const TileShape& t : tiles)
    for (const bool wide : {false, true})
      for (const bool has_c : {false, true}) all[count++] = {config(t, wide, has_c), t.min_blocks};
  return all;
}
inline constexpr auto kAsyncList = list_of(kAsyncTiles, async_config);
template <class T>
inline constexpr auto kTensorCoreList =
    list_of(kTensorCoreTiles, [](const TileShape& t, bool wide, bool has_c) {
      return tensor_core_config<T>(t, kRows, kRows, wide, has_c);
    });

// Large tiles, tiles in turns, and small ones.
constexpr RingTile persistent_tile(int m, int n, Schedule schedule) {
  for (const RingTile& t : kPersistentTiles)
    if (t.m == m && t.n == n && t.schedule == schedule) return t;
  throw std::invalid_argument("persistent has no such tile");
}
inline constexpr RingTile kLauncherRingTiles[] = {persistent_tile(128, 256, Schedule::together),
                                                  persistent_tile(128, 128, Schedule::ping_pong),
                                                  persistent_tile(64, 64, Schedule::together)};
inline constexpr auto kPersistentList = [] {
  std::array<Instance<Config>, 2 * std::size(kLauncherRingTiles)> all{};
  size_t count = 0;
  for (const RingTile& t : kLauncherRingTiles)
    for (const int slots : {kByRows, kEngineSlots}) {
      all[count].config = ring_tile(t, 2, 1, slots);
      all[count++].config.has_c = slots == kByRows;
    }
  return all;
}();

// Persistent in text for sm_90a, which alone has its instructions; nothing elsewhere.
struct OnHopper {
  static constexpr bool begins_itself = true;

  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
    Persistent::run<T, Out, C>(p);
#else
    (void)p;
#endif
  }
};
// Is a kernel more than nothing?
inline bool has_code(const void* kernel, DebugInfo where) {
  constexpr int kFewRegisters = 64;  // multiplying takes more
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), where.file_name(), long(where.line()));
  return attributes.numRegs > kFewRegisters;
}

// An instance for any alignment serves if the choice's own Config was not: the layouts of the
// call (a size of 1 makes them ambiguous), and single accesses unless all may be wide.
template <class T>
Start compiled_for(Start start, Layout a_layout, Layout b_layout) {
  Config& c = start.config;
  constexpr int kWide = 16 / int(sizeof(T));
  const bool is_async = c.stages > 1;
  const bool wide = c.a_layout == a_layout && c.b_layout == b_layout &&
                    (is_async || c.a_vector == kWide) && c.b_vector == kWide && c.d_vector == 4;
  c.a_layout = a_layout;
  c.b_layout = b_layout;
  c.has_c = 1;
  if (!wide) c.a_vector = c.b_vector = c.d_vector = 1;
  if (start.shared_bytes && !is_async)
    start.shared_bytes = tensor_core_shared_bytes(c, int(sizeof(T)));
  return start;
}

// Launches a start by what of `Set` serves it.
template <class T, class Set, class P>
std::string_view run(Set compiled, const Start& start, const P& p, Layout a_layout, Layout b_layout,
                     cudaStream_t stream, DebugInfo where) {
  Start served = compiled_for<T>(start, a_layout, b_layout);
  served.config.has_c = p.beta != 0;
  if (launch_listed<Set>(served, p, stream, where)) return compiled.variant;
  served.config.has_c = 1;
  return launch_or_fail<Set>(compiled.variant, served, p, stream, where);
}

[[noreturn]] inline void fail_unsupported(GemmVersion version, std::string_view why,
                                          DebugInfo where) {
  fail({ErrorKind::unsupported, where}, "launch_gemm: ", variant_name(version), ": ", why);
}

// The instance of kPersistentList for a call of row-major matrices.
inline Choice compiled_persistent(const Params& p, Given given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  given.has_c = p.beta != 0;
  std::optional<WeighedTile> best;
  for_each_tile(p, given, gpu, kLauncherRingTiles, {}, [&](const WeighedTile& w) {
    if (!w.tile.swap && (!best || w.us < best->us)) best = w;
  });
  // Rows of one element lie too close together to be lines.
  if (!best || best->config.a_layout != kRows || best->config.b_layout != kRows)
    return op::refuse("needs n and k of 2 or more");
  best->config.c_vector = best->config.d_vector = 1;
  best->config.has_c = best->config.slots == kByRows;  // which reads C if beta is not 0
  return persistent_start(p, given, gpu, *best);
}

// WGMMA_TMA, or why it cannot run.
template <class T>
std::string_view run_persistent(const Params& p, const Given& given, cudaStream_t stream,
                                DebugInfo where) {
  using Compiled = Kernels<OnHopper, kPersistentList, T, T>;
  constexpr GemmVersion version = GemmVersion::WGMMA_TMA;
  const Choice choice = compiled_persistent(p, given, current_gpu(where));
  if (!choice.refusal.empty()) fail_unsupported(version, choice.refusal, where);
  const auto* kernel =
      reinterpret_cast<const void*>(Compiled::template entry<Constant<Compiled::list[0]>>());
  if (!has_code(kernel, where))
    fail_unsupported(version, "the program has no code for sm_90a; add it to nvcc's architectures",
                     where);
  const Config& c = choice.start.config;
  WithResultMap<Params> full{{p, {}, {}}, {}};
  full.a_map = encode_lines<T>(p.a.data, p.k, p.m, p.k, a_box_lines(c), where);
  full.b_map = encode_lines<T>(p.b.data, p.n, p.k, p.n, b_box_lines(c), where);
  if (c.slots == kEngineSlots)
    full.d_map = encode_lines<T>(p.d.data, p.n, p.m, p.n, slot_shape(c, sizeof(T)).rows, where);
  return launch_or_fail<Compiled>(variant_name(version), choice.start, full, stream, where);
}

// The rungs as they are, and with a functor.
struct Plain {
  template <class Rung>
  using Of = Rung;
  Params params(const Params& p) const { return p; }
};
template <class Functor>
struct By {
  template <class Rung>
  using Of = WithFunctor<Rung, Functor>;
  Functor functor;
  FunctorParams<Functor> params(const Params& p) const { return {p, functor}; }
};

// A call of launch_gemm but its factors.
template <class T>
struct DenseCall {
  const T *a, *b;
  T* c;
  int64_t m, n, k;
};

template <class T, class Finish>
std::string_view launch(const DenseCall<T>& call, const Finish& finish, float alpha, float beta,
                        GemmVersion version, cudaStream_t stream, DebugInfo where) {
  const auto& [a, b, c, m, n, k] = call;
  validate_gemm_dims(m, n, k);
  if (version == GemmVersion::WGMMA_TMA)
    for (const void* matrix : {static_cast<const void*>(a), static_cast<const void*>(b)})
      if (!op::is_vector_aligned(matrix)) throw std::runtime_error("Memory not properly aligned");
  if (version == GemmVersion::WGMMA_TMA && sizeof(T) != 2)
    fail_unsupported(version, "needs f16 or bf16; float would be rounded", where);
  if (m == 0 || n == 0) return {};
  if ((k > 0 && (!a || !b)) || !c) throw std::invalid_argument("Null pointer arguments");
  const Params p = contiguous_params(a, kRows, b, kRows, c, c, m, n, k, alpha, beta);
  const Given given{.operand_bytes = sizeof(T), .result_bytes = sizeof(T)};
  const auto run_chosen = [&](auto compiled, auto choose) {
    const Start start = choose(p, given, current_gpu(where)).start;
    return run<T>(compiled, start, finish.params(p), kRows, kRows, stream, where);
  };
  if (version == GemmVersion::Naive)
    return run_chosen(Kernels<typename Finish::template Of<Naive>, kNaiveList, T, T>{"naive"},
                      naive);
  if (version == GemmVersion::Tiled)
    return run_chosen(
        Kernels<typename Finish::template Of<BlockTiled>, kBlockTiledList, T, T>{"block_tiled"},
        block_tiled);
  if constexpr (sizeof(T) == 2) {
    if (version == GemmVersion::DoubleBuffer)
      fail_unsupported(version, "needs float: a copy in flight cannot convert", where);
    if (version == GemmVersion::WGMMA_TMA) {
      if constexpr (std::is_same_v<Finish, Plain>)
        return run_persistent<T>(p, given, stream, where);
      else
        fail_unsupported(version, "takes no functor", where);
    }
    return run_chosen(
        Kernels<typename Finish::template Of<TensorCore>, kTensorCoreList<T>, T, T>{"tensor_core"},
        tensor_core);
  } else {
    if (version == GemmVersion::TensorCore)
      fail_unsupported(version, "needs f16 or bf16; float would be rounded", where);
    return run_chosen(Kernels<typename Finish::template Of<Async>, kAsyncList, T, T>{"async"},
                      async);
  }
}

}  // namespace detail::gemm

// C = alpha A B + beta C for row-major A [m, k], B [k, n], C [m, n] of T: float, f16 or bf16. Sums
// are float, rounded once; k = 0 gives beta C; if beta is 0 C is not read. Returns the name of the
// variant that was launched, empty if C is empty. Throws std::invalid_argument for a null array or
// dimensions as validate_gemm_dims; Error of kind unsupported for TensorCore and WGMMA_TMA in
// float, which they would round, for DoubleBuffer in 16 bits, whose copies in flight cannot
// convert, and for WGMMA_TMA on any GPU but sm_90, in a program without code for sm_90a, and where
// k is 0 or a row of A or B does not start at a multiple of 16 bytes; std::runtime_error "Memory
// not properly aligned" for WGMMA_TMA if A or B does not, std::runtime_error if CUDA refuses. No
// version runs another's kernel.
template <class T>
std::string_view launch_gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k,
                             float alpha = 1, float beta = 0,
                             GemmVersion version = GemmVersion::Tiled,
                             cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gemm::launch(detail::gemm::DenseCall<T>{a, b, c, m, n, k}, detail::gemm::Plain{},
                              alpha, beta, version, stream, where);
}

// The same by the version that a configuration manager names: get_optimal_config(m, n, k).
template <class Manager, class T>
std::string_view schedule_gemm(Manager&& manager, const T* a, const T* b, T* c, int64_t m,
                               int64_t n, int64_t k, float alpha = 1, float beta = 0,
                               cudaStream_t stream = nullptr, DebugInfo where = {}) {
  const GemmVersion version = manager.get_optimal_config(m, n, k);
  return launch_gemm(a, b, c, m, n, k, alpha, beta, version, stream, where);
}

// A functor that finishes sums: float operator()(float x, int64_t row, int64_t col) const for
// device code.
template <class F>
concept SumFunctor = requires(const F& f, float x, int64_t at) { float(f(x, at, at)); };

// x + bias[col], then an activation: gelu of a product with its bias is
//   launch_gemm(a, b, c, m, n, k, AddBias<bf16, Activation::gelu>{bias})
using kernel::gemm::AddBias;

// The same, C = functor(alpha A B + beta C, row, col): the functor is compiled into the kernel and
// its members are the kernel's arguments, so it holds numbers and addresses of device memory. Each
// functor type compiles as many kernels.
template <class T, SumFunctor Functor>
std::string_view launch_gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k,
                             const Functor& functor, float alpha = 1, float beta = 0,
                             GemmVersion version = GemmVersion::Tiled,
                             cudaStream_t stream = nullptr, DebugInfo where = {}) {
  return detail::gemm::launch(detail::gemm::DenseCall<T>{a, b, c, m, n, k},
                              detail::gemm::By<Functor>{functor}, alpha, beta, version, stream,
                              where);
}

}  // namespace tensorcraft::kernels
