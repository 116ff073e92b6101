// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

namespace tensorcraft::cli {

std::vector<Command> all_commands() {
  std::vector<Command> all{
      doctor_command(), devices_command(), ops_command(),    explain_command(),   bench_command(),
      warmup_command(), cache_command(),   clangd_command(), fragments_command(), report_command()};
  all.push_back(help_command(all));
  all.push_back(completion_command(all));
  return all;
}

}  // namespace tensorcraft::cli

int main(int argc, char** argv) {
  return tensorcraft::cli::run(argc, argv, tensorcraft::cli::all_commands());
}
