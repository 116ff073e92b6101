// SPDX-License-Identifier: Apache-2.0
#pragma once

// File calls of this process that fail, by the errno they give; 0: the call works. They replace the
// C library's in a program that links file_faults.cpp.
namespace tensorcraft::test {

struct FileFaults {
  int flock = 0, write = 0, fsync = 0, rename = 0;
  int write_pause_us = 0;  // after each 4 KiB of a file, so that a kill finds it half written
};
extern FileFaults file_faults;

}  // namespace tensorcraft::test
