// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/console.hpp"

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// A command line as data. From it come the parser (app.cpp) and the completion scripts, so that
// neither can know more than the other.
namespace tensorcraft::cli {

enum ExitCode : int {
  kDone = 0,
  kCheckFailed = 1,  // what was asked for was done, and the answer is no
  kUsage = 2,        // arguments or configuration that are not accepted
  kUnavailable = 3,  // this machine lacks something, or something failed
};

// One option, or an argument by position if the name has no dashes.
struct Option {
  std::string name, help;
  // The place that the value goes to; a list takes the option several times, or all further
  // positions. An optional one may be named without a value, and is an empty text then.
  std::variant<bool*, int*, double*, std::string*, std::vector<std::string>*,
               std::optional<std::string>*>
      value;
  bool required = false;
  bool is_file = false;
  std::vector<std::string> choices = {};  // nothing else is taken
  std::string letter = {};                // a short name: "-o"
  bool is_open = false;                   // other words than the choices are taken too
};

struct Command {
  std::string name, help;
  std::vector<Option> options;
  std::function<int(Console&)> run;        // null for a group of commands
  std::vector<std::string> examples = {};  // each what follows "tensorcraft "
  std::vector<Command> commands = {};
  // Takes all words from the first that is no option of its own.
  std::vector<std::string>* rest = nullptr;
};

Command bench_command();
Command cache_command();
Command clangd_command();
Command fragments_command();
Command completion_command(std::vector<Command> others);
Command devices_command();
Command doctor_command();
Command explain_command();
// Explains all others.
Command help_command(const std::vector<Command>& others);
Command ops_command();
Command profile_command();
Command report_command();
Command top_command();
Command trace_command();
Command tune_command();
Command warmup_command();
// All of them, in the order of the help.
std::vector<Command> all_commands();

// Parses, runs one command and reports what it throws. Returns an ExitCode.
int run(int argc, const char* const* argv, const std::vector<Command>& commands);

}  // namespace tensorcraft::cli
