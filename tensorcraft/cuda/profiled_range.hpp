// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft::cuda {

// While one lives, a profiler that waits for it sees what a GPU does, such as ncu and nsys with the
// option that they do not profile from the start. Before its end the device must be synchronised.
// Without a profiler it does nothing.
class ProfiledRange {
 public:
  explicit ProfiledRange(int device);
  ~ProfiledRange();
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  const int device_;
};

}  // namespace tensorcraft::cuda
