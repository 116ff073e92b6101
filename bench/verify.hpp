// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/dtype.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// `tensorcraft bench --verify`: is the product right and fast on this device? Five suites of one
// report.
namespace tensorcraft::bench {

enum class TestSuite : uint8_t { correctness, performance, boundary, stress, regression };
inline constexpr int kNumTestSuites = 5;
std::string_view to_string(TestSuite suite);

// The sizes of a product: D (m, n) = A (m, k) B (k, n).
struct ProductSize {
  int64_t m = 0, n = 0, k = 0;
  double flops() const { return 2.0 * double(m) * double(n) * double(k); }
  friend bool operator==(const ProductSize&, const ProductSize&) = default;
};

// One test.
struct TestCase {
  TestSuite suite = TestSuite::correctness;
  std::string name;
  ProductSize problem;
  DType precision = DType::float32;  // of A and B
  std::string config;                // the variant; empty: the chosen one
  double expected_performance = 0;   // TFLOPS; 0: none
  double tolerance = 1e-3;           // of the relative error in the norm
  int runs = 1;                      // whose bits must be equal
};
// "Small 64x64x64 float32".
std::string describe(const TestCase& test);

// The result of a test.
struct TestResult {
  TestCase test;
  bool passed = false;
  std::string message;         // why not, or a figure
  double execution_time = 0;   // milliseconds of the test
  double achieved_tflops = 0;  // of performance
};

// Runs tests in the order of their suites.
class AutomatedTestFramework {
 public:
  explicit AutomatedTestFramework(Device device) : device_(device) {}
  void add(TestCase test) { tests_.push_back(std::move(test)); }
  // The tests of every suite that this device can be asked: the CPU is spared the largest, the
  // emulator all but small ones.
  void add_standard();
  const std::vector<TestCase>& tests() const { return tests_; }

  using Progress = std::function<void(size_t done, size_t total, const std::string& what)>;
  using Finished = std::function<void(const TestResult& result)>;
  // Calls `progress` before each test and `finished` after it.
  std::vector<TestResult> run(const Progress& progress = {}, const Finished& finished = {}) const;

 private:
  TestResult run_one(const TestCase& test) const;
  const Device device_;
  std::vector<TestCase> tests_;
};

// Fills in whether the rate of a performance test is the expected one, and one that a device with
// that peak can have, and says so. A peak of 0 is not known.
void judge_speed(TestResult& result, double peak_tflops);

// The text of the results, and its parts: what stands before the first, a line for each, the end.
std::string report(const std::vector<TestResult>& results);
std::string report_head(size_t tests);
std::string report_line(const TestResult& result);
std::string report_end(const std::vector<TestResult>& results);
// False for no results too.
bool all_passed(const std::vector<TestResult>& results);

}  // namespace tensorcraft::bench
