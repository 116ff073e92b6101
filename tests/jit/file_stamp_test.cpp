// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/file_stamp.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcraft::jit {
namespace {

TEST(FileStamp, HoldsWhileAFileIsAsItWas) {
  const std::string file = std::string(TC_SOURCE) + "/LICENSE";
  const auto stamp = stamp_of(file);
  ASSERT_TRUE(stamp);
  EXPECT_TRUE(holds(*stamp));
  for (int64_t FileStamp::* field :
       {&FileStamp::bytes, &FileStamp::modified_ns, &FileStamp::changed_ns}) {
    FileStamp other = *stamp;
    ++(other.*field);
    EXPECT_FALSE(holds(other));
  }
}

TEST(FileStamp, OfANewFileTellsNothing) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(stamp_of(folder.write("new", "1")))
      << "a write now could leave its times as they are";
  EXPECT_FALSE(stamp_of(folder.file("absent")));
}

}  // namespace
}  // namespace tensorcraft::jit
