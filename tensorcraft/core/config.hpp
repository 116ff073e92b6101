// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tensorcraft {

// Messages of this level and of all before it go to standard error.
enum class LogLevel : uint8_t { off, error, warn, info, debug };
// "off", "error", ...: as the setting is spelled.
std::string_view to_string(LogLevel level);

// The settings of the process. An environment variable wins over the file, which wins over the
// default; settings() says what each one means.
struct Config {
  // A key of the file, by its name.
  std::string cache_dir;
  int64_t cache_limit_bytes = int64_t(1) << 30;
  std::string device;
  std::string gpu_allocator = "pool";
  std::string nvrtc;
  LogLevel log = LogLevel::warn;
  bool allow_tf32 = false;
  int num_threads = 0;
  std::string onednn;
  bool jit = true;
  std::string kernel_record;
  std::string trace;
  bool status = false;
  // No settings of the library's own: PATH, where programs are looked for, and the library of a
  // profiler that started the program.
  std::string search_path, profiler_library;
};

// One row of the documentation.
struct Setting {
  // Text for a reader.
  std::string_view key;          // in the file, and in Config
  std::string_view environment;  // empty if only the file has it
  std::string_view default_text;
  std::string_view accepted;
  std::string_view meaning;
};
// Every setting, in the order of the page.
std::span<const Setting> settings();

// Read once, at the first call. Kind value names the variable or the file and the key of a value
// that is not accepted, or of a key that does not exist; kind not_found if TENSORCRAFT_CONFIG names
// no file.
const Config& config();

// Does what getenv does: null for a variable that is not set.
using Environment = std::function<const char*(const char* name)>;
// The configuration of an environment and the text of a file ("" for none), for tests.
Config parse_config(const Environment& environment, std::string_view file_text = {},
                    std::string_view file_name = "config.json");
// Likewise with the file that the environment names.
Config load_config(const Environment& environment);

}  // namespace tensorcraft
