// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/transfer/request.hpp"

#include <algorithm>

namespace tensorcraft::transfer {

std::string_view to_string(Direction direction) {
  constexpr std::string_view kNames[] = {"h2d", "d2h", "d2d", "peer"};
  return kNames[size_t(direction)];
}

std::string_view to_string(State state) {
  constexpr std::string_view kNames[] = {"queued", "running", "completed", "failed", "cancelled"};
  return kNames[size_t(state)];
}

double LaneStatistics::gb_per_s() const {
  return busy.count() > 0 ? double(bytes) / double(busy.count()) : 0;
}

size_t staged_piece_bytes(size_t bytes, size_t slot_bytes) {
  constexpr size_t kPieces = 8, kStep = size_t(256) << 10;
  const size_t steps = (bytes / kPieces + kStep - 1) / kStep;
  return std::min(slot_bytes, std::max<size_t>(steps, 1) * kStep);
}

}  // namespace tensorcraft::transfer
