// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/diagnose/request.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::bench {

// One call to be timed, as text; nothing of it is checked yet.
struct Case {
  diagnose::RequestText request;  // its variant stays empty
  // Integers of the array of this name are drawn below the number; others below the smallest size
  // of another array, so that they are indices into anything.
  std::map<std::string, int64_t> below;
  // Integers of the array of this name ascend by the number instead: 0, n, 2 n, ...
  std::map<std::string, int64_t> step = {};
  std::string group = {};  // the title of its group in the suites

  // The parts of a row that say what is timed: "4096x512 8:int64", "axis=0".
  std::string shape() const;
  std::string options() const;
  // "8192x8192 bfloat16", with the options if there are any.
  std::string name() const;
};

// The text of benchmarks/suites.json, from the build.
extern const char* const kSuitesText;

// The names of the suites of such a text, "all" at the end.
std::vector<std::string> suite_names(std::string_view text);
// The cases of one suite, in the order of the text and without repetition; of "all" those of every
// suite. Kind value for a suite that does not exist, and for text of another form.
std::vector<Case> suite_cases(std::string_view text, std::string_view suite);
// Returns the cases of the build's suite whose group, operator, shape, dtype or options have the
// text. Kind value if there is none, in an error of the command.
std::vector<Case> cases_with(std::string_view command, std::string_view suite,
                             const std::string& text);
// Case::below, or Case::step, of an option's texts "NAME=N" for a call of `op`. Kind value for
// another text, or a NAME that is no array of the operator, in an error of the command.
std::map<std::string, int64_t> parse_numbers(std::string_view command, std::string_view op,
                                             std::string_view option,
                                             const std::vector<std::string>& texts);

}  // namespace tensorcraft::bench
