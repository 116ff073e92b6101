// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"

// Launches and loads of modules that need memory of the device which an allocator keeps.
namespace tensorcraft::cuda {

// `notice` is called for a device that has no room, and says whether it gave memory back to the
// driver. One for the process.
void on_shortage(bool (*notice)(int device) noexcept);
// Did somebody give memory of the device back?
bool relieve_shortage(int device) noexcept;

// The status of a call of the driver, which is made once more if it finds no room and somebody gave
// memory back.
template <class Call>
int with_relief(int device, const Call& call) {
  const int status = call();
  if (status != kErrorOutOfMemory || !relieve_shortage(device)) [[likely]]
    return status;
  return call();
}

}  // namespace tensorcraft::cuda
