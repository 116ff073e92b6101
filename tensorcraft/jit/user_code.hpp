// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <string_view>

#include <cxxabi.h>

namespace tensorcraft::jit {

// Kind type for the exception that is being handled: "twice: throws int, ...".
[[noreturn]] void refuse_exception(std::string_view name);

// Runs code of a user's own. What it throws reaches the caller; refuse_exception() in place of what
// is no std::exception, which no caller can read.
template <class Code>
void run_user_code(std::string_view name, const Code& code) {
  try {
    code();
  } catch (const std::exception&) {
    throw;
  } catch (const abi::__forced_unwind&) {  // the thread ends
    throw;
  } catch (...) {
    refuse_exception(name);
  }
}

}  // namespace tensorcraft::jit
