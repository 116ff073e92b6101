// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace tensorcraft {

// Starts a thread of the library's that `who` cannot do without: kind out_of_memory, with the
// remedy in its text, if the system has no more.
template <class Work>
std::jthread start_thread(std::string_view who, std::string_view remedy, Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    fail(ErrorKind::out_of_memory, who, ": the system starts no further thread (", error.what(),
         "); ", remedy);
  }
}

}  // namespace tensorcraft
