// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/warp.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/cluster.hpp"

namespace tensorcraft {
namespace simt {
namespace {

std::string hex(unsigned mask) { return join("0x", std::hex, mask); }

Gathering& gathering_for(Cluster& cluster, Warp& warp, const WarpInstruction& instruction,
                         unsigned mask, const SourceLine& line) {
  for (Gathering& g : warp.gatherings) {
    if (g.mask != mask) continue;
    if (g.instruction != &instruction)
      cluster.fault(
          join("divergent warp: this lane executes ", instruction.name,
               " while other lanes of mask ", hex(mask), " wait in ", g.instruction->name),
          &line);
    return g;
  }
  warp.gatherings.push_back({.instruction = &instruction, .mask = mask});
  return warp.gatherings.back();
}

// Runs the instruction if every lane has come, and wakes all but the calling thread.
bool complete_if_all(Cluster& cluster, Warp& warp, Gathering& g, const Thread* caller) {
  if (g.arrived != (g.mask & warp.exists & ~warp.exited)) return false;
  if (g.body) g.body(g.arguments);
  const unsigned arrived = g.arrived;
  if (Shadow* shadow = cluster.shadow(); shadow && g.instruction->orders_memory) {
    std::vector<Thread*> lanes;
    for (int i = 0; i < 32; ++i)
      if (arrived >> i & 1u) lanes.push_back(warp.first + i);
    shadow->synchronise(lanes);
  }
  if (&g != &warp.gatherings.back()) g = warp.gatherings.back();
  warp.gatherings.pop_back();
  for (int i = 0; i < 32; ++i)
    if ((arrived >> i & 1u) && warp.first + i != caller) cluster.wake(warp.first[i]);
  return true;
}

void gather(Cluster& cluster, const WarpInstruction& instruction, unsigned mask, void* argument,
            void (*body)(const LaneArguments&), const SourceLine& line) {
  Thread& self = cluster.self();
  Warp& warp = *self.warp;
  if (!(mask >> self.lane & 1u))
    cluster.fault(
        join(instruction.name, ": lane ", self.lane, " is not in its own mask ", hex(mask)), &line);
  if (instruction.whole_warp && (warp.exited || warp.exists != 0xffffffffu))
    cluster.fault(join(instruction.name, " needs its whole warp, but ",
                       32 - __builtin_popcount(warp.exists & ~warp.exited),
                       " lanes have exited or do not exist"),
                  &line);
  Gathering& g = gathering_for(cluster, warp, instruction, mask, line);
  g.arguments[size_t(self.lane)] = argument;
  g.arrived |= 1u << self.lane;
  g.body = body;
  if (!complete_if_all(cluster, warp, g, &self)) cluster.wait(instruction.name, line);
}

}  // namespace

void warp_collective(const WarpInstruction& instruction, unsigned mask, void* argument,
                     void (*body)(const LaneArguments&), const SourceLine& line) {
  gather(*Cluster::current(), instruction, mask, argument, body, line);
}

void leave_warp(Thread& thread) {
  Cluster& cluster = *Cluster::current();
  Warp& warp = *thread.warp;
  for (size_t i = 0; i < warp.gatherings.size();) {
    Gathering& g = warp.gatherings[i];
    if (g.instruction->whole_warp)
      cluster.fault(join(g.instruction->name, " needs its whole warp, but lane ", thread.lane,
                         " exits while other lanes wait in it"),
                    &warp.first[__builtin_ctz(g.arrived)].line);
    if (!complete_if_all(cluster, warp, g, nullptr)) ++i;
  }
}

int lane() { return Cluster::current()->self().lane; }

namespace {

struct Shuffle {
  uint64_t value, result;
  int source;
};
constexpr WarpInstruction kShuffle{"__shfl_sync"}, kVote{"__ballot_sync"},
    kSync{"__syncwarp", false, true};

struct Vote {
  bool predicate;
  unsigned result;
};

int source_of(ShuffleMode mode, int lane, int operand, int width) {
  const int segment = lane & ~(width - 1), end = segment + width;
  int source = lane;
  if (mode == ShuffleMode::index) source = segment + (operand & (width - 1));
  if (mode == ShuffleMode::exclusive_or) source = lane ^ operand;
  if (mode == ShuffleMode::down) source = lane + operand;
  if (mode == ShuffleMode::up) return lane - operand >= segment ? lane - operand : lane;
  return source < end ? source : lane;
}

}  // namespace

uint64_t shuffle(unsigned mask, uint64_t value, ShuffleMode mode, int operand, int width,
                 const SourceLine& line) {
  Cluster& cluster = *Cluster::current();
  Shuffle mine{value, value, source_of(mode, cluster.self().lane, operand, width)};
  gather(
      cluster, kShuffle, mask, &mine,
      [](const LaneArguments& lanes) {
        for (void* lane : lanes) {
          if (!lane) continue;
          auto& s = *static_cast<Shuffle*>(lane);
          // From a lane that takes no part the hardware gives anything: zeros show it soonest.
          const void* from = lanes[size_t(s.source & 31)];
          s.result = from ? static_cast<const Shuffle*>(from)->value : 0;
        }
      },
      line);
  return mine.result;
}

unsigned ballot(unsigned mask, bool predicate, const SourceLine& line) {
  Vote mine{predicate, 0};
  warp_collective(
      kVote, mask, &mine,
      [](const LaneArguments& lanes) {
        unsigned all = 0;
        for (size_t i = 0; i < 32; ++i)
          if (lanes[i] && static_cast<const Vote*>(lanes[i])->predicate) all |= 1u << i;
        for (void* lane : lanes)
          if (lane) static_cast<Vote*>(lane)->result = all;
      },
      line);
  return mine.result;
}

}  // namespace simt

void __syncwarp(unsigned mask, SourceLine line) {
  simt::warp_collective(simt::kSync, mask, nullptr, nullptr, line);
}

}  // namespace tensorcraft
