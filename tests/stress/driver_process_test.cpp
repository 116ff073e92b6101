// SPDX-License-Identifier: Apache-2.0
// Checks what happens to a process that computes on a driver: it forks, ends at any moment, loses a
// device, runs out of memory, and uses several devices from many threads.
#include "tests/stress/driver_faults.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/simt_driver.hpp"

#include <gtest/gtest.h>

// GCC's ASan (12 was tried) does not take the locks of its allocator around a fork: if a thread
// holds one, the child waits for it in SizeClassAllocator64::GetFromAllocator for ever. Two threads
// that allocate and one that forks are enough, without this library; a program has no handle on
// those locks. The ASan of clang 18 and newer takes them, and of 19 no child hung.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAllocatorMayForkLocked = true;
#else
constexpr bool kAllocatorMayForkLocked = false;
#endif

// Set in a process that ends while a thread of it computes: what lives on that thread's fiber is
// found nowhere else, and would be taken for a leak.
static bool ends_midway = false;
extern "C" int __lsan_is_turned_off() { return ends_midway; }

namespace tensorcraft {
namespace {

using namespace test;

std::string run_and_compare(Device device, const Result& reference) {
  const Attempt made = attempt_here([&] { return Encoder(device).run(); });
  return made.result ? difference(*made.result, reference) : made.error;
}

// Runs `work(thread)` on threads of its own; what they return, joined.
std::string on_threads(int count, const std::function<std::string(int)>& work) {
  std::vector<std::string> wrong{size_t(count)};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { wrong[size_t(i)] = work(i); });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (int i = 0; i < count; ++i)
    if (!wrong[size_t(i)].empty()) all += join("thread ", i, ": ", wrong[size_t(i)], "\n");
  return all;
}

class DriverProcess : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(test::kCompilerIsSet, 0); }
  // Runs in a process of its own; what `work` returns is wrong.
  void expect_nothing_wrong(const std::function<std::string()>& work) {
    const auto run = [&] {
      test::write_file(report_, work() + host_leaks());
      return 0;
    };
    ASSERT_EQ(Child(log_, run).wait(std::chrono::minutes(5)), 0) << test::read_file(log_);
    EXPECT_EQ(test::read_file(report_), "") << test::read_file(log_);
  }
  // A process that ends by itself does so with this code, silently.
  void expect_exit(int code, const std::function<void()>& work) {
    const auto run = [&] {
      work();
      return 255;
    };
    EXPECT_EQ(Child(log_, run).wait(std::chrono::minutes(5)), code);
    const std::string log = test::read_file(log_);
    EXPECT_EQ(log.find("terminate"), log.npos) << log;
    EXPECT_EQ(log.find("ERROR"), log.npos) << log;
  }
  test::TemporaryFolder root_;
  std::string log_ = root_.file("log"), report_ = root_.file("report");
};

TEST_F(DriverProcess, EveryThreadLearnsOfALossByItsFirstCause) {
  expect_nothing_wrong([] {
    SimtDriver driver;
    driver.fail_at("cuLaunchKernelEx", 5, kIllegalAddress);
    driver.on_call = [&](std::string_view name) {  // as a driver does from then on
      if (name == "cuLaunchKernelEx" && driver.launches.size() >= 4)
        driver.faults.lose(kIllegalAddress);
    };
    return on_threads(8, [](int) -> std::string {
      for (int call = 0; call < 3; ++call) {
        const Attempt made = attempt_here([] { return Encoder(Device::cuda()).run(); });
        if (made.result && call == 2) return "works after a loss";
        if (made.result) continue;
        if (made.kind != ErrorKind::device_lost) return made.error;
        if (made.error.find("illegal memory access") == made.error.npos) return made.error;
      }
      return {};
    });
  });
}

// A kernel that fails is told of by whichever call waits for it; the cause stays the same.
TEST_F(DriverProcess, AKernelThatFailsIsALossThatNamesItself) {
  expect_nothing_wrong([] {
    SimtDriver driver;
    driver.load_kernel = [](const char*) {
      return FakeKernel{[](const FakeLaunch&, const void*) { fail(ErrorKind::internal, "bad"); },
                        8};
    };
    const Attempt first = attempt(Device::cuda());
    if (first.kind != ErrorKind::device_lost) return "no loss: " + first.error;
    return wrong_answers_after_loss(Device::cuda(), cause_of(first.error));
  });
}

