// SPDX-License-Identifier: Apache-2.0
#include "tests/support/file_faults.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tensorcraft::test {

FileFaults file_faults;

namespace {

bool fails(int error) {
  if (error != 0) errno = error;
  return error != 0;
}

bool is_file(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace
}  // namespace tensorcraft::test

using tensorcraft::test::fails;
using tensorcraft::test::file_faults;

extern "C" {

int flock(int file, int operation) {
  return fails(file_faults.flock) ? -1 : int(syscall(SYS_flock, file, operation));
}

// A full disk takes a part before it takes nothing; pipes and terminals are not on it.
ssize_t write(int file, const void* bytes, size_t count) {
  if (file_faults.write != 0 && tensorcraft::test::is_file(file)) {
    if (count > 4096) return syscall(SYS_write, file, bytes, count / 2);
    errno = file_faults.write;
    return -1;
  }
  if (file_faults.write_pause_us > 0 && count > 4096 && tensorcraft::test::is_file(file)) {
    count = 4096;
    usleep(useconds_t(file_faults.write_pause_us));
  }
  return syscall(SYS_write, file, bytes, count);
}

int fsync(int file) { return fails(file_faults.fsync) ? -1 : int(syscall(SYS_fsync, file)); }

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return fails(file_faults.rename)
             ? -1
             : int(syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}

}  // extern "C"
