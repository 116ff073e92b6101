// SPDX-License-Identifier: Apache-2.0
// The driver fails at every k-th call of a two-layer model: the caller gets a typed error or the
// right result, the next call works unless the device is lost, and nothing leaks. The driver runs
// what is launched, on the emulator, as late as the program allows.
#include "tests/stress/driver_faults.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/counting_table.hpp"
#include "tests/support/simt_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using namespace test;

constexpr int kStatuses[] = {kOutOfMemory,    kInvalidValue,   kLaunchFailed,
                             kIllegalAddress, kSystemNotReady, kEccError};
constexpr int kEncoderLaunches = 19;  // an embedding, and nine operators in each layer

class DriverFaults : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer's pthread_once stays taken when its function throws";
#endif
    ASSERT_EQ(test::kCompilerIsSet, 0);
  }
  // Runs in a process of its own; what `work` returns is wrong.
  void expect_nothing_wrong(const std::function<std::string()>& work,
                            std::chrono::minutes limit = std::chrono::minutes(5)) {
    const auto run = [&] {
      test::write_file(report_, work() + host_leaks());
      return 0;
    };
    ASSERT_EQ(Child(log_, run).wait(limit), 0) << test::read_file(log_);
    EXPECT_EQ(test::read_file(report_), "") << test::read_file(log_);
  }
  test::TemporaryFolder root_;
  std::string log_ = root_.file("log"), report_ = root_.file("report");
};

// A run of the model that meets no fault, and what was wrong with it.
struct CleanRun {
  Result result;
  long calls = 0;
  std::string wrong;
};

CleanRun clean_run(bool deferred) {
  SimtDriver driver;
  driver.deferred = deferred;
  CleanRun run;
  const Attempt made = attempt(Device::cuda());
  run.wrong = made.error;
  if (made.result) run.wrong += difference(*made.result, encoder_reference());
  if (made.result) run.result = *made.result;
  run.calls = driver.faults.calls();
  jit::clear_memory();
  give_cached_memory_back();
  if (driver.alive() != 0) run.wrong += join(driver.alive(), " objects leak");
  if (driver.launches.size() != kEncoderLaunches) run.wrong += "another number of launches";
  if (driver.retained_contexts != 1) run.wrong += "a context is retained more than once";
  run.wrong += driver.damage();
  return run;
}

TEST_F(DriverFaults, WithoutOneTheModelIsRightHoweverLateWorkRuns) {
  expect_nothing_wrong([] {
    const CleanRun early = clean_run(false), late = clean_run(true);
    std::string wrong = early.wrong + late.wrong;
    if (early.result != late.result) wrong += "late work gives another result";
    return wrong;
  });
}

#if defined(__SANITIZE_ADDRESS__)
constexpr long kStep = 7;  // a run takes ten times as long
#else
constexpr long kStep = 1;
#endif

// The faults of one kind: each call to the 200th, then some of the later ones. A call fails with
// `statuses_each` of the statuses, other calls with others.
std::string sweep(Repeat repeat, int statuses_each) {
  const CleanRun clean = clean_run(true);
  const long step = repeats(13, 3);
  std::string report = clean.wrong;
  for (long n = 1; n <= clean.calls; n += n < 200 ? kStep : kStep * step) {
    for (int i = 0; i < statuses_each; ++i) {
      const int status = kStatuses[size_t(n + i) % std::size(kStatuses)];
      const Fault fault{n, status, repeat};
      SimtDriver driver;
      const std::string wrong = run_with_fault(driver, Device::cuda(), fault, clean.result);
      if (!wrong.empty()) report += fault.name() + wrong + "\n";
    }
  }
  if (clean.calls < 200) report += join("the model makes only ", clean.calls, " calls\n");
  return report;
}

TEST_F(DriverFaults, OnceAreErrorsOrHarmless) {
  expect_nothing_wrong([] { return sweep(Repeat::once, repeats(2, 6)); }, std::chrono::minutes(10));
}

TEST_F(DriverFaults, AtEveryKthCallAreErrorsOrHarmless) {
  expect_nothing_wrong([] { return sweep(Repeat::every, repeats(1, 2)); },
                       std::chrono::minutes(10));
}

TEST_F(DriverFaults, FromACallOnAreErrorsOrHarmless) {
  expect_nothing_wrong([] { return sweep(Repeat::from, repeats(1, 2)); }, std::chrono::minutes(10));
}

// Faults occur likewise around the entries of a table, as tests/gpu does with the real driver's.
TEST_F(DriverFaults, InFrontOfATableAreErrorsOrHarmless) {
  expect_nothing_wrong([] {
    SimtDriver driver;
    const Attempt clean = attempt(Device::cuda());
    jit::clear_memory();
    if (!clean.result) return clean.error;
    std::string report;
    for (long n = 1; n <= 1600; n += n < 200 ? 10 * kStep : 100 * kStep) {
      for (const Repeat repeat : {Repeat::once, Repeat::every, Repeat::from}) {
        const Fault fault{n, kStatuses[size_t(n / 10) % std::size(kStatuses)], repeat};
        CountingTable table;
        const std::string wrong = run_with_fault(table, Device::cuda(), fault, *clean.result);
        if (!wrong.empty()) report += fault.name() + wrong + "\n";
      }
    }
    return report + driver.damage();
  });
}

}  // namespace
}  // namespace tensorcraft
