// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/work_folder.hpp"

#include "tensorcraft/core/error.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tensorcraft::jit {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "tensorcraft-work-";

enum class Locked { done, by_another, gone, impossible };

// Locks a folder of ours, whose descriptor is -1 unless that is done.
Locked lock_folder(const std::string& path, int& folder) {
  folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return errno == ENOENT ? Locked::gone : Locked::impossible;
  Locked result = Locked::done;
  struct stat locked, there;
  if (flock(folder, LOCK_EX | LOCK_NB) != 0)
    result = errno == EWOULDBLOCK ? Locked::by_another : Locked::impossible;
  else if (stat(path.c_str(), &there) != 0 || fstat(folder, &locked) != 0 ||
           there.st_ino != locked.st_ino)
    result = Locked::gone;
  else if (locked.st_uid != geteuid())
    result = Locked::impossible;
  if (result != Locked::done) close(std::exchange(folder, -1));
  return result;
}

// A folder whose lock is free is one whose process was killed.
void sweep(const fs::path& parent) {
  std::error_code ignored;
  for (fs::directory_iterator at(parent, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (!at->path().filename().string().starts_with(kPrefix)) continue;
    int lock = -1;
    if (lock_folder(at->path().string(), lock) != Locked::done) continue;
    std::error_code stays;
    fs::remove_all(at->path(), stays);
    close(lock);
  }
}

}  // namespace

WorkFolder::WorkFolder(std::string_view what) : what_(what) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (!error) sweep(parent);
  for (Locked locked = Locked::gone; locked == Locked::gone || locked == Locked::by_another;) {
    path_ = (parent / join(kPrefix, "XXXXXX")).string();
    if (error || !mkdtemp(path_.data()))
      fail(ErrorKind::io, what_, ": a folder to work in cannot be made at ", path_, ": ",
           std::strerror(errno), "; set TMPDIR to a folder that can be written");
    locked = lock_folder(path_, lock_);  // not done: another process swept it before
  }
}

WorkFolder::WorkFolder(std::string_view what, const std::string& path)
    : what_(what), path_(fs::absolute(path).string()), stays_(true) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error)
    fail(ErrorKind::io, what_, ": the folder ", path_, " cannot be made: ", error.message());
  fs::remove(fs::path(path_) / ".log", error);
}

WorkFolder::~WorkFolder() {
  if (stays_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

void WorkFolder::write(std::string_view name, std::string_view text) const {
  const fs::path file = fs::path(path_) / name;
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  std::ofstream out(file, std::ios::binary);
  if (!out.write(text.data(), std::streamsize(text.size())).flush())
    fail(ErrorKind::io, what_, ": cannot write ", file.string(), ": ", std::strerror(errno));
}

std::string WorkFolder::read(std::string_view name) const {
  std::ifstream in(fs::path(path_) / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool WorkFolder::run(const std::vector<std::string>& command) const {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, path_.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, ".log", O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) fail(ErrorKind::io, what_, ": cannot run ", command[0], ": ", std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return true;  // the program reaps its children itself: the result will tell
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace tensorcraft::jit
