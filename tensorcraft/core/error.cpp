// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"

namespace tensorcraft {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value:
      return "value";
    case ErrorKind::type:
      return "type";
    case ErrorKind::index:
      return "index";
    case ErrorKind::key:
      return "key";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::out_of_memory:
      return "out_of_memory";
    case ErrorKind::io:
      return "io";
    case ErrorKind::not_found:
      return "not_found";
    case ErrorKind::buffer:
      return "buffer";
    case ErrorKind::cancelled:
      return "cancelled";
    case ErrorKind::timed_out:
      return "timed_out";
    case ErrorKind::compile:
      return "compile";
    case ErrorKind::device_lost:
      return "device_lost";
    case ErrorKind::internal:
      return "internal";
    case ErrorKind::axis:
      return "axis";
    case ErrorKind::kernel_fault:
      return "kernel_fault";
  }
  return "unknown";
}

}  // namespace tensorcraft
