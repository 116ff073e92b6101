// SPDX-License-Identifier: Apache-2.0
#include "bench/verify.hpp"

#include "bench/operands.hpp"
#include "bench/timing.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

namespace tensorcraft::bench {
namespace {

constexpr std::array<std::string_view, kNumTestSuites> kSuiteNames = {
    "correctness", "performance", "boundary", "stress", "regression"};

constexpr double kMostHostFlops = 4e10;         // of a test on the CPU
constexpr double kMostEmulatorFlops = 3e8;      // of one there, about a second
constexpr double kLeastShareOfPeak = 0.7;       // that a product of 4096 and more reaches
constexpr double kLeastShareOfPeakSmall = 0.5;  // of 2048, which is few waves of tiles

// A matrix on the device and its values on the host.
struct Operand {
  Tensor device;
  std::vector<float> host;
};

double most_flops(Device device) {
  if (device.is_cuda()) return INFINITY;
  return device.type == DeviceType::simt ? kMostEmulatorFlops : kMostHostFlops;
}

StreamRef stream_of(Device device) {
  return device.is_cuda() ? current_stream(device.index) : StreamRef();
}

Operand make_operand(DType dtype, int64_t rows, int64_t columns, Device device, uint64_t turn) {
  const Tensor drawn(DType::float32, {rows, columns}, device);
  fill_random(drawn, 0, turn, stream_of(device));
  Tensor rounded = astype(drawn, {.dtype = dtype});
  std::vector<float> host = astype(rounded, {.dtype = DType::float32}).to_vector<float>();
  return {std::move(rounded), std::move(host)};
}

// matrix (rows, columns) times a vector, in double.
std::vector<double> times(const std::vector<float>& matrix, int64_t rows, int64_t columns,
                          const std::vector<double>& vector) {
  std::vector<double> product(size_t(rows), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = matrix.data() + r * columns;
    for (int64_t c = 0; c < columns; ++c) product[size_t(r)] += double(row[c]) * vector[size_t(c)];
  }
  return product;
}

// The relative error in the norm of D v against A (B v) for a vector of signs: a wrong element of D
// shows in one row, for n^2 operations instead of n^3. NaN if D has one.
double error_of(const std::vector<float>& d, const Operand& a, const Operand& b,
                const ProductSize& p) {
  std::mt19937_64 random(7);
  std::vector<double> signs(static_cast<size_t>(p.n));
  for (double& sign : signs) sign = random() & 1 ? 1 : -1;
  const std::vector<double> right = times(a.host, p.m, p.k, times(b.host, p.k, p.n, signs));
  const std::vector<double> ours = times(d, p.m, p.n, signs);
  double difference = 0, norm = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    difference += (ours[i] - right[i]) * (ours[i] - right[i]);
    norm += right[i] * right[i];
  }
  if (norm == 0) return difference == 0 ? 0 : INFINITY;
  return std::sqrt(difference / norm);
}

Tensor product(const TestCase& test, const Operand& a, const Operand& b) {
  return gemm(a.device, b.device, {.out_dtype = DType::float32, .variant = test.config});
}

std::string number(double value) {
  std::ostringstream text;
  text << std::setprecision(4) << value;
  return text.str();
}

void check_values(TestResult& result, const Operand& a, const Operand& b) {
  const TestCase& test = result.test;
  const std::vector<float> first = product(test, a, b).to_vector<float>();
  for (int run = 1; run < test.runs; ++run) {
    const std::vector<float> again = product(test, a, b).to_vector<float>();
    if (std::memcmp(first.data(), again.data(), first.size() * sizeof(float)) != 0) {
      result.message = join("run ", run + 1, " has other bits than the first");
      return;
    }
  }
  const double error = error_of(first, a, b, test.problem);
  result.passed = error <= test.tolerance;  // not for NaN
  result.message = join("relative error ", number(error), result.passed ? "" : ", at most ",
                        result.passed ? "" : number(test.tolerance));
}

// Returns the peak for products of the precisions that the tests have; 0: not known.
double peak_tflops(const DeviceInfo& device, DType precision) {
  return dtype_bytes(precision) == 2         ? device.peak_bf16_tflops
         : precision == DType::float32       ? device.peak_fp32_tflops
         : precision == DType::float8_e4m3fn ? device.peak_fp8_tflops
                                             : 0;
}

// On a stream of its own: the default stream of a GPU cannot be told from the host, which has none.
void check_speed(TestResult& result, const Operand& a, const Operand& b, Device device) {
  const TestCase& test = result.test;
  const Tensor d(test.precision, {test.problem.m, test.problem.n}, device);
  std::optional<Stream> own;
  if (device.is_cuda()) {
    synchronize(device);  // what the operands come from
    own.emplace(device.index);
  }
  GemmOptions options{.variant = test.config};
  if (own) options.stream = own->ref();
  const auto call = [&](int) { gemm(d, a.device, b.device, options); };
  call(0);
  Rotation rotation;
  const PerformanceProfiler profiler(own ? own->ref() : StreamRef());
  result.achieved_tflops =
      profiler.profile_kernel(call, rotation, {.flops = test.problem.flops()}).achieved_tflops;
  judge_speed(result, peak_tflops(device_info(device), test.precision));
}

// A call that is refused, as a user's mistake, leaves the library usable.
void provoke_an_error(Device device) {
  const Tensor a(DType::float32, {4, 5}, device), b(DType::float32, {6, 7}, device);
  try {
    gemm(a, b);
  } catch (const Error&) {
    return;
  }
  fail(ErrorKind::internal, "a product of 4x5 and 6x7 was not refused");
}

}  // namespace

