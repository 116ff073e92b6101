// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/norm/params.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::norm {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

// Facts of a call that Params do not hold. `config` has what it decides of a Config: form,
// activation and which tensors are given.
struct Given {
  Config config;
  int element_bytes, weight_bytes;
  bool is_quantized = false;  // the output is codes of a byte each
};

// The tensors of a call as raw pointers, null if one is not given.
struct Tensors {
  const void *x, *residual = nullptr, *weight, *bias = nullptr;
  void *out, *residual_out = nullptr;
  float *mean = nullptr, *rstd = nullptr;
};

// `rows` rows of `cols` elements, one after another in every tensor that is given.
inline CallParams contiguous_params(const Tensors& t, int64_t rows, int64_t cols, float eps) {
  const RowMap map = op::contiguous_rows(rows, cols);
  return with_maps(Params{.x_step = 1,
                          .residual_step = t.residual != nullptr,
                          .out_step = 1,
                          .residual_out_step = t.residual_out != nullptr,
                          .x = t.x,
                          .residual = t.residual,
                          .weight = t.weight,
                          .bias = t.bias,
                          .out = t.out,
                          .residual_out = t.residual_out,
                          .mean = t.mean,
                          .rstd = t.rstd,
                          .rows = rows,
                          .cols = cols,
                          .inverse_cols = 1.0f / float(cols),
                          .eps = eps},
                   map, t.residual ? map : RowMap{}, map, t.residual_out ? map : RowMap{});
}

// A tensor that is not given has neither address nor step.
inline bool has_unit_steps(const Params& p) {
  const auto is_unit = [](const void* data, int64_t step) {
    return step == 1 || (!data && step == 0);
  };
  return p.cols == 1 || (p.x_step == 1 && p.out_step == 1 && is_unit(p.residual, p.residual_step) &&
                         is_unit(p.residual_out, p.residual_out_step));
}

// Elements of a 16-byte access, or 1 if a row cannot be divided into such accesses.
inline int vector_of(const CallParams& p, const Given& given) {
  const int bytes = given.element_bytes, vector = 16 / bytes;
  const auto aligned = [&](const void* data, int tensor, int element_bytes) {
    return op::rows_vector_aligned(data, p.maps[tensor], element_bytes);
  };
  // Codes are fewer bytes than 16 bytes of x.
  const auto codes_aligned = [&] {
    const RowMap& out = p.maps[Params::kOut];
    if (reinterpret_cast<uintptr_t>(p.out) % size_t(vector)) return false;
    return std::all_of(out.stride, out.stride + out.axes,
                       [&](int64_t stride) { return stride % vector == 0; });
  };
  return p.cols % vector == 0 && op::is_vector_aligned(p.weight) && op::is_vector_aligned(p.bias) &&
                 aligned(p.x, Params::kX, bytes) && aligned(p.residual, Params::kResidual, bytes) &&
                 aligned(p.residual_out, Params::kResidualOut, bytes) &&
                 (given.is_quantized ? codes_aligned() : aligned(p.out, Params::kOut, bytes))
             ? vector
             : 1;
}

// The Config of which a rung decides `shape`.
constexpr Config with_given(Config shape, const Config& given) {
  shape.form = given.form;
  shape.activation = given.activation;
  shape.has_residual = given.has_residual;
  shape.has_weight = given.has_weight;
  shape.has_bias = given.has_bias;
  return shape;
}

inline Start start(const CallParams& p, const Config& given, const Config& shape, int64_t blocks) {
  Config config = with_given(shape, given);
  config.nested = p.is_nested();
  return {.config = config, .blocks = blocks};
}

// Codes that are not in registers come from a kernel that asks at run time what is given.
inline Config compiled_in(const Given& given) {
  return given.is_quantized ? Config{.form = given.config.form} : given.config;
}

// The elements of a row that a thread keeps at best. rms has one sum of a row, so all threads of a
// multiprocessor run. Codes are a few instructions an element, so a thread keeps more: fewer wait
// for the row's scale, and those of other rows run meanwhile.
constexpr int kept(const Given& given, int vector) {
  if (vector == 1) return 8;
  return (given.config.form == Form::rms && !given.is_quantized ? 2 : 4) * vector;
}

constexpr Config in_registers_config(const Given& given, int64_t cols, int vector) {
  return op::registers_config<Config>(cols, vector, kept(given, vector), 1024);
}

// `c` has the shape and what is given.
constexpr int in_registers_min_blocks(const Given& given, const Config& c) {
  if (given.is_quantized) return std::max(1, (c.has_residual ? 768 : 1024) / c.threads);
  // Wide weights take about as many registers as a residual.
  const bool crowded = given.weight_bytes > given.element_bytes;
  if (c.form == Form::layer) {
    // 1024 threads of 4 accesses on a multiprocessor keep enough bytes in flight; 512 of them do if
    // a residual is read too, which leaves each the registers for both.
    const int held = op::held_registers(c.slots, c.vector, c.has_residual);
    const int wanted = c.has_residual || held > 32 ? 512 : crowded || held > 16 ? 768 : 1024;
    return held <= 32 && wanted > c.threads ? wanted / c.threads : 1;
  }
  // 2 accesses a thread keep enough bytes in flight if all 2048 threads of a multiprocessor run;
  // blocks of 1024 need that, or one would be alone, yet with weights they have no room for it.
  // 0: the compiler chooses.
  const int held = op::held_registers(c.slots, c.vector, c.has_residual || crowded);
  const bool has_all = held <= 8 || (c.slots <= 2 && c.threads == 1024 && !c.has_weight);
  return (has_all ? 2048 : held <= 32 ? 768 : c.threads) / c.threads;
}

