// SPDX-License-Identifier: Apache-2.0
// Times the emulator: a barrier and a shuffle per thread, and two products of 256^3. CPU time,
// the best of 15, as other programs share the machine. Prints one JSON object.
#include "tensorcraft/device/host.h"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/tensorcraft.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <vector>

namespace {

using namespace tensorcraft;

constexpr unsigned kThreads = 256, kRounds = 2000;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

template <class F>
double best_seconds(const F& f) {
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    const double start = cpu_seconds();
    f();
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

// Nanoseconds of each thread for each round.
double launch_ns(simt::Body body) {
  const double seconds =
      best_seconds([&] { simt::launch({.name = "figures", .block = {kThreads}}, body, nullptr); });
  return seconds * 1e9 / (double(kThreads) * kRounds);
}

double gemm_seconds(DType dtype, std::string_view variant) {
  constexpr int64_t n = 256;
  Tensor a(dtype, {n, n}, Device::simt()), d(dtype, {n, n}, Device::simt());
  const std::vector<std::byte> zeros(a.nbytes());
  a.copy_from_host(zeros.data(), a.nbytes());
  return best_seconds([&] { gemm(d, a, a, {.variant = variant}); });
}

}  // namespace

int main() {
  nlohmann::json result;
  result["barrier_ns"] = launch_ns([](const void*) {
    for (unsigned i = 0; i < kRounds; ++i) __syncthreads();
  });
  result["shuffle_ns"] = launch_ns([](const void*) {
    for (unsigned i = 0; i < kRounds; ++i) __shfl_xor_sync(0xffffffffu, i, 1);
  });
  result["naive_gemm_256_s"] = gemm_seconds(DType::float32, "naive");
  result["tensor_core_gemm_256_s"] = gemm_seconds(DType::bfloat16, "tensor_core");
  std::cout << result.dump() << '\n';
}
