// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
#include "tensorcraft/core/prefixes.hpp"

#include <filesystem>

namespace tensorcraft::cli {

// A command called as ENVIRONMENT/bin/tensorcraft, perhaps through a link, looks for libraries and
// for Python in that virtual environment.
static void add_own_environment(const std::filesystem::path& called) {
  const auto environment = std::filesystem::absolute(called).parent_path().parent_path();
  std::error_code ignored;
  if (called.has_parent_path() && std::filesystem::exists(environment / "pyvenv.cfg", ignored))
    add_prefix(environment.lexically_normal());
}

std::vector<Command> all_commands() {
  std::vector<Command> all{
      doctor_command(),    devices_command(), ops_command(),    explain_command(), bench_command(),
      tune_command(),      profile_command(), warmup_command(), cache_command(),   clangd_command(),
      fragments_command(), report_command(),  trace_command(),  top_command()};
  all.push_back(help_command(all));
  all.push_back(completion_command(all));
  return all;
}

}  // namespace tensorcraft::cli

int main(int argc, char** argv) {
  tensorcraft::cli::add_own_environment(argv[0]);
  return tensorcraft::cli::run(argc, argv, tensorcraft::cli::all_commands());
}
