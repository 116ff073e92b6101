// SPDX-License-Identifier: Apache-2.0
// Many processes and threads ask for one kernel that is not there yet, with locks that work, fail
// or are held for ever; and folders that cannot be used. Every caller gets the right kernel.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/file_faults.hpp"
#include "tests/support/made_up_cubin.hpp"

#include <gtest/gtest.h>

#include <sys/mount.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::Child;
using test::file_faults;
using test::scale_key;
using test::TemporaryFolder;

constexpr int kCallers = 32;
constexpr int kWrongImage = 100;

class ColdKey : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(test::kCompilerIsSet, 0);
    setenv("TC_TEST_COMPILE_US", "20000", 1);
    test::add_scale_header();
    if (test::uses_real_compiler() && !test::has_compiler(log_)) GTEST_SKIP() << "no NVRTC";
  }
  void TearDown() override { unsetenv("TC_TEST_COMPILE_US"); }

  // Builds in one process; returns the number of its compilations, kWrongImage if the kernel is
  // wrong.
  static int build_here(const std::string& folder, std::chrono::milliseconds timeout) {
    Compiler compiler(folder, kDefaultCacheBytes, timeout);
    const std::string image = compiler.build(scale_key(), "sm_90a").entry.image;
    const int compiles = int(compiler.compiles());
    const bool right = image == compiler.build(scale_key(), "sm_90a", true).entry.image;
    return right ? compiles : kWrongImage;
  }

  struct Outcome {
    int compiles = 0, failures = 0, warnings = 0;
  };
  Outcome run_children(int children, const std::function<void()>& prepare = {},
                       std::chrono::milliseconds timeout = kLockTimeout) {
    test::Gate gate;
    std::vector<Child> running;
    for (int i = 0; i < children; ++i) {
      running.emplace_back(log_, [&] {
        if (prepare) prepare();
        gate.pass();
        return build_here(folder_, timeout);
      });
    }
    gate.open_now();
    Outcome outcome;
    for (Child& child : running) {
      const int code = child.wait();
      if (code < 0 || code >= kWrongImage)
        ++outcome.failures;
      else
        outcome.compiles += code;
    }
    outcome.warnings = test::count_of(test::read_file(log_), "kernel cache ");
    return outcome;
  }
  void expect_all_right(const Outcome& outcome, int compiles, int warnings) {
    EXPECT_EQ(outcome.failures, 0) << test::read_file(log_);
    EXPECT_EQ(outcome.compiles, compiles);
    EXPECT_EQ(outcome.warnings, warnings) << test::read_file(log_);
  }

  TemporaryFolder root_;
  std::string folder_ = root_.file("cache"), log_ = root_.file("log");
};

TEST_F(ColdKey, IsCompiledOnceByManyProcesses) {
  for (int round = 0; round < test::repeats(2, 20); ++round) {
    fs::remove_all(folder_);
    expect_all_right(run_children(kCallers), 1, 0);
  }
}

