// SPDX-License-Identifier: Apache-2.0
// Runs a rung of gemm with any Config, not only the shipped ones: what gemm_sweep.py calls to
// choose tiles. A function that fails returns null or -1, and gemm_sweep_error() says why. Handles
// are never freed: a process sweeps and ends.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/maps.hpp"

#include <charconv>
#include <cstring>
#include <memory>

namespace {

using namespace tensorcraft;
using namespace tensorcraft::kernel::gemm;

// A product of row-major matrices, as in gemm_sweep.py; `transpose`: the operand is stored as
// [k, m] or [n, k].
struct Problem {
  int64_t m, n, k;
  int32_t transpose_a, transpose_b;
  const char* dtype;
};

// A rung with its Config as text; what the functions below ask for.
struct Run {
  op::Plan plan;
  std::string text, facts;
};

// What a start depends on besides the Config, which holds the tile.
struct Sizes {
  const Params& params;
  const Given& given;
  const op::Gpu& gpu;
  int min_blocks;
};

// How each rung is started with a tile that is not its own: a new rung adds its row.
struct Recipe {
  std::string_view variant;
  Start (*start)(const Sizes&, const Config&);
};
// The rungs on wgmma: as many clusters as stay, or one for each tile.
Start ring_start_of(const Sizes& s, const Config& c, bool stays) {
  const RingTile tile{.m = c.block_m,
                      .n = c.block_n,
                      .cluster_m = c.cluster_m,
                      .cluster_n = c.cluster_n,
                      .split = c.split,
                      .swap = c.swap};
  const Walk walk = walk_of(s.params, s.given, s.gpu, tile);
  const int64_t clusters = stays ? walk.clusters : walk.tiles;
  return ring_start(c, s.given, clusters * c.cluster_m * c.cluster_n * c.split);
}

constexpr Recipe kRecipes[] = {
    {"tma",
     [](const Sizes& s, const Config& c) {
       Start made = start(s.params, s.given, c, s.min_blocks, tma_shared_bytes(c, 2));
       made.blocks = num_tiles(s.params, s.given, c.block_m, c.block_n * kTmaCluster) * kTmaCluster;
       made.cluster = kTmaCluster;
       return made;
     }},
    {"swizzled",
     [](const Sizes& s, const Config& c) {
       return start(s.params, s.given, c, s.min_blocks,
                    swizzled_shared_bytes(c, s.given.operand_bytes));
     }},
    {"tensor_core",
     [](const Sizes& s, const Config& c) {
       return start(s.params, s.given, c, s.min_blocks,
                    tensor_core_shared_bytes(c, s.given.operand_bytes));
     }},
    {"async",
     [](const Sizes& s, const Config& c) {
       return start(s.params, s.given, c, s.min_blocks, async_shared_bytes(c));
     }},
    {"persistent", [](const Sizes& s, const Config& c) { return ring_start_of(s, c, true); }},
    {"split_k", [](const Sizes& s, const Config& c) { return ring_start_of(s, c, false); }},
    {"wgmma", [](const Sizes& s, const Config& c) { return ring_start_of(s, c, false); }},
    {"warp_specialized",
     [](const Sizes& s, const Config& c) { return ring_start_of(s, c, false); }},
    {"",  // any other
     [](const Sizes& s, const Config& c) { return start(s.params, s.given, c, s.min_blocks); }},
};

const Recipe& recipe_of(std::string_view variant) {
  constexpr std::string_view kTf32 = "_tf32";
  if (variant.ends_with(kTf32)) variant.remove_suffix(kTf32.size());
  for (const Recipe& recipe : kRecipes)
    if (recipe.variant == variant) return recipe;
  return *std::prev(std::end(kRecipes));
}

op::Plan shipped_plan(const char* variant, const Problem& q, std::span<const TensorView> inputs,
                      const TensorView& out, const DeviceInfo& device) {
  const op::Operator& op = find_operator("gemm");
  const auto& options = op.description().options;
  std::vector<op::Value> values(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].name == "allow_tf32") values[i] = true;
    if (options[i].name == "transpose_a") values[i] = q.transpose_a != 0;
    if (options[i].name == "transpose_b") values[i] = q.transpose_b != 0;
  }
  for (auto& row : op.explain({&out, 1}, {inputs, values}, device).variants) {
    if (row.variant.name != variant) continue;
    if (!row.plan) fail(ErrorKind::unsupported, variant, ' ', row.reason);
    return *row.plan;
  }
  fail(ErrorKind::value, "gemm has no variant ", variant);
}

int number_of(std::string_view name, std::string_view text) {
  int value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size())
    fail(ErrorKind::value, name, " must be a whole number, got \"", text, '"');
  return value;
}

// Sets a field of a Config by its name to a number or to the name of a value.
void set_field(op::Step& step, std::string_view name, std::string_view value) {
  const std::span<const ConfigField> fields = step.kernel.rung->fields;
  std::string known;
  for (size_t i = 0; i < fields.size(); ++i) {
    known.append(i ? ", " : "").append(fields[i].name);
    if (fields[i].name != name) continue;
    const auto& words = fields[i].values;
    const auto word = std::find(words.begin(), words.end(), value);
    const int number = word == words.end() ? number_of(name, value) : int(word - words.begin());
    std::memcpy(step.kernel.config.data() + i * sizeof(int), &number, sizeof(int));
    return;
  }
  fail(ErrorKind::value, "a Config has no field ", name, "; there are ", known);
}

