// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/base.h"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/shadow.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

// Running small kernels in tests of the emulator.
namespace tensorcraft::simt {

// Why a test of a kernel that is wrong on purpose, or reads memory that was never written, is
// skipped.
inline constexpr char kSooner[] = "the race build reports this kernel sooner, in other words";

// A rung as the emulator calls it.
template <class Rung, auto kConfig, class... T>
void body(const void* params) {
  using Params = KernelParams<decltype(&Rung::template run<T..., kConfig>)>;
  Rung::template run<T..., kConfig>(*static_cast<const Params*>(params));
}

// As late as legal, as early as possible, and seeds.
inline std::vector<Options> timings(int seeds = 8) {
  std::vector<Options> all = {{}, {.timing = Timing::as_early_as_possible}};
  for (int i = 0; i < seeds; ++i) all.push_back({.timing = Timing::seeded, .seed = uint64_t(i)});
  return all;
}

inline void run(const Launch& l, Body body, const void* params, const Options& options) {
  set_options(options);
  try {
    launch(l, body, params);
  } catch (...) {
    set_options({});
    throw;
  }
  set_options({});
}

// The text of the fault that ends the launch of kernel "k".
inline std::string fault_of(Launch l, Body body, const void* params = nullptr,
                            const Options& options = {}) {
  l.name = "k";
  try {
    run(l, body, params, options);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kernel_fault) << e.what();
    return e.what();
  }
  return "no fault";
}

inline void expect_fault(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected \"" << part << "\" in: " << text;
  EXPECT_EQ(text.find("simt: k: "), 0u) << text;
}

}  // namespace tensorcraft::simt
