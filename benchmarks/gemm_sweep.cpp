// SPDX-License-Identifier: Apache-2.0
// Runs a rung of gemm with any Config, not only the shipped ones: what gemm_sweep.py calls to
// choose tiles. A function that fails prints why and returns null or -1. Handles are never freed: a
// process sweeps and ends.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/params.h"

#include <cstring>
#include <iostream>
#include <memory>

namespace {

using namespace tensorcraft;
using kernel::gemm::Config;

struct Run {
  op::Plan plan;
  jit::CompileReport report;
  std::shared_ptr<const LoadedKernel> kernel;
};

// The tile's fields, in the order of gemm_sweep.py; the rest of a Config is the problem's.
struct Tile {
  int block_m, block_n, block_k, warp_m, warp_n, thread_m, thread_n, threads, stages, min_blocks;
};

op::Plan shipped_plan(const char* variant, const TensorView& a, const TensorView& b,
                      const TensorView& out, bool transpose_b) {
  const op::Operator& op = find_operator("gemm");
  const auto& options = op.description().options;
  std::vector<op::Value> values(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].name == "allow_tf32") values[i] = true;
    if (options[i].name == "transpose_b") values[i] = transpose_b;
  }
  const std::vector<TensorView> inputs{a, b}, outputs{out};
  for (auto& row : op.explain(outputs, {inputs, values}, device_info(Device::cuda(0))).variants) {
    if (row.variant.name != variant) continue;
    if (!row.plan) fail(ErrorKind::unsupported, "gemm_sweep: ", variant, " ", row.reason);
    return *row.plan;
  }
  fail(ErrorKind::value, "gemm_sweep: gemm has no variant ", variant);
}

int shared_bytes(std::string_view variant, const Config& c, int element_bytes) {
  if (variant == "async") return async_shared_bytes(c);
  if (variant == "tma") return tma_shared_bytes(c, element_bytes);
  if (variant.starts_with("swizzled")) return swizzled_shared_bytes(c, element_bytes);
  return variant.starts_with("tensor_core") ? tensor_core_shared_bytes(c, element_bytes) : 0;
}

void set_tile(op::Step& step, std::string_view variant, const Tile& t, int64_t m, int64_t n,
              int element_bytes) {
  Config c;
  std::memcpy(&c, step.kernel.config.data(), sizeof(c));
  if (variant == "tma" && (t.block_m != c.block_m || t.block_n != c.block_n))
    fail(ErrorKind::value, "gemm_sweep: the tensor maps of tma are for its shipped tile, ",
         c.block_m, " x ", c.block_n);
  c.block_m = t.block_m, c.block_n = t.block_n, c.block_k = t.block_k;
  c.warp_m = t.warp_m, c.warp_n = t.warp_n, c.thread_m = t.thread_m, c.thread_n = t.thread_n;
  c.threads = t.threads, c.stages = t.stages;
  step.kernel.config = config_bytes(c);
  step.kernel.threads = t.threads;
  step.kernel.min_blocks = t.min_blocks;
  const int64_t cluster = step.launch.cluster.x, columns = div_ceil(n, t.block_n * cluster);
  step.launch.grid = {uint32_t(div_ceil(m, t.block_m) * columns * cluster)};
  step.launch.block = {uint32_t(t.threads)};
  step.launch.shared_bytes = uint32_t(shared_bytes(variant, c, element_bytes));
}

}  // namespace

extern "C" {

// D = A B for row-major A and D, and B as [k, n], or [n, k] with transpose_b. A null tile is the
// shipped one, which is then written to *chosen.
void* gemm_sweep_prepare(const char* variant, const char* dtype_name, int64_t m, int64_t n,
                         int64_t k, int transpose_b, void* a, void* b, void* d, const Tile* tile,
                         Tile* chosen) try {
  const DType dtype = parse_dtype(dtype_name).value();
  const Device gpu = Device::cuda(0);
  const TensorView x(a, dtype, {m, k}, gpu), out(d, dtype, {m, n}, gpu);
  const TensorView y(b, dtype, transpose_b ? Dims{n, k} : Dims{k, n}, gpu);
  auto run = std::make_unique<Run>();
  run->plan = shipped_plan(variant, x, y, out, transpose_b != 0);
  if (tile) set_tile(run->plan.first(), variant, *tile, m, n, int(dtype_bytes(dtype)));
  if (chosen) {
    Config c;
    std::memcpy(&c, run->plan.first().kernel.config.data(), sizeof(c));
    *chosen = {c.block_m,  c.block_n,  c.block_k, c.warp_m, c.warp_n,
               c.thread_m, c.thread_n, c.threads, c.stages, run->plan.first().kernel.min_blocks};
  }
  run->report = jit::compile(run->plan.first().kernel, device_info(gpu).arch());
  run->kernel = jit::get_kernel(run->plan.first().kernel, gpu);
  return run.release();
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return nullptr;
}

int gemm_sweep_launch(const void* handle, void* stream) try {
  const Run& run = *static_cast<const Run*>(handle);
  const StreamRef on(static_cast<CUstream_st*>(stream), 0);
  op::launch_plan(run.plan, Device::cuda(0), on, "gemm");
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return -1;
}

int gemm_sweep_registers(const void* handle) {
  return static_cast<const Run*>(handle)->report.registers;
}
int gemm_sweep_spill_bytes(const void* handle) {
  return int(static_cast<const Run*>(handle)->report.spill_bytes);
}

}  // extern "C"
