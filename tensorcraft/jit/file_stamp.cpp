// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/file_stamp.hpp"

#include <ctime>

#include <sys/stat.h>

namespace tensorcraft::jit {
namespace {

int64_t nanoseconds(const timespec& time) {
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Without the path, which a look need not copy.
bool look(const std::string& path, FileStamp& stamp) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return false;
  stamp.device = status.st_dev;
  stamp.number = status.st_ino;
  stamp.bytes = status.st_size;
  stamp.modified_ns = nanoseconds(status.st_mtim);
  stamp.changed_ns = nanoseconds(status.st_ctim);
  return true;
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  constexpr int64_t kSteps = 2'100'000'000;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  FileStamp stamp{.path = path};
  if (!look(path, stamp)) return std::nullopt;
  if (stamp.changed_ns > nanoseconds(now) - kSteps) return std::nullopt;
  return stamp;
}

bool holds(const FileStamp& stamp) {
  FileStamp now;
  return look(stamp.path, now) && now.device == stamp.device && now.number == stamp.number &&
         now.bytes == stamp.bytes && now.modified_ns == stamp.modified_ns &&
         now.changed_ns == stamp.changed_ns;
}

}  // namespace tensorcraft::jit