void judge_speed(TestResult& result, double peak) {
  const double rate = result.achieved_tflops, expected = result.test.expected_performance;
  const bool is_possible = peak <= 0 || rate <= peak;
  result.passed = rate > 0 && rate >= expected && is_possible;
  result.message = join(number(rate), " TFLOPS");
  if (expected > 0) result.message += join(", expected ", number(expected));
  if (!is_possible)
    result.message +=
        join(", above the peak of ", number(peak), ": that is no time of the product");
}

std::string_view to_string(TestSuite suite) { return kSuiteNames.at(size_t(suite)); }

std::string describe(const TestCase& test) {
  const ProductSize& p = test.problem;
  return join(test.name, " ", p.m, "x", p.n, "x", p.k, " ", test.precision,
              test.runs > 1 ? join(", ", test.runs, " runs") : std::string());
}

void AutomatedTestFramework::add_standard() {
  const double peak = device_info(device_).peak_bf16_tflops;  // 0 if it is not known
  const auto take = [&](const TestCase& test) {
    if (test.problem.flops() * test.runs <= most_flops(device_)) add(test);
  };
  using enum TestSuite;
  constexpr DType kBf16 = DType::bfloat16, kF32 = DType::float32, kF16 = DType::float16;
  take({.suite = correctness, .name = "Small", .problem = {64, 64, 64}});
  take({.suite = correctness, .name = "Medium", .problem = {1024, 1024, 1024}});
  for (const int64_t n : {256, 512, 2048, 4096})
    for (const DType dtype : {kF32, kBf16})
      take({.suite = correctness, .name = "Cube", .problem = {n, n, n}, .precision = dtype});
  take({.suite = correctness, .name = "Large", .problem = {8192, 8192, 8192}, .precision = kBf16});
  take({.suite = correctness, .name = "Rect", .problem = {16384, 512, 1024}, .precision = kF16});
  const auto& dtypes = find_operator("gemm").description().dtypes;
  if (std::ranges::find(dtypes, DType::float8_e4m3fn) != dtypes.end())
    take({.suite = correctness,
          .name = "FP8",
          .problem = {1024, 1024, 1024},
          .precision = DType::float8_e4m3fn});
  for (const int64_t n : {2048, 4096, 8192})
    take({.suite = performance,
          .name = "Square",
          .problem = {n, n, n},
          .precision = kBf16,
          .expected_performance =
              device_.is_cuda() ? peak * (n < 4096 ? kLeastShareOfPeakSmall : kLeastShareOfPeak)
                                : 0});
  take({.suite = performance, .name = "Usable", .problem = {512, 512, 512}});
  for (const ProductSize& p : {ProductSize{1, 1, 1},
                               {17, 33, 65},
                               {1, 4096, 4096},
                               {4096, 1, 64},
                               {128, 256, 0},
                               {0, 64, 64},
                               {255, 257, 1000}})
    for (const DType dtype : {kF32, kBf16})
      take({.suite = boundary, .name = "Odd", .problem = p, .precision = dtype});
  take({.suite = stress, .name = "Repeated", .problem = {100, 100, 100}, .runs = 100});
  take({.suite = stress, .name = "Repeated", .problem = {512, 512, 512}, .runs = 100});
  take({.suite = stress,
        .name = "Repeated",
        .problem = {1000, 1000, 1000},
        .precision = kBf16,
        .runs = 100});
  std::mt19937_64 random(2);
  for (int i = 0; i < 20; ++i) {
    const auto draw = [&] { return int64_t(1 + random() % 512); };
    take({.suite = stress,
          .name = "Random",
          .problem = {draw(), draw(), draw()},
          .precision = i % 2 ? kF32 : kF16});
  }
  take({.suite = regression, .name = "After a refused call", .problem = {64, 64, 64}});
  take({.suite = regression,
        .name = "One step along k",
        .problem = {256, 256, 16},
        .precision = kBf16});
  take({.suite = regression, .name = "Few steps", .problem = {4096, 512, 384}, .precision = kBf16});
}

