// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/config.hpp"

#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/environment.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/json_depth.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/core/to_number.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>

#include <unistd.h>

namespace tensorcraft {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> kLogLevels = {"off", "error", "warn", "info", "debug"};

constexpr std::array<Setting, 13> kSettings = {{
    {"cache_dir", "TENSORCRAFT_CACHE_DIR", "~/.cache/tensorcraft", "a folder",
     "Where compiled kernels are kept between processes."},
    {"cache_limit_bytes", "", "1073741824", "a number of bytes, 0 or more",
     "The size at which the oldest compiled kernels are removed."},
    {"device", "TENSORCRAFT_DEVICE", "the first GPU, else cpu", "cpu, cuda, cuda:N or simt",
     "The device that computes host arrays."},
    {"gpu_allocator", "", "pool", "pool or driver",
     "Where GPU memory of tensors comes from: the library's pool, or each time from the driver."},
    {"nvrtc", "TENSORCRAFT_NVRTC", "searched for", "the path of libnvrtc.so",
     "The NVRTC library that compiles kernels."},
    {"log", "TENSORCRAFT_LOG", "warn", "off, error, warn, info or debug",
     "What is written to standard error."},
    {"allow_tf32", "TENSORCRAFT_ALLOW_TF32", "0",
     "1, true, 0 or false in the environment; true or false in the file",
     "Whether float32 products and convolutions may use TF32 on tensor cores."},
    {"num_threads", "", "0", "a number of threads, 0 or more",
     "Threads of the CPU operators; 0 means every core the process may use, at most its "
     "container's CPU quota rounded up."},
    {"onednn", "", "searched for", "the path of libdnnl.so, or off",
     "The oneDNN library of the CPU operators."},
    {"jit", "", "on", "on or off",
     "Whether kernels that are in no cache are compiled; off: such a call fails, and NVRTC is not "
     "needed."},
    {"kernel_record", "", "none", "the path of a file",
     "Where the kernels that the process loads are noted, for `tensorcraft cache export "
     "--recorded`."},
    {"trace", "TENSORCRAFT_TRACE", "none", "the path of a file",
     "Where the calls of the process are written with the time that each takes on its device, for "
     "a "
     "trace viewer; `tensorcraft trace` sets it."},
    {"status", "TENSORCRAFT_STATUS", "0",
     "1, true, 0 or false in the environment; true or false in the file",
     "Whether the process tells `tensorcraft top` of its memory and schedulers."},
}};

bool is_flag(std::string_view key) { return key == "allow_tf32" || key == "status"; }

bool is_whole_number(std::string_view key) {
  return key == "cache_limit_bytes" || key == "num_threads";
}

// A value with the words that an error names it by.
struct Given {
  const Setting& setting;
  std::string text;
  std::string where;  // "TENSORCRAFT_LOG" or "config.json: log"
  std::string home;   // the home folder; empty if there is none
};

[[noreturn]] void fail_value(const Given& given) {
  fail(ErrorKind::value, given.where, " must be ", given.setting.accepted, ", got \"", given.text,
       '"');
}

LogLevel parse_log(const Given& given) {
  for (size_t i = 0; i < kLogLevels.size(); ++i)
    if (kLogLevels[i] == given.text) return LogLevel(i);
  fail_value(given);
}

bool parse_flag(const Given& given) {
  if (given.text == "1" || given.text == "true") return true;
  if (given.text == "0" || given.text == "false") return false;
  fail_value(given);
}

int64_t parse_number(const Given& given, int64_t largest) {
  const auto value = to_number<int64_t>(given.text);
  if (!value || *value < 0 || *value > largest) fail_value(given);
  return *value;
}

std::string parse_device_name(const Given& given) {
  try {
    parse_device(given.text);
  } catch (const Error&) {
    fail_value(given);
  }
  return given.text;
}

std::string parse_allocator(const Given& given) {
  if (given.text != "pool" && given.text != "driver") fail_value(given);
  return given.text;
}

bool parse_switch(const Given& given) {
  if (given.text != "on" && given.text != "off") fail_value(given);
  return given.text == "on";
}

// With the home folder in the place of "~".
std::string expanded(const std::string& path, const std::string& where, const std::string& home) {
  if (path != "~" && !path.starts_with("~/")) return path;
  if (home.empty())
    fail(ErrorKind::value, where, " is \"", path,
         "\", but there is no home folder: HOME is not set");
  return home + path.substr(1);
}

// A library that is named without a folder is found by the loader.
bool is_name_for_loader(std::string_view key, const std::string& text) {
  std::error_code ignored;
  if (text.find('/') != text.npos) return false;
  return key == "onednn" || (key == "nvrtc" && !std::filesystem::is_directory(text, ignored));
}

// Relative to the folder that the process is in now, which it may leave.
std::string parse_path(const Given& given) {
  if (is_name_for_loader(given.setting.key, given.text)) return given.text;
  const std::string path = expanded(given.text, given.where, given.home);
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

void apply(Config& config, const Given& given) {
  const std::string_view key = given.setting.key;
  if (key == "cache_dir") config.cache_dir = parse_path(given);
  if (key == "cache_limit_bytes")
    config.cache_limit_bytes = parse_number(given, std::numeric_limits<int64_t>::max());
  if (key == "device") config.device = parse_device_name(given);
  if (key == "gpu_allocator") config.gpu_allocator = parse_allocator(given);
  if (key == "nvrtc") config.nvrtc = parse_path(given);
  if (key == "log") config.log = parse_log(given);
  if (key == "allow_tf32") config.allow_tf32 = parse_flag(given);
  if (key == "num_threads")
    config.num_threads = int(parse_number(given, std::numeric_limits<int>::max()));
  if (key == "onednn") config.onednn = parse_path(given);
  if (key == "jit") config.jit = parse_switch(given);
  if (key == "kernel_record") config.kernel_record = parse_path(given);
  if (key == "trace") config.trace = parse_path(given);
  if (key == "status") config.status = parse_flag(given);
}

// The variable's text; a variable that is set but empty counts as not set.
std::string get(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

std::string default_cache_dir(const Environment& environment) {
  const std::string base = get(environment, "XDG_CACHE_HOME");
  if (base.starts_with('/')) return base + "/tensorcraft";
  const std::string home = get(environment, "HOME");
  return home.empty() ? "" : home + "/.cache/tensorcraft";
}

const Setting& find_setting(std::string_view key, std::string_view file_name) {
  std::string known;
  std::vector<std::string_view> keys;
  for (const Setting& setting : kSettings) {
    if (setting.key == key) return setting;
    keys.push_back(setting.key);
    known += (known.empty() ? "" : ", ") + std::string(setting.key);
  }
  fail(ErrorKind::value, file_name, ": there is no key \"", key, "\"; the keys are ", known,
       did_you_mean(key, keys));
}

// The text of a JSON value of the setting's type, so that file and environment share one parser.
std::string text_of(const Setting& setting, const json& value, std::string_view file_name) {
  const bool fits = is_flag(setting.key)           ? value.is_boolean()
                    : is_whole_number(setting.key) ? value.is_number_integer()
                                                   : value.is_string();
  if (!fits)
    fail(ErrorKind::value, file_name, ": ", setting.key, " must be ", setting.accepted, ", got ",
         value.dump());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void apply_file(Config& config, std::string_view text, std::string_view file_name,
                const std::string& home) {
  check_json_depth(text, file_name);
  json file;
  try {
    file = json::parse(text);
  } catch (const json::exception& e) {
    fail(ErrorKind::value, file_name, " is not valid JSON: ", e.what());
  }
  if (!file.is_object()) fail(ErrorKind::value, file_name, " must hold one JSON object");
  for (const auto& [key, value] : file.items()) {
    const Setting& setting = find_setting(key, file_name);
    apply(config, {setting, text_of(setting, value, file_name), join(file_name, ": ", key), home});
  }
}

}  // namespace

std::string_view to_string(LogLevel level) { return kLogLevels.at(size_t(level)); }

std::span<const Setting> settings() { return kSettings; }

Config parse_config(const Environment& environment, std::string_view file_text,
                    std::string_view file_name) {
  Config config;
  config.cache_dir = default_cache_dir(environment);
  config.search_path = get(environment, "PATH");
  config.profiler_library = get(environment, "NVTX_INJECTION64_PATH");
  const std::string home = get(environment, "HOME");
  if (!file_text.empty()) apply_file(config, file_text, file_name, home);
  for (const Setting& setting : kSettings) {
    if (setting.environment.empty()) continue;
    const std::string name(setting.environment), text = get(environment, name.c_str());
    if (!text.empty()) apply(config, {setting, text, name, home});
  }
  return config;
}

Config load_config(const Environment& environment) {
  std::string path = get(environment, "TENSORCRAFT_CONFIG");
  const bool named = !path.empty();
  const std::string home = get(environment, "HOME");
  if (named)
    path = expanded(path, "TENSORCRAFT_CONFIG", home);
  else if (!home.empty())
    path = home + "/.config/tensorcraft/config.json";
  std::ifstream file(path);
  std::error_code ignored;  // a folder can be opened, but not read
  if (!file || std::filesystem::is_directory(path, ignored)) {
    if (named)
      fail(ErrorKind::not_found, "TENSORCRAFT_CONFIG names ", path, ", which cannot be read");
    return parse_config(environment);
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_config(environment, text, path);
}

const Config& config() {
  static constinit FirstMade<const Config, [] { return new Config(load_config(::getenv)); }> one;
  const Config& loaded = *one;
  // The log asks for the level, so the warnings come when that is known.
  static std::atomic<bool> warned = false;
  if (!warned.load(std::memory_order_relaxed) && !warned.exchange(true))
    for (const std::string& warning : unknown_variables(environ)) log_warn(warning);
  return loaded;
}

}  // namespace tensorcraft
