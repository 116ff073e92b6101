// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/counters.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace tensorcraft::diagnose {
namespace {

namespace fs = std::filesystem;

// As ncu writes it: its messages, the columns, their units, a row for each launch.
constexpr const char* kText =
    "==PROF== Connected to process 7 (/usr/bin/tensorcraft)\n"
    "==PROF== Profiling \"gemm_tma\": 0%....100% - 8 passes\r\n"
    R"csv("ID","Process ID","Kernel Name","Context","Block Size","Grid Size","gpu__time_duration.sum",)csv"
    R"csv("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",)csv"
    R"csv("lts__throughput.avg.pct_of_peak_sustained_elapsed",)csv"
    R"csv("l1tex__throughput.avg.pct_of_peak_sustained_active",)csv"
    R"csv("sm__throughput.avg.pct_of_peak_sustained_elapsed",)csv"
    R"csv("sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",)csv"
    R"csv("sm__warps_active.avg.pct_of_peak_sustained_active","launch__waves_per_multiprocessor",)csv"
    R"csv("launch__registers_per_thread",)csv"
    R"csv("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",)csv"
    R"csv("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",)csv"
    R"csv("smsp__average_warps_issue_stalled_selected_per_issue_active.ratio")csv"
    "\n"
    R"csv("","","","","","","ns","%","%","%","%","%","%","","register/thread","inst","inst","inst")csv"
    "\n"
    R"csv("0","7","gemm_tma<""bf16"", 3>","1","(384, 1, 1)","(132, 1, 1)","1,234.50","35.2","40","51",)csv"
    R"csv("83.9","80.4","18.7","1","168","0.5","2.25","1")csv"
    "\n"
    R"csv("1","7","add","1","(256, 1, 1)","(64, 1, 1)","2000","n/a","","1","2","0","12","0.25","16",)csv"
    R"csv("0","0","1")csv"
    "\n"
    "==PROF== Disconnected from process 7\n";

TEST(Counters, AreReadByTheirColumns) {
  const auto all = read_counters(kText);
  ASSERT_EQ(all.size(), 2u);
  const KernelCounters& k = all[0];
  EXPECT_EQ(k.kernel, "gemm_tma<\"bf16\", 3>");
  EXPECT_EQ(k.grid, "(132, 1, 1)");
  EXPECT_EQ(k.block, "(384, 1, 1)");
  EXPECT_NEAR(k.us, 1.2345, 1e-9);
  EXPECT_EQ(k.dram, 35.2);
  EXPECT_EQ(k.l2, 40);
  EXPECT_EQ(k.l1, 51);
  EXPECT_EQ(k.sm, 83.9);
  EXPECT_EQ(k.tensor, 80.4);
  EXPECT_EQ(k.occupancy, 18.7);
  EXPECT_EQ(k.waves, 1);
  EXPECT_EQ(k.registers, 168);
  ASSERT_EQ(k.stalls.size(), 2u) << "a warp that is selected does not wait";
  EXPECT_EQ(k.stalls[0].reason, "long_scoreboard");
  EXPECT_EQ(k.stalls[1].warps, 0.5);
  EXPECT_EQ(all[1].dram, 0) << "what ncu lacks is 0";
  EXPECT_TRUE(all[1].stalls.empty());
}

TEST(Counters, TimesAreReadInEveryUnit) {
  const auto us = [](const std::string& unit) {
    return read_counters("\"ID\",\"gpu__time_duration.sum\"\n\"\",\"" + unit + "\"\n\"0\",\"3\"\n")
        .at(0)
        .us;
  };
  for (const char* unit : {"ns", "nsecond"}) EXPECT_NEAR(us(unit), 0.003, 1e-12) << unit;
  for (const char* unit : {"us", "usecond"}) EXPECT_NEAR(us(unit), 3, 1e-12) << unit;
  for (const char* unit : {"ms", "msecond"}) EXPECT_NEAR(us(unit), 3e3, 1e-9) << unit;
  for (const char* unit : {"s", "second"}) EXPECT_NEAR(us(unit), 3e6, 1e-6) << unit;
}

TEST(Counters, TextWithoutAKernelIsNone) {
  EXPECT_TRUE(read_counters("").empty());
  EXPECT_TRUE(read_counters("==WARNING== No kernels were profiled.\n").empty());
  EXPECT_TRUE(read_counters("\"1\",\"2\"\n").empty()) << "without its columns";
  EXPECT_EQ(read_counters("\"ID\",\"Kernel Name\"\n\"\",\"\"\n\"0\"\n").at(0).kernel, "")
      << "a row that was cut off";
}

TEST(Counters, ErrorsOfNcuSayWhatToDo) {
  test::expect_error(
      ErrorKind::unsupported,
      [] { read_counters("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"); },
      "ncu: this user may not read the GPU's counters; run as root, or let the driver allow it: "
      "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then load it anew; "
      "a container needs the capability SYS_ADMIN");
  test::expect_error(
      ErrorKind::io,
      [] { read_counters("==ERROR== The application returned an error code (2).\n"); },
      "ncu: The application returned an error code (2).");
  EXPECT_THROW(read_counters("==ERROR=="), Error);
}

TEST(Counters, TheBusiestUnitBoundsAKernel) {
  EXPECT_EQ(bound_of({.dram = 88, .l2 = 61, .sm = 30}), Bound::dram);
  EXPECT_EQ(bound_of({.dram = 20, .l2 = 75, .l1 = 70}), Bound::l2);
  EXPECT_EQ(bound_of({.l1 = 92, .sm = 91}), Bound::l1);
  EXPECT_EQ(bound_of({.dram = 40, .sm = 60}), Bound::arithmetic);
  EXPECT_EQ(bound_of({.dram = 59, .sm = 59, .waves = 4}), Bound::latency);
  EXPECT_EQ(bound_of({.dram = 9, .waves = 0.25}), Bound::few_blocks);
  EXPECT_EQ(bound_of({.dram = 70, .waves = 0.25}), Bound::dram) << "a busy unit comes first";
  EXPECT_EQ(bound_of({}), Bound::latency) << "how many waves is not known";
}

TEST(Counters, SayWhyInASentence) {
  EXPECT_EQ(reason_of({.dram = 88.4}), "memory: 88 % of its bandwidth");
  EXPECT_EQ(reason_of({.l2 = 70}), "the L2 cache: 70 % of its throughput");
  EXPECT_EQ(reason_of({.l1 = 70}), "L1 and shared memory: 70 % of their throughput");
  EXPECT_EQ(reason_of({.sm = 84, .tensor = 80}),
            "arithmetic: 84 % of what the multiprocessors can, tensor cores busy 80 %");
  EXPECT_EQ(reason_of({.sm = 84}), "arithmetic: 84 % of what the multiprocessors can");
  EXPECT_EQ(reason_of({.waves = 0.25}), "too few blocks: they fill 25 % of the device");
  EXPECT_EQ(reason_of({.occupancy = 19, .stalls = {{"barrier", 2}, {"wait", 1}}}),
            "latency: no unit is busy, 19 % of the warps that fit are there; they wait most for "
            "other warps of the block, at a barrier: more or smaller blocks (barrier)");
  EXPECT_EQ(reason_of({.occupancy = 19, .stalls = {{"new_one", 2}}}),
            "latency: no unit is busy, 19 % of the warps that fit are there; they wait most for "
            "new_one");
  EXPECT_EQ(reason_of({.occupancy = 19}),
            "latency: no unit is busy, 19 % of the warps that fit are there");
}

TEST(Counters, EveryBoundHasAName) {
  EXPECT_EQ(to_string(Bound::dram), "dram");
  EXPECT_EQ(to_string(Bound::l2), "l2");
  EXPECT_EQ(to_string(Bound::l1), "l1");
  EXPECT_EQ(to_string(Bound::arithmetic), "arithmetic");
  EXPECT_EQ(to_string(Bound::few_blocks), "few_blocks");
  EXPECT_EQ(to_string(Bound::latency), "latency");
}

TEST(Ncu, IsFoundOnTheSearchPathIfItCanRun) {
  const test::TemporaryFolder folder;
  const fs::path plain = fs::path(folder.path()) / "plain", good = fs::path(folder.path()) / "good";
  for (const fs::path& place : {plain, good}) {
    fs::create_directories(place);
    std::ofstream(place / "ncu") << "#!/bin/sh\n";
  }
  fs::permissions(good / "ncu", fs::perms::owner_all);
  EXPECT_EQ(find_ncu("/nonexistent::" + plain.string() + ':' + good.string()),
            (good / "ncu").string());
}

TEST(Ncu, IsStartedWithItsCountersForTheRangeAlone) {
  const std::vector<std::string> words = ncu_command("/opt/ncu", "log");
  EXPECT_EQ(words[0], "/opt/ncu");
  const auto after = [&](std::string_view word) { return *(std::ranges::find(words, word) + 1); };
  EXPECT_EQ(after("--page"), "raw");
  EXPECT_EQ(after("--profile-from-start"), "off");
  EXPECT_EQ(after("--log-file"), "log");
  EXPECT_EQ(std::ranges::count(words, "--section"), 5);
}

}  // namespace
}  // namespace tensorcraft::diagnose
