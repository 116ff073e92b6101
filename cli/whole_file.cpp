// SPDX-License-Identifier: Apache-2.0
#include "cli/whole_file.hpp"

#include "tensorcraft/core/error.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace tensorcraft::cli {
namespace {

namespace fs = std::filesystem;

bool wrote(const std::string& path, std::string_view text, bool sync) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  const bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                    std::fflush(file) == 0 && (!sync || fsync(fileno(file)) == 0);
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!good) errno = error;
  return good && closed;
}

}  // namespace

void write_whole_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  bool done = false;
  int error = 0;
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    done = wrote(path, text, false);
    error = errno;
  } else {
    fs::path target = fs::weakly_canonical(path, ignored);
    if (ignored) target = path;
    const std::string temporary = target.string() + ".tmp-" + std::to_string(getpid());
    done = wrote(temporary, text, true) && std::rename(temporary.c_str(), target.c_str()) == 0;
    error = errno;
    if (!done) std::remove(temporary.c_str());
  }
  if (!done) fail(ErrorKind::io, path, " cannot be written: ", std::strerror(error));
}

}  // namespace tensorcraft::cli
