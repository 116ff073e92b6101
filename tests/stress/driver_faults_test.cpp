// SPDX-License-Identifier: Apache-2.0
// The driver fails at every k-th call of a two-layer model: the caller gets a typed error or the
// right result, the next call works unless the device is lost, and nothing leaks.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/tensorcraft.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace tensorcraft {
namespace {

using test::Child;
using test::FakeDriver;

constexpr int kOutOfMemory = 2, kUnknown = 999, kIllegalAddress = 700, kInvalidValue = 1;

// Where launches on the fake driver run on an emulator, this is the one place to connect it: the
// results below are compared byte for byte either way.
std::unique_ptr<FakeDriver> make_driver() { return std::make_unique<FakeDriver>(); }

Tensor zeros(Dims shape, StreamRef stream) {
  Tensor tensor(DType::float32, shape, Device::cuda(), stream);
  const std::vector<char> bytes(tensor.nbytes());
  tensor.copy_from_host(bytes.data(), bytes.size());
  return tensor;
}

// Two layers of norm, product and residual, then softmax; allocates, copies, launches and waits.
std::vector<float> run_model() {
  constexpr int kRows = 4, kWidth = 32;
  const Stream stream;
  set_current_stream(stream);
  struct Restore {
    ~Restore() { set_current_stream(StreamRef()); }
  } const restore;
  std::vector<float> host(kRows * kWidth);
  for (size_t i = 0; i < host.size(); ++i) host[i] = float(i % 7) - 3;
  Tensor x = zeros({kRows, kWidth}, stream), weight = zeros({kWidth, kWidth}, stream);
  x.copy_from_host(host.data(), x.nbytes());
  for (int layer = 0; layer < 2; ++layer) {
    Tensor normed = zeros({kRows, kWidth}, stream), hidden = zeros({kRows, kWidth}, stream);
    layer_norm(normed, x);
    gemm(hidden, normed, weight);
    Tensor sum = zeros({kRows, kWidth}, stream);
    add(sum, hidden, x);
    x = std::move(sum);
  }
  Tensor out = zeros({kRows, kWidth}, stream);
  softmax(out, x);
  Event done;
  done.record(stream);
  done.synchronize();
  out.copy_to_host(host.data(), out.nbytes());
  return host;
}

struct Attempt {
  std::optional<std::vector<float>> result;
  ErrorKind kind{};
  std::string error;  // "not typed" for what is no Error
};

// On a thread of its own, since each thread remembers kernels.
Attempt attempt() {
  Attempt made;
  std::thread([&made] {
    try {
      made.result = run_model();
    } catch (const Error& error) {
      made.kind = error.kind();
      made.error = error.what();
    } catch (...) {
      made.error = "not typed";
    }
  }).join();
  return made;
}

// What is wrong after the k-th call failed with `status`; empty where all is well. `calls` is set
// to how many driver calls the run made.
std::string run_with_fault(long k, int status, const std::vector<float>& right, long& calls) {
  const auto driver = make_driver();
  driver->fail_nth(k, status);
  const Attempt first = attempt();
  calls = driver->num_calls;
  const bool sticky = status == kIllegalAddress;
  const bool hit = calls >= k;
  std::string wrong;
  if (first.result && *first.result != right) wrong += " wrong result;";
  if (!first.result && first.error == "not typed") wrong += " an error without a type;";
  if (!first.result && !hit) wrong += " failed without a fault: " + first.error + ";";
  if (first.kind == ErrorKind::device_lost && !sticky) wrong += " lost: " + first.error + ";";
  if (!first.result && status == kOutOfMemory && first.kind != ErrorKind::out_of_memory)
    wrong += " not out of memory: " + first.error + ";";
  const long before = driver->num_calls;
  const Attempt second = attempt();
  if (sticky && hit) {
    if (second.result || second.kind != ErrorKind::device_lost) wrong += " used after a loss;";
    if (second.error.find("an illegal memory access") == std::string::npos)
      wrong += " the first cause is not named: " + second.error + ";";
    if (driver->num_calls != before) wrong += " a lost device was called;";
  } else if (!second.result || *second.result != right) {
    wrong += " does not recover: " + second.error + ";";
  }
  jit::clear_memory();
  if (sticky && hit) return wrong;  // what a lost device held goes with the process
  const int left = driver->blocks + driver->streams + driver->events + driver->pinned;
  if (left != 0) wrong += " " + std::to_string(left) + " objects leak;";
  if (driver->libraries != 0) wrong += " kernels leak;";
  return wrong;
}

class DriverFaults : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(test::kCompilerIsSet, 0); }
  test::TemporaryFolder root_;
  std::string log_ = root_.file("log"), report_ = root_.file("report");
};

