// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
#include "tensorcraft/core/prefixes.hpp"

#include <sys/auxv.h>

#include <filesystem>

namespace tensorcraft::cli {

// A command that is started as ENVIRONMENT/bin/tensorcraft, by PATH or through a link, looks for
// libraries and for Python in that virtual environment.
static void add_own_environment() {
  // The file that the system was told to run, which argv[0] need not be; then where links lead.
  const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  std::error_code ignored;
  for (const std::filesystem::path& file :
       {std::filesystem::absolute(started ? started : "", ignored),
        std::filesystem::read_symlink("/proc/self/exe", ignored)}) {
    const auto environment = file.lexically_normal().parent_path().parent_path();  // "bin/./it" too
    if (!environment.empty() && std::filesystem::exists(environment / "pyvenv.cfg", ignored))
      add_prefix(environment);
  }
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
  tensorcraft::cli::add_own_environment();
  return tensorcraft::cli::run(argc, argv, tensorcraft::cli::all_commands());
}
