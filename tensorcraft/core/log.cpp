// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/log.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace tensorcraft {
namespace {

LogLevel configured_level() noexcept {
  try {
    return config().log;
  } catch (...) {  // a bad setting is reported to its reader, not by the log
    return LogLevel::warn;
  }
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::off:
      return spdlog::level::off;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::off;
}

// Its sink has no lock of its own, as none of another library is free in the child of a fork.
spdlog::logger* make_logger() {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
  auto made = std::make_unique<spdlog::logger>("tensorcraft", std::move(sink));
  made->set_level(to_spdlog(configured_level()));
  made->flush_on(spdlog::level::warn);
  return made.release();
}

void write(LogLevel level, std::string_view text) noexcept {
  if (!log_enabled(level)) return;
  try {
    static constinit FirstMade<ForkSafeMutex> mutex;
    static constinit FirstMade<spdlog::logger, make_logger> logger;
    const std::lock_guard lock(*mutex);
    logger->log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
  } catch (...) {  // a message that cannot be written is lost
  }
}

bool first_time(std::string_view key) {
  static constinit FirstMade<ForkSafeMutex> mutex;
  static constinit FirstMade<std::set<std::string, std::less<>>> seen;
  const std::lock_guard lock(*mutex);
  return seen->emplace(key).second;
}

}  // namespace

bool log_enabled(LogLevel level) noexcept {
  return level != LogLevel::off && level <= configured_level();
}

void log_error(std::string_view text) noexcept { write(LogLevel::error, text); }
void log_warn(std::string_view text) noexcept { write(LogLevel::warn, text); }
void log_info(std::string_view text) noexcept { write(LogLevel::info, text); }
void log_debug(std::string_view text) noexcept { write(LogLevel::debug, text); }

void log_warn_once(std::string_view key, std::string_view text) noexcept {
  try {
    if (!log_enabled(LogLevel::warn) || !first_time(key)) return;
  } catch (...) {  // without memory for the key the warning may repeat
  }
  log_warn(text);
}

}  // namespace tensorcraft