TEST_F(DriverProcess, WhileItStartsAFaultMeansNoDevice) {
  expect_nothing_wrong([] {
    std::string wrong;
    for (const char* const call : {"cuInit", "cuDeviceGetCount", "cuDriverGetVersion"}) {
      for (const int status : {kOutOfMemory, kSystemNotReady, kEccError}) {
        const FakeDriver driver({FakeGpu{}}, 13000, {{call, status}});
        const Attempt made = attempt(Device::cuda());
        if (made.result && std::string_view(call) != "cuDriverGetVersion") wrong += "a result; ";
        if (!made.result && made.kind != ErrorKind::unsupported) wrong += made.error + "; ";
        jit::clear_memory();
      }
    }
    return wrong;
  });
}

TEST_F(DriverProcess, MemoryThatEndsIsAnErrorWithTheFigures) {
  expect_nothing_wrong([] {
    std::string wrong;
    const Result reference = encoder_reference();
    for (size_t kib = 1; kib <= 256; kib += 15) {
      SimtDriver driver({FakeGpu{.memory_bytes = kib << 10}});
      const Attempt made = attempt(Device::cuda());
      if (made.result) wrong += difference(*made.result, reference);
      if (made.result && kib < 60) wrong += "the model fits where it cannot;";
      if (!made.result && kib > 240) wrong += made.error;
      if (!made.result && made.kind != ErrorKind::out_of_memory) wrong += made.error;
      const std::string figures = join("of ", kib << 10, " bytes are free");
      if (!made.result && made.error.find(figures) == made.error.npos) wrong += made.error;
      jit::clear_memory();
      give_cached_memory_back();
      if (driver.alive() != 0) wrong += join(driver.alive(), " objects leak;");
      driver.gpus[0].memory_bytes = size_t(1) << 30;
      wrong += run_and_compare(Device::cuda(), reference) + driver.damage();
      jit::clear_memory();
    }
    return wrong;
  });
}

TEST_F(DriverProcess, ManyThreadsOnSeveralDevicesGetTheirOwnResults) {
  expect_nothing_wrong([] {
    const Result reference = encoder_reference();
    SimtDriver driver({FakeGpu{}, FakeGpu{}, FakeGpu{}});
    std::string wrong = on_threads(6, [&](int thread) {
      std::string found;
      for (int run = 0; run < 4 && found.empty(); ++run)
        found = run_and_compare(Device::cuda((thread + run) % 3), reference);
      return found;
    });
    std::map<int, int> launches;
    for (const FakeLaunch& launch : driver.launches) ++launches[launch.device];
    for (int device = 0; device < 3; ++device)
      if (launches[device] != 8 * 19) wrong += join("cuda:", device, ": ", launches[device]);
    jit::clear_memory();
    give_cached_memory_back();
    if (driver.alive() != 0) wrong += join(driver.alive(), " objects leak;");
    if (driver.retained_contexts != 3) wrong += "a context is retained more than once;";
    return wrong + driver.damage();
  });
}

TEST_F(DriverProcess, ManyThreadsWithFaultsGetErrorsOrTheirOwnResults) {
  expect_nothing_wrong([] {
    const Result reference = encoder_reference();
    SimtDriver driver({FakeGpu{}, FakeGpu{}});
    driver.faults.plan(997, kOutOfMemory, Repeat::every);
    std::atomic<int> right = 0, failed = 0;
    std::string wrong = on_threads(6, [&](int thread) -> std::string {
      for (int run = 0; run < 5; ++run) {
        const Attempt made = attempt_here([&] { return Encoder(Device::cuda(thread % 2)).run(); });
        if (!made.result && made.kind != ErrorKind::out_of_memory) return made.error;
        if (made.result && !difference(*made.result, reference).empty()) return "wrong result";
        ++(made.result ? right : failed);
      }
      return {};
    });
    if (right + failed != 30 || failed == 0) wrong += join(right, " right, ", failed, " failed;");
    driver.faults.clear();
    jit::clear_memory();
    give_cached_memory_back();
    if (driver.alive() != 0) wrong += join(driver.alive(), " objects leak;");
    return wrong + driver.damage();
  });
}

// Checks what a child of a process that had used the GPU may and may not do.
int wrong_in_a_forked_child() {
  const Attempt made = attempt_here([] { return Encoder(Device::cuda()).run(); });
  if (made.result || made.kind != ErrorKind::device_lost) return 1;
  if (made.error.find("fork") == made.error.npos) return 2;
  if (default_device().is_cuda()) return 3;
  return Encoder(Device::cpu()).run().empty() ? 4 : 0;
}

