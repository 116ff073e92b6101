// SPDX-License-Identifier: Apache-2.0
#include "bench/runner.hpp"

#include "tensorcraft/core/error.hpp"

#include <dlfcn.h>

namespace tensorcraft::bench {

std::unique_ptr<Runner> make_runner(std::ostream* raw) {
#if TENSORCRAFT_BENCH_LINKED
  return std::unique_ptr<Runner>(tensorcraft_make_runner(raw));
#else
  constexpr const char* kModule = "libtensorcraft_bench_runner.so";
  void* const module = dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
  void* const make = module ? dlsym(module, "tensorcraft_make_runner") : nullptr;
  if (!make)
    fail(ErrorKind::unsupported,
         "bench: Google Benchmark, which runs the repetitions, is missing: ", dlerror(),
         "; a build of the repository where libbenchmark-dev is installed has it");
  return std::unique_ptr<Runner>(reinterpret_cast<decltype(&tensorcraft_make_runner)>(make)(raw));
#endif
}

}  // namespace tensorcraft::bench
