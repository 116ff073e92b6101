// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/python_package.hpp"

#include "tensorcraft/core/prefixes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

namespace tensorcraft::diagnose {
namespace {

constexpr std::chrono::seconds kPatience{30};
// A folder of that name, as in a source tree, imports as a package without a version.
constexpr const char* kQuestion =
    "import tensorcraft\n"
    "if not hasattr(tensorcraft, '__version__'):\n"
    "    raise SystemExit(\"No module named 'tensorcraft'\")\n"
    "print('version', tensorcraft.__version__)\n"
    "print('place', tensorcraft.__file__)\n";

struct Answer {
  int status = -1;
  std::string text;
};

// Reads until the other end closes or patience ends; false then.
bool read_until(int file, std::chrono::steady_clock::time_point end, std::string& text) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wanted{file, POLLIN, 0};
    if (left.count() <= 0 || poll(&wanted, 1, int(left.count())) <= 0) return false;
    const ssize_t n = read(file, buffer.data(), buffer.size());
    if (n <= 0) return true;
    text.append(buffer.data(), size_t(n));
  }
}

// Returns what an interpreter says; nullopt if it cannot be started.
std::optional<Answer> ask(const std::string& interpreter) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<std::string> words{interpreter, "-c", kQuestion};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, interpreter.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Answer answer;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const bool finished = failed || read_until(ends[0], end, answer.text);
  close(ends[0]);
  if (failed) return std::nullopt;
  if (!finished) {
    kill(child, SIGKILL);
    answer.text = "the import took longer than 30 seconds";
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (finished && WIFEXITED(status)) answer.status = WEXITSTATUS(status);
  if (answer.status == 127 && answer.text.empty()) return std::nullopt;
  return answer;
}

PythonPackage understand(const std::string& interpreter, const Answer& answer) {
  PythonPackage found{.interpreter = interpreter, .version = {}, .place = {}, .problem = {}};
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("version ")) found.version = line.substr(8);
    if (line.starts_with("place "))
      found.place = std::filesystem::path(line.substr(6)).parent_path();
    if (!line.empty()) found.problem = line;
  }
  if (answer.status != 0) found.version.clear();
  if (!found.version.empty()) found.problem.clear();
  return found;
}

}  // namespace

PythonPackage find_python_package() {
  std::vector<std::string> interpreters;
  for (const auto& prefix : prefixes()) interpreters.push_back(prefix / "bin" / "python3");
  interpreters.emplace_back("python3");
  for (const std::string& interpreter : interpreters)
    if (const auto answer = ask(interpreter)) return understand(interpreter, *answer);
  return {};
}

}  // namespace tensorcraft::diagnose
