// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/warpgroup.h"
#include "tensorcraft/simt/async.hpp"

#include <algorithm>
#include <numeric>

namespace tensorcraft::simt {
namespace {

constexpr int kFile = 65536;

// Returns the registers that the compiler may give a thread if one block fills the register file.
int registers_at_launch(int threads) { return std::min(255, kFile / threads) / 8 * 8; }

struct Change {
  int registers;
  bool increases;
  Issue issue;
};

int block_threads() {
  const Index3& b = Cluster::current()->launch().block;
  return int(b.x * b.y * b.z);
}

// The warpgroups' registers in the running thread's block.
int* registers_of(const Block& block) {
  Async& a = async();
  const size_t groups = (block.warps.size() + 3) / 4;
  if (a.registers.empty())
    a.registers.assign(groups * a.cluster.blocks().size(), registers_at_launch(block_threads()));
  return a.registers.data() + groups * block.rank;
}

bool has_room(void* state) {
  const Change& c = *static_cast<const Change*>(state);
  const Thread& t = *c.issue.thread;
  const int* groups = registers_of(*t.block);
  const int count = int((t.block->warps.size() + 3) / 4), mine = t.rank / kWarpgroup;
  const int others = std::accumulate(groups, groups + count, 0) - groups[mine];
  return others + c.registers <= count * registers_at_launch(block_threads());
}

constexpr WarpInstruction kIncrease{"setmaxnreg.inc", true}, kDecrease{"setmaxnreg.dec", true};

}  // namespace

void fail_index(const char* op, const char* what, int64_t index, int64_t size) {
  fail(ErrorKind::index, op, ": ", what, " is ", index, ", expected [0, ", size, ")");
}

void fail_count(const char* op, const char* what, int64_t element, int64_t count, int64_t room,
                const char* limit) {
  fail(ErrorKind::value, op, ": ", what, ": element ", element, " is ", count, ", expected [0, ",
       room, "], ", limit);
}

void setmaxnreg(int registers, bool increases, const SourceLine& line) {
  const WarpInstruction& instruction = increases ? kIncrease : kDecrease;
  warp_collective(instruction, ~0u, nullptr, nullptr, line);
  Change change{registers, increases, issued(instruction.name, line)};
  const Thread& t = *change.issue.thread;
  if (block_threads() % kWarpgroup != 0)
    change.issue.fault("the block is not made of whole warpgroups");
  int& mine = registers_of(*t.block)[t.rank / kWarpgroup];
  if (increases ? registers < mine : registers > mine)
    change.issue.fault(join("to ", registers, " registers, the warpgroup has ", mine));
  if (increases)
    Cluster::current()->wait_until("setmaxnreg.inc, for registers that are not given back", line,
                                   has_room, &change);
  mine = registers;
}

// A launch on the emulator begins when the one before it has ended.
void griddepcontrol_wait() {}
void griddepcontrol_launch_dependents() {}

void let_others_run(const char* instruction, const SourceLine& line) {
  Cluster::current()->spin(instruction, line, true);
}

}  // namespace tensorcraft::simt
