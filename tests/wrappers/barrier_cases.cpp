// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/barrier.cuh"

#include <algorithm>

namespace tensorcraft::test {
namespace {

constexpr size_t kThreads = kBarrierThreads, kHalf = kThreads / 2;
constexpr uint32_t kMaxCount = (1u << 20) - 1;

template <void (*kKernel)(const Params&)>
Case barrier(const char* name, int threads, size_t in_words, size_t out_words, int sm = 80) {
  Case c{.name = name,
         .header = "barrier.cuh",
         .sm = sm,
         .threads = threads,
         .in_words = int(in_words),
         .out_words = int(out_words),
         .simt = on_simt<kKernel>};
  c.fill = random_words;
  return c;
}

// Rows of so many words, each turned round.
std::vector<Expected> turned(Words in, size_t row) {
  std::vector<Expected> out;
  for (size_t i = 0; i < in.size(); ++i) out.push_back({in[i / row * row + row - 1 - i % row]});
  return out;
}

std::vector<Expected> expect_halves(Words in, int) {
  std::vector<uint32_t> x(in.begin(), in.end());
  for (uint32_t i = 0; i < kNamedSyncs; ++i) {
    const auto old = turned(x, kHalf);
    for (size_t t = 0; t < kThreads; ++t) x[t] = old[t].bits * 5 + i;
  }
  std::vector<Expected> out;
  for (const uint32_t word : x) out.push_back({word});
  return out;
}

// Writes a program that can run: all that a phase waits for comes.
class PhaseProgram {
 public:
  PhaseProgram(Random& random, std::span<uint32_t> in, int kind)
      : random_(random), in_(in), kind_(kind) {
    std::fill(in.begin(), in.begin() + kPhaseHead, 0);
    in[0] = count();
    for (int i = 0; i < 2; ++i) {
      const uint32_t arrivals = i ? count() : in[0];
      if (i) put(PhaseOp::initialise_again, arrivals);
      for (uint32_t phase = 0; phase < 2; ++phase) add_phase(phase, arrivals);
    }
  }

 private:
  uint32_t count() {
    return kind_ == 0   ? 1 + uint32_t(random_() % 3)
           : kind_ == 1 ? 1 + uint32_t(random_() % kMaxCount)
                        : kMaxCount;
  }
  void put(PhaseOp op, uint32_t x = 0) {
    in_[at_] = uint32_t(op);
    in_[at_ + 1] = x;
    at_ += 2;
  }
  uint32_t bytes() { return random_() % 2 ? 0 : 16 + uint32_t(random_() % 2) * 16; }

  void add_phase(uint32_t phase, uint32_t left) {
    put(PhaseOp::test);
    uint32_t expected = bytes();
    if (expected) put(PhaseOp::expect, expected);
    for (int i = 0; left > 0; ++i) {
      const uint32_t arrivals = i == 3 ? left : 1 + uint32_t(random_() % left);
      const uint32_t more = arrivals == 1 ? bytes() : 0;
      put(more ? PhaseOp::arrive_expect : PhaseOp::arrive, more ? more : arrivals);
      expected += more;
      left -= arrivals;
      if (left > 0 || expected > 0) put(PhaseOp::test);
    }
    // The copy engine brings them in two loads; the second completes the phase.
    if (expected > 16) put(PhaseOp::load, expected - 16);
    if (expected > 16) put(PhaseOp::test);
    if (expected > 0) put(PhaseOp::load, 16);
    put(PhaseOp::wait, phase % 2);
    put(PhaseOp::test);
  }

  Random& random_;
  std::span<uint32_t> in_;
  int kind_;
  size_t at_ = 4;
};

std::vector<Expected> expect_phases(Words in, int) {
  std::vector<Expected> out;
  uint32_t phase = 0, loaded = 0;
  for (size_t i = 0; i < kPhaseOps; ++i) {
    const auto op = PhaseOp(in[4 + 2 * i]);
    if (op == PhaseOp::wait) ++phase;
    if (op == PhaseOp::initialise_again) phase = 0;
    if (op == PhaseOp::load) loaded += in[5 + 2 * i] / 4;
    out.push_back({op != PhaseOp::test ? 0u : phase % 2 ? 1u : 2u});
  }
  for (uint32_t i = 0; i < kPhaseBytes / 4; ++i)
    out.push_back({i < loaded ? in[kPhaseHead + i] : 0});
  return out;
}

Case phases() {
  constexpr size_t bytes = kPhaseBytes / 4;
  Case c =
      barrier<mbarrier_phases>("mbarrier_phases", 32, kPhaseHead + bytes, kPhaseOps + bytes, 90);
  c.fill = [](Random& random, int block, std::span<uint32_t> in) {
    random_words(random, block, in);
    PhaseProgram(random, in, block % 3);
  };
  c.expect = expect_phases;
  return c;
}

}  // namespace

std::vector<Case> barrier_cases() {
  std::vector<Case> cases{phases()};
  const auto add = [&](Case c, std::vector<Expected> (*expect)(Words, int)) {
    c.expect = expect;
    cases.push_back(c);
  };
  constexpr size_t handed = kHandovers * kHalf, piped = kPipeSteps * 32;
  add(barrier<bar_handover>("bar_handover", kBarrierThreads, handed, handed),
      [](Words in, int) { return turned(in, kHalf); });
  add(barrier<bar_halves>("bar_halves", kBarrierThreads, kThreads, kThreads), expect_halves);
  add(barrier<mbarrier_pipe>("mbarrier_pipe", 64, piped, piped, 90),
      [](Words in, int) { return turned(in, 32); });
  return cases;
}

}  // namespace tensorcraft::test
