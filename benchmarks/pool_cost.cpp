// SPDX-License-Identifier: Apache-2.0
// What an allocation and its free cost: of the pool over a device that answers at once, warm and
// among 65,536 holes, and on a GPU, if there is one, beside the driver's stream-ordered memory.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/memory/driver_allocator.hpp"
#include "tensorcraft/runtime/memory/host_memory_device.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/support/quick_memory.hpp"
#include "tests/support/recorded_servers.hpp"

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

namespace {

using namespace tensorcraft;

void pairs(benchmark::State& state, Allocator& source, StreamRef stream) {
  constexpr size_t kSizes[] = {256, 3000, 65536, 1000000, 5000, 40000};
  size_t i = 0;
  for (auto step : state) {
    const Block block = source.allocate(kSizes[i++ % std::size(kSizes)], stream);
    benchmark::DoNotOptimize(block.data);
    source.deallocate(block, stream);
  }
}

void warm(benchmark::State& state) {
  MemoryPool pool(std::make_unique<test::QuickDevice>());
  pairs(state, pool, {});
}
BENCHMARK(warm);

void among_holes(benchmark::State& state) {
  MemoryPool pool(std::make_unique<test::QuickDevice>());
  test::make_holes(pool);
  pairs(state, pool, {});
}
BENCHMARK(among_holes);

// A million operations of servers whose memory was recorded, in 16 GiB of the host that nobody
// touches.
void served(benchmark::State& state) {
  for (auto step : state) {
    MemoryPool pool(memory::host_memory_device());
    test::RecordedServers servers(pool, size_t(16) << 30);
    servers.run(1000000);
    state.counters["reserved_over_used"] = servers.reserved_over_peak();
  }
}
BENCHMARK(served)->Iterations(1);

void on_gpu(benchmark::State& state, bool is_pool, bool own_stream) {
  if (cuda_device_count() == 0) return state.SkipWithError("there is no GPU");
  static auto& of_driver = *new memory::DriverAllocator;
  static const auto& own = *new Stream;
  Allocator& source = is_pool ? static_cast<Allocator&>(MemoryPool::instance()) : of_driver;
  pairs(state, source, own_stream ? own.ref() : StreamRef());
}
BENCHMARK_CAPTURE(on_gpu, pool, true, false);
BENCHMARK_CAPTURE(on_gpu, driver, false, false);
BENCHMARK_CAPTURE(on_gpu, pool_own_stream, true, true);
BENCHMARK_CAPTURE(on_gpu, driver_own_stream, false, true);

}  // namespace

BENCHMARK_MAIN();
