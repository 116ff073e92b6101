// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/warpgroup.hpp"

#include <algorithm>
#include <cstring>

namespace tensorcraft::simt {
namespace {

using Kind = GroupInstruction::Kind;

constexpr WarpInstruction kFence{"wgmma.fence", true}, kMma{"wgmma.mma_async", true},
    kCommit{"wgmma.commit_group", true}, kWait{"wgmma.wait_group", true};

const char* name_of(Kind kind) {
  return kind == Kind::fence    ? kFence.name
         : kind == Kind::mma    ? kMma.name
         : kind == Kind::commit ? kCommit.name
                                : kWait.name;
}

bool same(const Wgmma& x, const Wgmma& y) {
  return x.n == y.n && x.a == y.a && x.b == y.b && x.a_major == y.a_major &&
         x.b_major == y.b_major && x.negate_a == y.negate_a && x.negate_b == y.negate_b;
}
bool same(const GroupInstruction& x, const GroupInstruction& y) {
  return x.kind == y.kind && x.pending == y.pending && same(x.op, y.op) && x.a == y.a &&
         x.b == y.b && x.accumulate == y.accumulate && x.a_in_registers == y.a_in_registers;
}

// Visits what an instruction reads of shared memory, unit by unit; reported if it is outside.
template <class F>
void each_unit(const GroupInstruction& i, const Block& block, const F& visit) {
  const auto operand = [&](uint64_t descriptor, Major major, int extent, WgmmaType type) {
    for (const uint32_t at : unit_addresses(decode_descriptor(descriptor), major, extent, type)) {
      const std::byte* unit = block.shared + at;
      if (!Cluster::current()->is_shared(block, unit, 16))
        i.issue.fault(join("an operand's descriptor leads to byte ", at,
                           ", outside the block's shared memory"));
      visit(unit);
    }
  };
  if (!i.a_in_registers) operand(i.a, i.op.a_major, 64, i.op.a);
  operand(i.b, i.op.b_major, i.op.n, i.op.b);
}

void snapshot(GroupInstruction& i, Block& block) {
  ProxyViews& views = async().views;
  Shadow* const shadow = Cluster::current()->shadow();
  each_unit(i, block, [&](const std::byte* unit) {
    if (shadow) shadow->issue_read(unit, 16, {.wrapper = i.issue.instruction}, true);
    views.check(block, unit, 16, i.issue);
    i.operands.insert(i.operands.end(), unit, unit + 16);
  });
}

void check_unchanged(const GroupInstruction& i, const Block& block) {
  const std::byte* before = i.operands.data();
  Shadow* const shadow = Cluster::current()->shadow();
  each_unit(i, block, [&](const std::byte* unit) {
    if (shadow) shadow->read_done(unit, 16);
    if (std::memcmp(before, unit, 16) != 0)
      i.issue.fault(join("its operand at byte ", unit - block.shared,
                         " of shared memory changed between the issue and wgmma.wait_group"));
    before += 16;
  });
}

void compute(const GroupInstruction& i, const Block& block) {
  const auto b = read_operand(block.shared, decode_descriptor(i.b), i.op.b_major, i.op.n, i.op.b);
  std::vector<double> a;
  if (i.a_in_registers) {
    std::array<const uint32_t*, kWarpgroup> words;
    for (size_t t = 0; t < kWarpgroup; ++t) words[t] = i.a_registers[t].data();
    a = read_registers(words, i.op.a);
  } else {
    a = read_operand(block.shared, decode_descriptor(i.a), i.op.a_major, 64, i.op.a);
  }
  std::array<float*, kWarpgroup> d;
  for (size_t t = 0; t < kWarpgroup; ++t) d[t] = &i.d->values[t * size_t(i.d->count)];
  multiply(i.op, a, b, i.accumulate, d);
}

}  // namespace

Warpgroups::Group& Warpgroups::of(Thread& thread) {
  const auto& blocks = Cluster::current()->blocks();
  const size_t each = (thread.block->warps.size() + 3) / 4;
  if (groups_.empty()) groups_.resize(blocks.size() * each);
  Group& g = groups_[thread.block->rank * each + size_t(thread.rank) / kWarpgroup];
  g.block = thread.block;
  return g;
}

GroupInstruction& Warpgroups::join_group(Group& g, int warp, const GroupLane& lane) {
  const size_t number = g.next[size_t(warp)]++;
  if (number == g.first + g.instructions.size()) {
    g.instructions.push_back(*lane.instruction);
    GroupInstruction& i = g.instructions.back();
    if (i.kind == Kind::mma) snapshot(i, *g.block);
  }
  GroupInstruction& i = g.instructions[number - g.first];
  if (!same(i, *lane.instruction))
    lane.instruction->issue.fault(
        join("this warp executes ", name_of(lane.instruction->kind),
             " where another of its warpgroup executes ", name_of(i.kind),
             i.kind == lane.instruction->kind ? " with other operands" : ""));
  i.warps |= 1u << warp;
  return i;
}

bool Warpgroups::has_fence(const Group& g) {
  return g.fenced ||
         std::any_of(g.instructions.begin() + long(g.issued - g.first), g.instructions.end(),
                     [](const GroupInstruction& i) { return i.kind == Kind::fence; });
}

// From here to the landing the registers hold NaN. A chain goes on with the values in flight.
void Warpgroups::take_registers(Group& g, GroupInstruction& mma, int warp,
                                const LaneArguments& lanes) {
  const size_t first = size_t(warp) * 32;
  const auto* lane0 = static_cast<const GroupLane*>(lanes[0]);
  if (!mma.d) {
    for (const auto& a : g.accumulators)
      if (a->registers[first] == lane0->d) mma.d = a;
    if (!mma.d) {
      if (!has_fence(g))
        mma.issue.fault("no wgmma.fence since the threads last held the registers of D");
      mma.d = std::make_shared<Accumulator>();
      mma.d->count = mma.op.n / 2;
      mma.d->values.resize(kWarpgroup * size_t(mma.d->count));
      mma.d->shown.resize(mma.d->values.size());
      std::memset(mma.d->shown.data(), 0xff, mma.d->shown.size() * sizeof(float));
      mma.d->group = ~0u;  // until all warps have issued this
      g.accumulators.push_back(mma.d);
    }
    ++mma.d->in_flight;
  }
  Accumulator& d = *mma.d;
  if (d.count != mma.op.n / 2)
    mma.issue.fault("D is in flight with another shape: wgmma.wait_group comes first");
  for (size_t l = 0; l < 32; ++l) {
    const auto* lane = static_cast<const GroupLane*>(lanes[l]);
    if (lane->a) std::copy_n(lane->a, 4, mma.a_registers[first + l].begin());
    if (d.registers[first + l] == lane->d) continue;
    if (d.registers[first + l]) mma.issue.fault("the warps go on with different registers as D");
    d.registers[first + l] = lane->d;
    std::copy_n(lane->d, d.count, &d.values[(first + l) * size_t(d.count)]);
    std::memset(lane->d, 0xff, size_t(d.count) * sizeof(float));
  }
}

void Warpgroups::issue(const LaneArguments& lanes) {
  const auto& lane0 = *static_cast<const GroupLane*>(lanes[0]);
  Thread& thread = *lane0.thread;
  Group& g = of(thread);
  const int warp = thread.rank / 32 % 4;
  if (size_t(thread.rank / kWarpgroup * 4 + 4) > thread.block->warps.size())
    lane0.instruction->issue.fault("needs a whole warpgroup of 4 warps");
  const size_t number = g.next[size_t(warp)];
  for (void* lane : lanes) {
    auto& l = *static_cast<GroupLane*>(lane);
    if (!same(*l.instruction, *lane0.instruction))
      l.instruction->issue.fault("the lanes of a warp pass different operands");
    l.number = number;
  }
  GroupInstruction& i = join_group(g, warp, lane0);
  if (i.kind == Kind::mma) take_registers(g, i, warp, lanes);
  process(g);
}

// Goes on with the instructions that all four warps have issued.
void Warpgroups::process(Group& g) {
  while (g.issued < g.first + g.instructions.size()) {
    GroupInstruction& i = g.instructions[g.issued - g.first];
    if (i.warps != 0xf) break;
    ++g.issued;
    i.group = g.commits;
    i.landed = i.kind != Kind::mma;
    if (i.kind == Kind::fence) g.fenced = true;
    if (i.kind == Kind::commit) ++g.commits;
    if (i.kind == Kind::wait) wait_for(g, i);
    if (i.kind == Kind::mma) {
      i.d->group = g.commits;
      if (async().early()) land_next(g);
      async().note_pending();
    }
  }
  std::erase_if(g.waiting, [&](const Waiting& w) {
    if (w.number >= g.issued) return false;
    Cluster::current()->wake(*w.thread);
    return true;
  });
  while (g.first < g.issued && g.instructions.front().landed) {
    g.instructions.pop_front();
    ++g.first;
  }
}

void Warpgroups::wait_for(Group& g, const GroupInstruction& wait) {
  const uint32_t before = g.commits - std::min(g.commits, uint32_t(wait.pending));
  for (const GroupInstruction& i : g.instructions) {
    if (&i == &wait) break;
    if (!i.landed && i.group < before) land_next(g);
  }
  // The threads have these registers again, and a fence comes before the next use.
  if (std::erase_if(g.accumulators, [&](const auto& d) { return d->group < before; }) > 0)
    g.fenced = false;
}

// The oldest that all warps have issued takes effect.
void Warpgroups::land_next(Group& g) {
  for (size_t n = g.first; n < g.issued; ++n) {
    GroupInstruction& i = g.instructions[n - g.first];
    if (i.landed) continue;
    check_unchanged(i, *g.block);
    compute(i, *g.block);
    i.landed = true;
    if (--i.d->in_flight == 0) write_back(g, i);
    return;
  }
}

void Warpgroups::write_back(Group& g, const GroupInstruction& mma) {
  Accumulator& d = *mma.d;
  const size_t count = size_t(d.count), group = size_t(mma.issue.thread->rank) / kWarpgroup;
  const Thread* const first = g.block->warps[0].first + group * kWarpgroup;
  for (size_t t = 0; t < kWarpgroup; ++t) {
    if (std::memcmp(d.registers[t], &d.shown[t * count], count * sizeof(float)) != 0)
      Cluster::current()->fault(first[t],
                                "wgmma.mma_async: an accumulator register was written between the "
                                "issue and wgmma.wait_group",
                                &mma.issue.line);
    std::copy_n(&d.values[t * count], count, d.registers[t]);
  }
  d.shown = d.values;
}

void Warpgroups::land_one() {
  for (Group& g : groups_)
    for (const GroupInstruction& i : g.instructions)
      if (i.warps == 0xf && !i.landed) return land_next(g);
}

void Warpgroups::leave(Thread& thread) {
  if (groups_.empty()) return;
  for (const GroupInstruction& i : of(thread).instructions)
    if (i.kind == Kind::mma && !i.landed && (i.warps >> (thread.rank / 32 % 4) & 1u))
      Cluster::current()->fault(
          thread, "wgmma.mma_async: the thread exits before wgmma.wait_group covers it",
          &i.issue.line);
}

void Warpgroups::wait(size_t number, const SourceLine& line) {
  Cluster& cluster = *Cluster::current();
  Group& g = of(cluster.self());
  if (number < g.issued) return;
  g.waiting.push_back({&cluster.self(), number});
  cluster.wait("wgmma.wait_group, which all four warps execute", line);
}

namespace {

size_t execute(const WarpInstruction& name, GroupInstruction instruction, float* d,
               const uint32_t* a, const SourceLine& line) {
  instruction.issue = issued(name.name, line);
  GroupLane lane{.d = d, .a = a, .thread = instruction.issue.thread, .instruction = &instruction};
  warp_collective(
      name, ~0u, &lane, [](const LaneArguments& lanes) { async().warpgroups->issue(lanes); }, line);
  return lane.number;
}

}  // namespace

void wgmma_fence(const SourceLine& line) {
  execute(kFence, {.kind = Kind::fence}, nullptr, nullptr, line);
}

void wgmma_commit_group(const SourceLine& line) {
  execute(kCommit, {.kind = Kind::commit}, nullptr, nullptr, line);
}

void wgmma_wait_group(int pending, const SourceLine& line) {
  const size_t number =
      execute(kWait, {.kind = Kind::wait, .pending = pending}, nullptr, nullptr, line);
  async().warpgroups->wait(number, line);
}

void wgmma_mma_async(float* d, const Wgmma& op, uint64_t a, uint64_t b, bool accumulate,
                     const SourceLine& line) {
  execute(kMma, {.kind = Kind::mma, .op = op, .a = a, .b = b, .accumulate = accumulate}, d, nullptr,
          line);
}

void wgmma_mma_async(float* d, const Wgmma& op, const uint32_t* a, uint64_t b, bool accumulate,
                     const SourceLine& line) {
  execute(kMma,
          {.kind = Kind::mma, .op = op, .b = b, .accumulate = accumulate, .a_in_registers = true},
          d, a, line);
}

}  // namespace tensorcraft::simt
