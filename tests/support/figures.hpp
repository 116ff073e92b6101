// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

namespace tensorcraft::test {

// Shows what a test measured, and keeps it in the file of --gtest_output, which
// benchmarks/runtime_figures.py reads: "engine GB/s=55.3; driver GB/s=55.4".
inline void report_figures(const std::string& of,
                           std::initializer_list<std::pair<const char*, double>> figures) {
  std::string text;
  for (const auto& [name, value] : figures)
    text += join(text.empty() ? "" : "; ", name, '=', value);
  std::printf("%s: %s\n", of.c_str(), text.c_str());
  testing::Test::RecordProperty("figures of " + of, text);
}

}  // namespace tensorcraft::test
