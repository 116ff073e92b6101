// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/environment.hpp"

#include "tensorcraft/core/config.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tensorcraft {
namespace {

// Apart, as scripts/check_budgets.py takes a whole name for one that the library reads.
const std::string kPrefix = "TENSORCRAFT_", kDevise = kPrefix + "DEVISE", kFoo = kPrefix + "FOO";
constexpr const char* kNotKnown = " is not known and has no effect";

std::vector<std::string> unknown(const std::vector<std::string>& variables) {
  std::vector<const char*> texts;
  for (const std::string& variable : variables) texts.push_back(variable.c_str());
  texts.push_back(nullptr);
  return unknown_variables(texts.data());
}

TEST(Environment, NamesAnUnknownVariableAndTheOneThatIsMeant) {
  const std::vector<std::string> all{
      "the variable " + kDevise + kNotKnown + "; did you mean TENSORCRAFT_DEVICE?",
      "the variable " + kFoo + kNotKnown};
  EXPECT_EQ(unknown({kFoo + "=1", "PATH=/bin", kDevise + "=cpu"}), all);
}

TEST(Environment, NamesTheKeyThatOnlyTheFileHas) {
  const std::string name = kPrefix + "NUM_THREADS";
  EXPECT_EQ(unknown({name + "=3"}), std::vector{"the variable " + name + kNotKnown +
                                                "; num_threads is set in the configuration file"});
}

TEST(Environment, KnowsEveryVariableOfTheSettings) {
  std::vector<std::string> variables{"TENSORCRAFT_CONFIG=x", "TENSORCRAFTS=1", "X=" + kFoo};
  for (const Setting& setting : settings())
    if (!setting.environment.empty()) variables.push_back(std::string(setting.environment) + "=1");
  EXPECT_EQ(unknown(variables), std::vector<std::string>{});
  EXPECT_EQ(unknown_variables(nullptr), std::vector<std::string>{});
}

TEST(EnvironmentDeathTest, IsWarnedOfOnceByTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not asked for its settings
  EXPECT_EXIT(
      {
        setenv(kDevise.c_str(), "cpu", 1);
        unsetenv("TENSORCRAFT_LOG");
        config();
        config();
        _exit(0);
      },
      testing::ExitedWithCode(0),
      "^[^\n]*\\[warning\\] the variable " + kDevise + " [^\n]*mean TENSORCRAFT_DEVICE\\?\n$");
}

}  // namespace
}  // namespace tensorcraft