TEST_F(ColdKey, IsCompiledOnceByManyThreads) {
  const auto work = [this] {
    const test::FakeDriver driver;
    Compiler compiler(folder_);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    std::vector<std::shared_ptr<const LoadedKernel>> kernels(kCallers);
    std::vector<std::string> images(kCallers);
    for (size_t i = 0; i < kCallers; ++i) {
      threads.emplace_back([&, i] {
        try {
          images[i] = compiler.build(scale_key(), "sm_90a").entry.image;
          kernels[i] = get_kernel(scale_key(DType::float32, 3), Device::cuda());
        } catch (const Error&) {
          ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kCallers; ++i)
      wrong += kernels[i] != kernels[0] || images[i] != images[0];
    return wrong > 0 ? kWrongImage : int(compiler.compiles() + counters().compiles);
  };
  Child child(log_, work);
  EXPECT_EQ(child.wait(), 2) << "one of each of the two kernels; " << test::read_file(log_);
}

TEST_F(ColdKey, IsRefusedWhereItsCodeWouldEndTheProcess) {
  if (test::uses_real_compiler()) GTEST_SKIP() << "makes no such code of this kernel";
  const std::string image = root_.file("image");
  std::ofstream(image, std::ios::binary)
      << test::made_up_cubin({test::kBrokenCopy[0], test::kBrokenCopy[1]});
  setenv("TC_TEST_IMAGE", image.c_str(), 1);
  Compiler compiler(folder_);
  try {
    compiler.build(scale_key(), "sm_90a");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::compile);
    EXPECT_TRUE(std::string_view(error.what())
                    .starts_with("test_scale: the assembler of NVRTC made an instruction that "
                                 "sm_90a does not have; name another variant\n  signature: "
                                 "test_scale_float32_"))
        << error.what();
  }
  EXPECT_EQ(compiler.build(scale_key(), "sm_80").entry.arch, "sm_80");  // whose codes differ
  unsetenv("TC_TEST_IMAGE");
  EXPECT_EQ(KernelCache(folder_, kDefaultCacheBytes).list().size(), 1u);  // not the refused one
  EXPECT_EQ(compiler.build(scale_key(), "sm_90a").entry.arch, "sm_90a");
}

TEST_F(ColdKey, IsRightWhereTheFileSystemHasNoLocks) {
  const Outcome outcome = run_children(kCallers, [] { file_faults.flock = ENOLCK; });
  EXPECT_EQ(outcome.failures, 0) << test::read_file(log_);
  EXPECT_GE(outcome.compiles, 1);
  EXPECT_LE(outcome.compiles, kCallers);
  EXPECT_LE(outcome.warnings, kCallers) << "more than one warning in a process";
  EXPECT_NE(test::read_file(log_).find("without locks (No locks available)"), std::string::npos);
  EXPECT_EQ(KernelCache(folder_, kDefaultCacheBytes).verify().removed.size(), 0u);
  fs::remove(log_);
  expect_all_right(run_children(4), 0, 0);
}

TEST_F(ColdKey, WaitsForAStuckHolderForATimeOnly) {
  ASSERT_EQ(Child(log_, [this] { return build_here(folder_, kLockTimeout); }).wait(), 1);
  fs::remove(fs::path(folder_) / fs::path(KernelCache(folder_, 0).list().at(0).key + ".kernel"));
  // Holds every lock there is, and never lets go.
  test::Gate held;
  Child holder(log_, [&] {
    CacheFolder folder(folder_);
    std::vector<std::unique_ptr<CacheFolder::Lock>> locks;
    for (const auto& file : fs::directory_iterator(folder_)) {
      const std::string name = file.path().filename();
      if (name.starts_with("lock-"))
        locks.push_back(std::make_unique<CacheFolder::Lock>(folder, name, std::chrono::seconds(1)));
    }
    test::write_file(folder_ + ".held", "");
    raise(SIGSTOP);
    return 0;
  });
  while (!fs::exists(folder_ + ".held")) usleep(1000);
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run_children(4, {}, std::chrono::milliseconds(200));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  holder.kill_now();
  EXPECT_EQ(outcome.failures, 0) << test::read_file(log_);
  // Who comes so late that another has given up waiting and stored the kernel finds it.
  EXPECT_GE(outcome.compiles, 1);
  EXPECT_LE(outcome.compiles, 4);
  EXPECT_EQ(outcome.warnings, 0) << test::read_file(log_);
  EXPECT_LT(elapsed.count(), 30);
}

// A folder that cannot be used costs one warning in a process and nothing else.
struct Trouble {
  const char* name;
  std::function<void(const std::string& folder)> make;  // in the parent
  std::function<void()> prepare;                        // in each child
  const char* warning;
};

TEST_F(ColdKey, WorkGoesOnWithOneWarningWhateverIsWrongWithTheFolder) {
  const auto make_folder = [](const std::string& folder) {
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::owner_all);
  };
  const Trouble troubles[] = {
      {"full disk", make_folder, [] { file_faults.write = ENOSPC; }, "No space left on device"},
      {"disk that cannot sync", make_folder, [] { file_faults.fsync = EIO; }, "Input/output error"},
      {"failing rename", make_folder, [] { file_faults.rename = EBUSY; },
       "cannot be written (Device or resource busy)"},
      {"symbolic link",
       [&](const std::string& folder) {
         make_folder(folder + ".real");
         fs::create_directory_symlink(folder + ".real", folder);
       },
       {},
       "is a symbolic link or no folder"},
      {"file",
       [](const std::string& folder) { test::write_file(folder, ""); },
       {},
       "is a symbolic link or no folder"},
      {"world-writable",
       [](const std::string& folder) {
         fs::create_directory(folder);
         fs::permissions(folder, fs::perms::all);
       },
       {},
       "has another owner or is writable for others"},
      {"other owner",
       [&](const std::string& folder) {
         make_folder(folder);
         if (chown(folder.c_str(), 12345, 12345) != 0) fs::permissions(folder, fs::perms::all);
       },
       {},
       "has another owner or is writable for others"},
      {"read-only home",
       [](const std::string& folder) {
         const fs::path home = fs::path(folder).parent_path();
         fs::permissions(home, fs::perms(0555));
       },
       [] {
         // Loaded by root first: the build may be in a home that no other user may enter.
         if (!cuda::nvrtc_available()) _exit(kWrongImage);
         if (geteuid() == 0 && setuid(65534) != 0) _exit(kWrongImage);
       },
       "cannot be created (Permission denied)"},
  };
  for (const Trouble& trouble : troubles) {
    SCOPED_TRACE(trouble.name);
    const TemporaryFolder place;
    folder_ = place.file("cache");
    log_ = root_.file("log ") + trouble.name;
    test::write_file(log_, "");
    fs::permissions(log_, fs::perms::all);
    trouble.make(folder_);
    expect_all_right(run_children(2, trouble.prepare), 2, 2);
    EXPECT_NE(test::read_file(log_).find(trouble.warning), std::string::npos)
        << test::read_file(log_);
    fs::permissions(place.path(), fs::perms::owner_all);
    if (fs::is_directory(folder_) && !fs::is_symlink(folder_)) {
      const CacheStat stat = KernelCache(folder_, kDefaultCacheBytes).stat();
      EXPECT_EQ(stat.entries + stat.temporary_files, 0u);
    }
  }
}

TEST_F(ColdKey, WorksWithoutAHome) {
  folder_ = "";
  expect_all_right(run_children(2), 2, 2);
  EXPECT_NE(test::read_file(log_).find("no home"), std::string::npos);
}

TEST_F(ColdKey, WorksOnADiskOfAFewKilobytes) {
  fs::create_directory(folder_);
  if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=16k,mode=0700") != 0)
    GTEST_SKIP() << "may not mount";
  const Outcome outcome = run_children(4);
  const CacheStat stat = KernelCache(folder_, kDefaultCacheBytes).stat();
  umount(folder_.c_str());
  expect_all_right(outcome, 4, 4);
  EXPECT_EQ(stat.entries + stat.temporary_files, 0u);
}

}  // namespace
}  // namespace tensorcraft::jit