inline Choice naive(const CallParams& p, const Given& given, const op::Gpu&) {
  return start(p, compiled_in(given), {.threads = 128, .group = 1}, div_ceil(p.rows, int64_t(128)));
}

// A block walks over rows if there are more of them than a grid has blocks.
inline Start block_start(const CallParams& p, const Config& given, int vector) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return start(p, given, {.threads = threads, .group = threads, .vector = vector},
               std::min(p.rows, op::kMaxBlocks));
}

inline Choice block(const CallParams& p, const Given& given, const op::Gpu&) {
  return block_start(p, compiled_in(given), 1);
}

inline constexpr std::string_view kApart = "the last axis must have stride 1";

// Why a rung that moves 16 bytes at once cannot run, or empty.
inline std::string_view pieces_refusal(const CallParams& p, const Given& given) {
  if (given.is_quantized) return "stores no codes: out_dtype must be the dtype of x";
  if (!has_unit_steps(p)) return kApart;
  return vector_of(p, given) == 1
             ? "rows must start at 16-byte boundaries and be a multiple of 16 bytes long"
             : "";
}

inline Choice vectorized(const CallParams& p, const Given& given, const op::Gpu&) {
  if (const auto why = pieces_refusal(p, given); !why.empty()) return op::refuse(why);
  return block_start(p, given.config, vector_of(p, given));
}

inline Choice in_registers(const CallParams& p, const Given& given, const op::Gpu&) {
  if (!has_unit_steps(p)) return op::refuse(kApart);
  if (p.cols > op::kMaxRegisterRow)
    return op::refuse("rows of more than 16384 elements do not fit the registers");
  if (p.rows > op::kMaxBlocks) return op::refuse("more than 2^31 - 1 rows");
  const Config shape = in_registers_config(given, p.cols, vector_of(p, given));
  Start s = start(p, given.config, shape, div_ceil(p.rows, int64_t(shape.threads / shape.group)));
  s.min_blocks = in_registers_min_blocks(given, s.config);
  return s;
}

// Measured on an H200. Why a row is not worth a way through shared memory, or empty.
inline std::string_view short_row(const CallParams& p, const Given& given) {
  return p.cols * given.element_bytes <= 32 * 1024 ? "rows of up to 32 KiB are faster in registers"
                                                   : "";
}

inline Choice staged(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = pieces_refusal(p, given); !why.empty()) return op::refuse(why);
  return op::staged<Config>(
      p.rows, p.cols, given.element_bytes, 1 + given.config.has_residual, gpu,
      [&](const Config& shape, int64_t blocks) { return start(p, given.config, shape, blocks); },
      short_row(p, given));
}

inline Choice persistent(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = pieces_refusal(p, given); !why.empty()) return op::refuse(why);
  const Config& c = given.config;
  return op::persistent<Config>(
      p.rows, given.element_bytes,
      op::persistent_rows(p.cols, given.element_bytes, 1 + c.has_residual,
                          (c.has_weight + c.has_bias) * given.weight_bytes, gpu),
      gpu, [&](const Config& shape, int64_t blocks) { return start(p, c, shape, blocks); },
      short_row(p, given));
}

// Why rungs may spill.
inline constexpr std::string_view kExtremeRows =
    "rows whose squares no float32 holds are walked again, which is rare";

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "persistent",
     .file = "05_persistent.cuh",
     .idea = "blocks stay: the next rows arrive while one is worked on, and weights are read once",
     .choose = persistent,
     .spills = kExtremeRows,
     .counter_at = int(offsetof(Params, taken))},
    {.name = "staged",
     .file = "04_staged.cuh",
     .idea = "the copy engine brings the row to the shared memory of a block or a cluster",
     .choose = staged,
     .spills = kExtremeRows},
    {.name = "in_registers",
     .file = "03_in_registers.cuh",
     .idea = "the row stays in registers: one read, one write, 16-byte accesses",
     .choose = in_registers,
     .spills = kExtremeRows},
    {.name = "vectorized",
     .file = "02_vectorized.cuh",
     .idea = "16-byte accesses, one read for the sums and a second for the result",
     .choose = vectorized},
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "one block a row, sums through shuffles and shared memory",
     .choose = block},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row",
     .choose = naive,
     .general = op::with_nested<Config>},
};
// The rung that holds codes in registers too, by a kernel of its own.
inline constexpr std::string_view kHoldsRows = "in_registers";

}  // namespace tensorcraft::kernel::norm
