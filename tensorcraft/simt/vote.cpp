// SPDX-License-Identifier: Apache-2.0
// redux.sync and elect.sync.
#include "tensorcraft/simt/cluster.hpp"

#include <algorithm>

namespace tensorcraft::simt {
namespace {

struct Value {
  Reduction op;
  uint32_t value;
};

uint32_t combine(Reduction op, uint32_t a, uint32_t b) {
  switch (op) {
    case Reduction::add:
      return a + b;
    case Reduction::min_s32:
      return uint32_t(std::min(int32_t(a), int32_t(b)));
    case Reduction::max_s32:
      return uint32_t(std::max(int32_t(a), int32_t(b)));
    case Reduction::min_u32:
      return std::min(a, b);
    case Reduction::max_u32:
      return std::max(a, b);
    case Reduction::bit_and:
      return a & b;
    case Reduction::bit_or:
      return a | b;
    case Reduction::bit_xor:
      return a ^ b;
  }
  return 0;
}

// In the order of Reduction: lanes in two different ones diverge.
constexpr WarpInstruction kRedux[] = {
    {"redux.sync.add"},     {"redux.sync.min.s32"}, {"redux.sync.max.s32"}, {"redux.sync.min.u32"},
    {"redux.sync.max.u32"}, {"redux.sync.and"},     {"redux.sync.or"},      {"redux.sync.xor"}};
constexpr WarpInstruction kElect{"elect.sync"};

}  // namespace

uint32_t redux(Reduction op, unsigned mask, uint32_t value, const SourceLine& line) {
  Value mine{op, value};
  warp_collective(
      kRedux[int(op)], mask, &mine,
      [](const LaneArguments& lanes) {
        const Value* first = nullptr;
        uint32_t result = 0;
        for (void* lane : lanes) {
          if (!lane) continue;
          const auto* v = static_cast<const Value*>(lane);
          result = first ? combine(v->op, result, v->value) : v->value;
          first = v;
        }
        for (void* lane : lanes)
          if (lane) static_cast<Value*>(lane)->value = result;
      },
      line);
  return mine.value;
}

bool elect(unsigned mask, const SourceLine& line) {
  bool mine = false;
  warp_collective(
      kElect, mask, &mine,
      [](const LaneArguments& lanes) {
        void* const* lowest = std::find_if(lanes.begin(), lanes.end(), [](void* p) { return p; });
        *static_cast<bool*>(*lowest) = true;
      },
      line);
  return mine;
}

}  // namespace tensorcraft::simt
