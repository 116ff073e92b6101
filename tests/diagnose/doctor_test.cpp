// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/doctor.hpp"

#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>

// Broken environments, which need a process of their own: tests/cli/test_doctor.py.
namespace tensorcraft::diagnose {
namespace {

const DoctorCheck& check(const std::vector<DoctorCheck>& checks, const std::string& name) {
  const auto found = std::ranges::find(checks, name, &DoctorCheck::name);
  if (found == checks.end()) throw std::out_of_range(name);
  return *found;
}

std::string row(const std::vector<DoctorCheck>& checks, const std::string& name) {
  const DoctorCheck& c = check(checks, name);
  return std::string(to_string(c.result)) + " " + c.finding;
}

TEST(Doctor, ChecksInAFixedOrderAndEachFindingIsOneLine) {
  const auto checks = run_doctor({.probe = &find_operator("l2_normalize")});
  std::vector<std::string> names;
  for (const DoctorCheck& c : checks) {
    names.push_back(c.name);
    EXPECT_NE(c.finding, "") << c.name;
    EXPECT_EQ(c.finding.find('\n'), std::string::npos) << c.finding;
    EXPECT_EQ(c.fix.find('\n'), std::string::npos) << c.fix;
    EXPECT_EQ(c.fix.empty(), c.result == CheckResult::pass) << c.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"configuration", "driver", "device", "NVRTC",
                                             "cache folder", "disk space", "oneDNN",
                                             "Python package", "versions", "MPS", "operator"}));
}

TEST(Doctor, DescribesADriverAndItsDevices) {
  const test::FakeDriver driver({test::FakeGpu{}, {.name = "Old", .compute_capability = 75}});
  const auto checks = run_doctor({});
  EXPECT_EQ(row(checks, "driver"), "PASS supports CUDA 13.0");
  EXPECT_EQ(row(checks, "device"),
            "WARN cuda:0 Fake H200 (sm_90a); refused: cuda:1: TensorCraft requires SM >= 80 "
            "(Ampere); the default is cuda:0");
}

TEST(Doctor, AGpuThatCannotBeUsedFails) {
  const test::FakeDriver driver({{.name = "Old", .compute_capability = 75}});
  EXPECT_EQ(row(run_doctor({}), "device"), "FAIL cuda:0: TensorCraft requires SM >= 80 (Ampere)");
}

TEST(Doctor, NoGpuIsAWarningUnlessOneIsRequired) {
  const test::FakeDriver driver(std::vector<test::FakeGpu>{});
  const auto checks = run_doctor({});
  EXPECT_EQ(row(checks, "device"), "WARN no GPU; every operator runs on the CPU");
  EXPECT_EQ(check(checks, "device").fix, "look at nvidia-smi and at CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(row(run_doctor({.require_gpu = true}), "device"),
            "FAIL no GPU; every operator runs on the CPU");
}

TEST(Doctor, AnotherVersionOfTheProgramFails) {
  const auto checks = run_doctor({.program_version = "9.9.9"});
  EXPECT_EQ(check(checks, "versions").result, CheckResult::fail);
  EXPECT_NE(check(checks, "versions").finding.find("command 9.9.9"), std::string::npos);
}

TEST(Doctor, AGpuThatComputesNothingFailsTheOperator) {
  test::FakeDriver driver;  // launches do nothing, so the result stays what memory held
  const auto checks = run_doctor({.probe = &find_operator("l2_normalize")});
  EXPECT_EQ(check(checks, "operator").result, CheckResult::fail) << row(checks, "operator");
}

TEST(Doctor, RunsTheOperatorOnTheCpuWhereThereIsNoGpu) {
  const test::FakeDriver driver(std::vector<test::FakeGpu>{});
  EXPECT_EQ(row(run_doctor({.probe = &find_operator("l2_normalize")}), "operator"),
            "PASS l2_normalize is right on cpu");
}

}  // namespace
}  // namespace tensorcraft::diagnose
