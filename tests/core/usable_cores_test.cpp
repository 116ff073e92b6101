// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/usable_cores.hpp"

#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>

namespace tensorcraft {
namespace {

TEST(UsableCores, AreThoseTheThreadMayRunOn) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  const double quota = cgroup_cores().value_or(CPU_COUNT(&all));
  EXPECT_EQ(usable_cores(), std::min(CPU_COUNT(&all), int(std::ceil(quota))));
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

// The files of a machine that tell of control groups.
class Machine {
 public:
  explicit Machine(const std::string& groups) { write("proc/self/cgroup", groups); }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = root_.file(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  double cores() const { return cgroup_cores(root_.path()).value_or(0); }

 private:
  test::TemporaryFolder root_;
};

TEST(CgroupCores, AreNoneWithoutAQuota) {
  Machine v2("0::/user.slice\n");
  EXPECT_EQ(v2.cores(), 0);
  v2.write("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(v2.cores(), 0);
  Machine v1("4:cpu,cpuacct:/\n3:cpuset:/\n");
  v1.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  v1.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(v1.cores(), 0);
  EXPECT_EQ(Machine("no group\n1:\n").cores(), 0);
  EXPECT_FALSE(cgroup_cores("/no/such/root"));
}

TEST(CgroupCores, AreOfVersion2) {
  Machine container("0::/\n");
  container.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(container.cores(), 0.5);
}

TEST(CgroupCores, AreTheLeastOfTheGroupsAbove) {
  Machine nested("0::/a/b/c\n");
  nested.write("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  nested.write("sys/fs/cgroup/a/b/cpu.max", "75000 50000\n");
  nested.write("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  nested.write("sys/fs/cgroup/a/other/cpu.max", "10000 100000\n");
  EXPECT_EQ(nested.cores(), 1.5);
}

TEST(CgroupCores, AreOfVersion1UnderBothNamesOfItsFolder) {
  for (const std::string folder : {"sys/fs/cgroup/cpu,cpuacct/", "sys/fs/cgroup/cpu/"}) {
    Machine v1("5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n0::/\n");
    v1.write(folder + "docker/x/cpu.cfs_quota_us", "200000\n");
    v1.write(folder + "docker/x/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(v1.cores(), 2) << folder;
    // A container sees its own group as the top of the tree.
    Machine inside("4:cpu,cpuacct:/docker/x\n");
    inside.write(folder + "cpu.cfs_quota_us", "25000\n");
    inside.write(folder + "cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(inside.cores(), 0.25) << folder;
  }
}

}  // namespace
}  // namespace tensorcraft
