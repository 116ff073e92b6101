// SPDX-License-Identifier: Apache-2.0
// Times copies of pageable memory with other slots and threads than the shipped ones: what the
// defaults of transfer::Options and ThreadStager are chosen from. One line of JSON for each, with
// the driver's own copy first.
//   transfer_sweep [MiB]
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

using namespace tensorcraft;
using nlohmann::json;
using transfer::Direction;

constexpr int kRounds = 5;

template <class Copy>
double best_gb_per_s(size_t bytes, Copy&& copy) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    copy();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    best = std::max(best, double(bytes) / time.count() / 1e9);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = size_t(argc > 1 ? std::atoi(argv[1]) : 1024) << 20;
  const Stream stream;
  const Tensor there(DType::uint8, {int64_t(bytes)}, Device::cuda(0), stream);
  std::vector<unsigned char> host(bytes, 1);
  for (const Direction direction : {Direction::h2d, Direction::d2h}) {
    const bool is_up = direction == Direction::h2d;
    void* const to = is_up ? there.data() : host.data();
    const void* const from = is_up ? host.data() : there.data();
    const auto print = [&](json row, double speed) {
      row["direction"] = to_string(direction);
      row["gb_per_s"] = speed;
      std::cout << row << std::endl;
    };
    print({{"by", "driver"}}, best_gb_per_s(bytes, [&] {
            cuda::copy_async(to, from, bytes, stream);
            stream.ref().synchronize();
          }));
    for (const int threads : {1, 2, 3, 4, 6, 8, 12})
      for (const size_t slot : {size_t(1), size_t(2), size_t(4), size_t(8)})
        for (const int slots : {threads + 2, 2 * threads + 4}) {
          TransferEngine engine(transfer::cuda_copy_device(0),
                                std::make_unique<transfer::ThreadStager>(threads),
                                {.slot_bytes = slot << 20, .slots = slots},
                                [] { return std::chrono::steady_clock::now().time_since_epoch(); });
          print({{"by", "engine"}, {"threads", threads}, {"slot_mib", slot}, {"slots", slots}},
                best_gb_per_s(bytes, [&] {
                  engine
                      .submit({.to = to,
                               .from = from,
                               .bytes = bytes,
                               .direction = direction,
                               .after = {stream}})
                      .wait();
                }));
        }
  }
}