TEST_F(DriverFaults, AtEveryCallOfAModelAreErrorsOrHarmless) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's pthread_once stays taken when its function throws";
#endif
  const auto work = [this] {
    const std::vector<float> right = [] {
      const auto driver = make_driver();
      const Attempt clean = attempt();
      jit::clear_memory();
      return clean.result.value();
    }();
    std::string report;
    long longest = 0;
    for (const int status : {kOutOfMemory, kUnknown, kIllegalAddress, kInvalidValue}) {
      for (long k = 1; k <= 200; ++k) {
        long calls = 0;
        const std::string wrong = run_with_fault(k, status, right, calls);
        longest = std::max(longest, calls);
        if (!wrong.empty()) report += join("call ", k, ", status ", status, ":", wrong, "\n");
      }
    }
    if (longest < 200) report += join("the model makes only ", longest, " calls\n");
    test::write_file(report_, report);
    return 0;
  };
  ASSERT_EQ(Child(log_, work).wait(std::chrono::minutes(5)), 0) << test::read_file(log_);
  EXPECT_EQ(test::read_file(report_), "");
}

TEST_F(DriverFaults, EveryThreadLearnsOfALossByItsFirstCause) {
  const auto work = [] {
    const auto driver = make_driver();
    driver->failing["cuLaunchKernelEx"] = kIllegalAddress;
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&wrong] {
        for (int call = 0; call < 3; ++call) {
          try {
            run_model();
            ++wrong;
          } catch (const Error& error) {
            const std::string text = error.what();
            wrong += error.kind() != ErrorKind::device_lost ||
                     text.find("illegal memory access") == text.npos;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return int(wrong);
  };
  EXPECT_EQ(Child(log_, work).wait(), 0) << test::read_file(log_);
}

TEST_F(DriverFaults, AForkedChildGetsAClearErrorAndMayUseTheCpu) {
  const auto work = [this] {
    const auto driver = make_driver();
    run_model();
    Child grandchild(log_, [] {
      int wrong = 0;
      try {
        run_model();
        wrong += 1;
      } catch (const Error& error) {
        const std::string text = error.what();
        if (error.kind() != ErrorKind::device_lost || text.find("fork") == text.npos) wrong += 2;
      }
      const float values[] = {3, 4};
      Tensor x(DType::float32, {1, 2}), out(DType::float32, {1, 2});
      x.copy_from_host(values, sizeof(values));
      l2_normalize(out, x);
      if (std::abs(out.data_as<float>()[0] - 0.6f) > 1e-6f) wrong += 4;
      return wrong;
    });
    const int code = grandchild.wait();
    run_model();  // the parent goes on
    return code;
  };
  EXPECT_EQ(Child(log_, work).wait(), 0) << test::read_file(log_);
}

// What is in static storage is freed after main(), some of it after the library's own objects.
TEST_F(DriverFaults, ObjectsOfStaticStorageMayOutliveTheRest) {
  const auto work = [] {
    static Tensor early;  // destroyed last
    static FakeDriver& driver = *make_driver().release();
    run_model();
    static Stream stream;
    early = Tensor(DType::float32, {100}, Device::cuda(), stream);
    static const Event event;
    static const std::vector<float> result = run_model();
    thread_local Tensor local(DType::float32, {10}, Device::cuda());
    std::exit(driver.libraries > 0 && local.data() ? 0 : 3);
    return 1;
  };
  EXPECT_EQ(Child(log_, work).wait(), 0) << test::read_file(log_);
}

}  // namespace
}  // namespace tensorcraft
