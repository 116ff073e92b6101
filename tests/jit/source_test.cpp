// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/source.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft::jit {
namespace {

std::vector<std::string> names(const HeaderSet& headers) {
  std::vector<std::string> result;
  for (const auto& header : headers) result.push_back(header->name);
  return result;
}

TEST(Source, EmbedsEveryHeaderUnchanged) {
  ASSERT_GT(kNumEmbedded, 0);
  for (int i = 0; i < kNumEmbedded; ++i) {
    EXPECT_EQ(sha256_hex(kEmbedded[i].text), kEmbedded[i].sha256) << kEmbedded[i].name;
    EXPECT_TRUE(std::string_view(kEmbedded[i].name).starts_with("tensorcraft/"));
  }
}

TEST(Source, ReachesWhatIsIncludedAndNothingElse) {
  add_source(
      "tensorcraft/test/a.cuh",
      "#include \"tensorcraft/test/b.cuh\"\n  #  include\t\"tensorcraft/test/c.cuh\" // why\n"
      "// #include \"tensorcraft/test/d.cuh\"\n#include <cstdint>\n");
  add_source("tensorcraft/test/b.cuh", "#include \"tensorcraft/test/a.cuh\"\n");  // a cycle
  add_source("tensorcraft/test/c.cuh", "int last_line_without_newline;");
  add_source("tensorcraft/test/d.cuh", "int d;\n");
  EXPECT_EQ(names(*include_closure("tensorcraft/test/a.cuh")),
            (std::vector<std::string>{"tensorcraft/test/a.cuh", "tensorcraft/test/b.cuh",
                                      "tensorcraft/test/c.cuh"}));
}

TEST(Source, RemembersAClosureUntilAHeaderChanges) {
  add_source("tensorcraft/test/memo.cuh", "int before;\n");
  const auto before = include_closure("tensorcraft/test/memo.cuh");
  EXPECT_EQ(include_closure("tensorcraft/test/memo.cuh"), before);
  add_source("tensorcraft/test/memo.cuh", "int after;\n");
  const auto after = include_closure("tensorcraft/test/memo.cuh");
  EXPECT_EQ((*before)[0]->text, "int before;\n");
  EXPECT_EQ((*after)[0]->text, "int after;\n");
  EXPECT_NE((*before)[0]->sha256, (*after)[0]->sha256);
}

TEST(Source, SaysWhichHeaderDoesNotExist) {
  try {
    include_closure("tensorcraft/test/none.cuh");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_NE(std::string(error.what()).find("'tensorcraft/test/none.cuh'"), std::string::npos);
  }
}

}  // namespace
}  // namespace tensorcraft::jit