TestResult AutomatedTestFramework::run_one(const TestCase& test) const {
  TestResult result{.test = test};
  const auto begin = std::chrono::steady_clock::now();
  try {
    if (test.suite == TestSuite::regression) provoke_an_error(device_);
    const ProductSize& p = test.problem;
    const Operand a = make_operand(test.precision, p.m, p.k, device_, 1);
    const Operand b = make_operand(test.precision, p.k, p.n, device_, 2);
    if (test.suite == TestSuite::performance)
      check_speed(result, a, b, device_);
    else
      check_values(result, a, b);
  } catch (const std::exception& error) {
    result.passed = false;
    result.message = error.what();
  }
  result.execution_time =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<TestResult> AutomatedTestFramework::run(const Progress& progress,
                                                    const Finished& finished) const {
  std::vector<TestCase> ordered = tests_;
  std::ranges::stable_sort(ordered, {}, &TestCase::suite);
  std::vector<TestResult> results;
  for (const TestCase& test : ordered) {
    if (progress) progress(results.size(), ordered.size(), describe(test));
    results.push_back(run_one(test));
    if (finished) finished(results.back());
  }
  return results;
}

bool all_passed(const std::vector<TestResult>& results) {
  return !results.empty() && std::ranges::all_of(results, &TestResult::passed);
}

std::string report_head(size_t tests) {
  return join("=== Test Report ===\nTotal Tests: ", tests, '\n');
}

std::string report_line(const TestResult& r) {
  return join(r.passed ? "\u2713 " : "\u2717 ", to_string(r.test.suite), ": ", describe(r.test),
              ": ", r.message, " (", number(r.execution_time), " ms)\n");
}

std::string report_end(const std::vector<TestResult>& results) {
  std::ostringstream text;
  const auto passed = size_t(std::ranges::count_if(results, &TestResult::passed));
  text << "Summary: " << passed << " passed, " << results.size() - passed << " failed\n";
  const double rate = results.empty() ? 0 : 100.0 * double(passed) / double(results.size());
  text << "Success Rate: " << std::fixed << std::setprecision(1) << rate << "%\n";
  for (const TestResult& r : results)
    if (r.test.suite == TestSuite::performance && r.test.problem.m >= 2048)
      text << r.test.problem.m << ": " << number(r.achieved_tflops) << " TFLOPS "
           << (r.passed ? "PASS" : "FAIL") << '\n';
  return text.str();
}

std::string report(const std::vector<TestResult>& results) {
  std::string text = report_head(results.size());
  for (const TestResult& result : results) text += report_line(result);
  return text + report_end(results);
}

}  // namespace tensorcraft::bench