TEST_F(DriverProcess, AForkedChildGetsAClearErrorAndMayUseTheCpu) {
  expect_nothing_wrong([this] {
    const SimtDriver driver;
    const Result reference = encoder_reference();
    std::string wrong = run_and_compare(Device::cuda(), reference);
    Encoder(Device::cpu()).run();  // the host's threads run when it forks
    const Tensor held(DType::float32, {100}, Device::cuda());  // the child frees its copy of it
    const int code = Child(log_, [&] {
                       {
                         const Tensor moved = std::move(const_cast<Tensor&>(held));
                       }
                       return wrong_in_a_forked_child();
                     }).wait();
    if (code != 0) wrong += join("the child ends with ", code);
    if (!held.data()) wrong += "the parent's memory is gone";
    return wrong + run_and_compare(Device::cuda(), reference);  // the parent goes on
  });
}

TEST_F(DriverProcess, ItMayForkWhileItsThreadsUseTheDevice) {
  if (kAllocatorMayForkLocked)
    GTEST_SKIP() << "GCC's ASan lets a process fork while a thread holds its allocator's lock";
  expect_nothing_wrong([this] {
    const SimtDriver driver;
    const Result reference = encoder_reference();
    std::atomic<bool> over = false;
    std::string forks;
    std::string wrong = on_threads(3, [&](int thread) {
      std::string found;
      if (thread > 0) {
        while (!over && found.empty()) {
          found = run_and_compare(Device::cuda(), reference);
          jit::clear_memory();  // so that kernels are compiled and loaded all the time
        }
        return found;
      }
      for (int i = 0; i < repeats(20, 200); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(i % 5));
        const int code = Child(log_, wrong_in_a_forked_child).wait(std::chrono::seconds(20));
        if (code != 0) found += join("child ", i, " ends with ", code, ";");
      }
      over = true;
      return found;
    });
    return wrong;
  });
}

// Objects in static storage are freed after main(), some of them after the library's own objects.
TEST_F(DriverProcess, ObjectsOfStaticStorageMayOutliveTheRest) {
  expect_exit(0, [] {
    static Tensor early;  // destroyed last
    static auto& driver = *new SimtDriver;
    static Stream stream;
    Encoder(Device::cuda()).run();
    early = Tensor(DType::float32, {100}, Device::cuda(), stream);
    static const Event event;
    static const Result result = Encoder(Device::cuda()).run();
    thread_local Tensor local(DType::float32, {10}, Device::cuda());
    std::exit(driver.libraries > 0 && local.data() ? 0 : 3);
  });
}

TEST_F(DriverProcess, ASecondThreadMayEndItWhileTheFirstUsesTheDevice) {
  for (int i = 0; i < repeats(10, 100); ++i) {
    expect_exit(7, [i] {
      ends_midway = true;
      static auto& driver = *new SimtDriver;
      static Tensor held(DType::float32, {100}, Device::cuda());
      std::atomic<bool> started = false;
      std::thread ends([&] {
        while (!started) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(i));
        std::exit(driver.streams >= 0 ? 7 : 3);
      });
      for (;;) {
        started = true;
        attempt_here([] { return Encoder(Device::cuda()).run(); });
      }
    });
  }
}

// A driver is shut down before the last objects are: it says so if it is still asked.
TEST_F(DriverProcess, ObjectsMayOutliveTheDriver) {
  expect_exit(5, [] {
    static Tensor early;
    static std::optional<Stream> stream;
    static auto& driver = *new SimtDriver;
    stream.emplace();
    early = Tensor(DType::float32, {100}, Device::cuda(), *stream);
    static const Event event;
    thread_local const Stream local;
    Encoder(Device::cuda()).run();
    std::atexit([] { driver.faults.plan(1, kDeinitialized, Repeat::from); });
    std::exit(local.ref().handle() ? 5 : 3);
  });
}

TEST_F(DriverProcess, ObjectsMayOutliveTheDriversTable) {
  expect_exit(5, [] {
    static Tensor early;
    static std::optional<Stream> stream;
    {
      const SimtDriver driver;
      stream.emplace();
      early = Tensor(DType::float32, {100}, Device::cuda(), *stream);
      Encoder(Device::cuda()).run();
    }
    std::exit(early.data() ? 5 : 3);
  });
}

}  // namespace
}  // namespace tensorcraft