// "block_m=128,stages=4", and min_blocks, which belongs to the kernel's bounds.
void set_fields(op::Step& step, std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view name = item.substr(0, equals),
                           value = item.substr(std::min(equals + 1, item.size()));
    if (name == "min_blocks")
      step.kernel.min_blocks = number_of(name, value);
    else
      set_field(step, name, value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Starts the first step of a plan as its Config says now.
void restart(op::Plan& plan, std::string_view variant, const DeviceInfo& device) {
  op::Step& step = plan.main();
  const auto params = plan.params_as<Params>(step);
  const int bytes = int(dtype_bytes(step.kernel.types[0]));
  const Given given{.operand_bytes = bytes,
                    .result_bytes = int(dtype_bytes(step.kernel.types[1])),
                    .allow_tf32 = true};
  Config c;
  std::memcpy(&c, step.kernel.config.data(), sizeof(c));
  const op::Gpu gpu = op::gpu_of(device);
  const Start start = recipe_of(variant).start({params, given, gpu, step.kernel.min_blocks}, c);
  if (start.blocks > op::kMaxBlocks) fail(ErrorKind::unsupported, "needs 2^31 blocks or more");
  if (start.shared_bytes > gpu.shared_bytes_per_block)
    fail(ErrorKind::unsupported, "needs ", start.shared_bytes,
         " bytes of shared memory; a block has ", gpu.shared_bytes_per_block);
  step.kernel.threads = c.threads;
  step.launch.grid = {uint32_t(start.blocks)};
  step.launch.block = {uint32_t(c.threads)};
  step.launch.cluster = {uint32_t(start.cluster)};
  step.launch.shared_bytes = uint32_t(start.shared_bytes);
  add_maps(plan, params, given, device);
}

// "block_m = 128, block_n = 256, ..., min_blocks = 1, blocks = 512, ..."
std::string text_of(const op::Step& step) {
  return join(op::config_text(step), ", min_blocks = ", step.kernel.min_blocks,
              ", blocks = ", step.launch.grid.x, ", cluster = ", step.launch.cluster.x,
              ", shared_bytes = ", step.launch.shared_bytes);
}

thread_local std::string last_error;

template <class Result, class Action>
Result guarded(Result failed, Action action) {
  try {
    return action();
  } catch (const std::exception& error) {
    last_error = error.what();
    return failed;
  }
}

}  // namespace

extern "C" {

// Why the last call of this thread failed.
const char* gemm_sweep_error() { return last_error.c_str(); }

// D = A B by a variant on GPU 0, or for an architecture ("sm_90a"), where it can be compiled alone.
// `fields` changes the shipped Config: "block_m=128,stages=4"; empty: nothing.
void* gemm_sweep_plan(const char* arch, const char* variant, const Problem* problem, void* a,
                      void* b, void* d, const char* fields) {
  return guarded<void*>(nullptr, [&] {
    const Problem& q = *problem;
    const DType dtype = parse_dtype(q.dtype).value();
    const Device gpu = Device::cuda(0);
    const DeviceInfo device = *arch ? device_info_of_arch(arch) : device_info(gpu);
    const TensorView inputs[] = {{a, dtype, q.transpose_a ? Dims{q.k, q.m} : Dims{q.m, q.k}, gpu},
                                 {b, dtype, q.transpose_b ? Dims{q.n, q.k} : Dims{q.k, q.n}, gpu}};
    auto run = std::make_unique<Run>();
    run->plan = shipped_plan(variant, q, inputs, {d, dtype, {q.m, q.n}, gpu}, device);
    if (*fields) {
      set_fields(run->plan.main(), fields);
      restart(run->plan, variant, device);
    }
    run->text = text_of(run->plan.main());
    return run.release();
  });
}

// The Config with its launch as "name = value, ...".
const char* gemm_sweep_text(const void* handle) {
  return static_cast<const Run*>(handle)->text.c_str();
}

// Compiles the kernel, for GPU 0 if `arch` is empty. What the compiler says of it, in the same
// form.
const char* gemm_sweep_compile(const char* arch, void* handle) {
  return guarded<const char*>(nullptr, [&] {
    Run& run = *static_cast<Run*>(handle);
    const std::string name = *arch ? arch : device_info(Device::cuda(0)).arch();
    const jit::CompileReport report = jit::compile(run.plan.main().kernel, name);
    run.facts = join("registers = ", report.registers, ", spill_bytes = ", report.spill_bytes);
    return run.facts.c_str();
  });
}

int gemm_sweep_launch(const void* handle, void* stream) {
  return guarded(-1, [&] {
    const Run& run = *static_cast<const Run*>(handle);
    const StreamRef on(static_cast<CUstream_st*>(stream), 0);
    op::launch_plan(run.plan, Device::cuda(0), on, "gemm");
    return 0;
  });
}

}  // extern "C"
