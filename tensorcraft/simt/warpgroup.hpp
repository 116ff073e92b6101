// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/wgmma.cuh"
#include "tensorcraft/simt/async.hpp"
#include "tensorcraft/simt/wgmma_math.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

// The matrix instructions of warpgroups, in flight. Each warp goes on once its own lanes have come;
// an instruction counts when all four warps have issued it.
namespace tensorcraft::simt {

// D's registers from the first instruction that writes them to the wait that covers the last.
struct Accumulator {
  std::array<float*, kWarpgroup> registers{};
  int count = 0;  // of each thread
  std::vector<float> values;
  std::vector<float> shown;  // what the threads see: NaN until the instructions in flight landed
  int in_flight = 0;
  uint32_t group = 0;  // of the last instruction
};

struct GroupInstruction {
  enum class Kind { fence, mma, commit, wait } kind = Kind::fence;
  Wgmma op{};
  uint64_t a = 0, b = 0;  // descriptors
  bool accumulate = false, a_in_registers = false;
  int pending = 0;  // of a wait

  // The state of the instruction in flight.
  Issue issue{};
  unsigned warps = 0;  // that have issued it
  std::array<std::array<uint32_t, 4>, kWarpgroup> a_registers{};
  std::vector<std::byte> operands;  // as the first warp found them
  std::shared_ptr<Accumulator> d;
  uint32_t group = 0;
  bool landed = false;
};

// The arguments of a lane.
struct GroupLane {
  float* d = nullptr;
  const uint32_t* a = nullptr;
  Thread* thread = nullptr;
  const GroupInstruction* instruction = nullptr;
  size_t number = 0;  // out: of the instruction in its warpgroup
};

class Warpgroups {
 public:
  void begin() { groups_.clear(); }
  void leave(Thread& thread);
  void land_one();  // some instruction, if one is in flight
  void issue(const LaneArguments& lanes);
  void wait(size_t number, const SourceLine& line);

 private:
  struct Waiting {
    Thread* thread;
    size_t number;
  };
  struct Group {
    Block* block = nullptr;
    std::deque<GroupInstruction> instructions;
    size_t first = 0;              // number of instructions[0]
    size_t issued = 0;             // by all four warps
    std::array<size_t, 4> next{};  // of each warp
    bool fenced = false;
    uint32_t commits = 0;
    std::vector<std::shared_ptr<Accumulator>> accumulators;
    std::vector<Waiting> waiting;
  };

  Group& of(Thread& thread);
  GroupInstruction& join_group(Group& group, int warp, const GroupLane& lane);
  void take_registers(Group& group, GroupInstruction& mma, int warp, const LaneArguments& lanes);
  // Whether some warp has fenced since the registers were last released.
  static bool has_fence(const Group& group);
  void process(Group& group);
  void land_next(Group& group);
  void write_back(Group& group, const GroupInstruction& mma);
  void wait_for(Group& group, const GroupInstruction& wait);

  std::vector<Group> groups_;
};

}  // namespace tensorcraft::simt
