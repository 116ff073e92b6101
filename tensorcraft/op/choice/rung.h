// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

#include <algorithm>
#include <string_view>

// The words of operators' plan headers (ops/<op>/plan.h, and <what>_plan.h that it includes): how
// a rung is chosen and started. They are plain C++ of the host without types of the library: both
// the library and the launchers of kernels/ choose by them.
namespace tensorcraft::op {

inline constexpr int64_t kMaxBlocks = (int64_t(1) << 31) - 1;  // of a grid

// A GPU as choices see it. 0: not known.
struct Gpu {
  int architecture = 0;  // 90: sm_90
  int num_sms = 0;
  int threads_per_sm = 0;
  int64_t shared_bytes_per_block = 0;  // the opt-in maximum
  constexpr bool has_clusters() const { return architecture >= 90; }
};

// How a rung is started for one call: config.threads threads in each of `blocks` blocks.
template <class Config>
struct Start {
  Config config;
  int64_t blocks = 0;
  int min_blocks = 1;    // blocks per SM in the launch bounds, of which there is room for all
  int shared_bytes = 0;  // dynamic shared memory
  int cluster = 1;       // blocks of a cluster
};

// Why a rung cannot run a call; empty: it can.
struct Refusal {
  std::string_view text;
};
constexpr Refusal refuse(std::string_view text) { return {text}; }

// The answer of a rung to a call: why it cannot run it, or how it is started, and then perhaps why
// a later rung is better, which counts unless the caller names this one.
template <class Config>
struct Choice {
  std::string_view refusal, preference;
  Start<Config> start{};

  constexpr Choice(Refusal why) : refusal(why.text) {}                         // NOLINT
  constexpr Choice(const Start<Config>& how, std::string_view why_later = {})  // NOLINT
      : preference(why_later), start(how) {}
};

// A Config that a rung weighed for a call: `rounds` of blocks follow one another on the busiest
// multiprocessor, and in that time multiprocessors are busy for a share of `busy` on average.
template <class Config>
struct Candidate {
  Config config{};
  double us = 0;  // predicted; 0: the rung compares without times
  int64_t rounds = 0;
  double busy = 0;
};
// All of them, in the order of the rung's table.
template <class Config>
class Candidates {
 public:
  static constexpr int kMost = 64;
  // No more than kMost are kept.
  constexpr void add(const Candidate<Config>& one) {
    if (count_ < kMost) all_[count_++] = one;
  }
  constexpr const Candidate<Config>* begin() const { return all_; }
  constexpr const Candidate<Config>* end() const { return all_ + count_; }
  constexpr int size() const { return count_; }

 private:
  Candidate<Config> all_[kMost]{};
  int count_ = 0;
};

// Why no GPU of this kind can be started so; empty: it can.
template <class Config>
constexpr std::string_view start_refusal(const Start<Config>& start, const Gpu& gpu) {
  if (start.blocks > kMaxBlocks) return "needs more blocks than a grid has";
  if (gpu.shared_bytes_per_block && start.shared_bytes > gpu.shared_bytes_per_block)
    return "needs more shared memory than a block has";
  return {};
}

// Returns a rung's choice, or a refusal if no GPU of this kind can be started as it says.
template <class Config>
constexpr Choice<Config> check_start(const Choice<Config>& choice, const Gpu& gpu) {
  if (!choice.refusal.empty()) return choice;
  const std::string_view why = start_refusal(choice.start, gpu);
  return why.empty() ? choice : refuse(why);
}

// The Given of operators whose Params say everything that choices look at.
struct NoGiven {};

// One rung of a ladder, which is an array of them, best first. Given is what a choice looks at
// besides Params: dtypes and what the Config says of the call.
template <class Params, class Given, class Config>
struct Rung {
  std::string_view name;  // of the variant; the rung is the type of this name in PascalCase
  std::string_view file;  // in the operator's folder, "05_staged.cuh"
  std::string_view idea;  // one line: what it does and why it is fast
  Choice<Config> (*choose)(const Params&, const Given&, const Gpu&);
  std::string_view alias = {};   // another name the inventory asks for
  std::string_view spills = {};  // why it may spill; empty: it may not
  std::string_view kernel = {};  // the type in snake_case, if that is not the variant's name
  int counter_at = -1;  // where Params holds the address of a uint32_t that is 0 before and after
  // Changes Params for this rung alone, after it was chosen; null: nothing.
  void (*adapt)(Params&, const Given&, const Gpu&) = nullptr;
  // Adds what the choice weighs, for `explain`; if the call fixes what no Config of the rung has,
  // all that the rung has. Null: there is one Config for a call.
  void (*weigh)(Candidates<Config>&, const Params&, const Given&, const Gpu&) = nullptr;
  // The Config whose kernel also serves calls of this one, so that few kernels compiled ahead serve
  // all calls; null: each serves its own alone.
  Config (*general)(Config) = nullptr;
};

// As Rung::general: what follows strides of any number of axes serves rows in one line too, and
// what counts in 64 bits serves what 32 bits count.
template <class Config>
constexpr Config with_nested(Config config) {
  config.nested = 1;
  return config;
}
template <class Config>
constexpr Config with_wide(Config config) {
  config.wide = 1;
  return config;
}

// The blocks of `wanted` that a multiprocessor has room for; all of them if it does not say how
// many threads it takes. 0 leaves the choice to the compiler.
constexpr int blocks_with_room(int wanted, int threads, int threads_per_sm) {
  return threads_per_sm ? std::min(wanted, threads_per_sm / threads) : wanted;
}

// Is a null or other address a multiple of 16?
inline bool is_vector_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

}  // namespace tensorcraft::op
