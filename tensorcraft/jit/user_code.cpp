// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/user_code.hpp"

#include "tensorcraft/core/error.hpp"

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

namespace tensorcraft::jit {
namespace {

// The type of the exception that is being handled: "int".
std::string type_of_exception() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (!type) return "an exception of another language";
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr), &std::free);
  return name ? name.get() : type->name();
}

}  // namespace

void refuse_exception(std::string_view name) {
  fail(ErrorKind::type, name, ": throws ", type_of_exception(),
       ", which is no std::exception; throw tensorcraft::Error or a std::runtime_error");
}

}  // namespace tensorcraft::jit
