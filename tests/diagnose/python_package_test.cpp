// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/python_package.hpp"

#include "tensorcraft/core/prefixes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace tensorcraft::diagnose {
namespace {

namespace fs = std::filesystem;

// A prefix that is asked first; one for the process, since it cannot be taken back.
const fs::path& own_prefix() {
  static const fs::path prefix = [] {
    static const test::TemporaryFolder folder;
    add_prefix(folder.path());
    return fs::path(folder.path());
  }();
  return prefix;
}

// With an interpreter of our own.
class PythonPackageTest : public ::testing::Test {
 protected:
  PythonPackageTest() { fs::create_directories(prefix_ / "bin"); }
  ~PythonPackageTest() override { fs::remove_all(prefix_); }
  PythonPackage ask(const std::string& script) {
    const fs::path python = prefix_ / "bin" / "python3";
    std::ofstream(python) << "#!/bin/sh\n" << script << '\n';
    fs::permissions(python, fs::perms::owner_all);
    return find_python_package();
  }
  const fs::path prefix_ = own_prefix();
};

TEST_F(PythonPackageTest, ReadsVersionAndFolder) {
  const PythonPackage found =
      ask("echo noise; echo version 1.2.3; echo place /opt/x/tensorcraft/__init__.py");
  EXPECT_EQ(found.interpreter, prefix_ / "bin" / "python3");
  EXPECT_EQ(found.version, "1.2.3");
  EXPECT_EQ(found.place, "/opt/x/tensorcraft");
  EXPECT_EQ(found.problem, "");
}

TEST_F(PythonPackageTest, AFailedImportIsItsLastLine) {
  const PythonPackage found = ask("echo Traceback >&2; echo 'ImportError: no numpy' >&2; exit 1");
  EXPECT_EQ(found.version, "");
  EXPECT_EQ(found.problem, "ImportError: no numpy");
}

TEST_F(PythonPackageTest, AnInterpreterThatDiesIsNoPackage) {
  const PythonPackage found = ask("echo version 1.2.3; kill -SEGV $$");
  EXPECT_EQ(found.version, "");
}

}  // namespace
}  // namespace tensorcraft::diagnose
