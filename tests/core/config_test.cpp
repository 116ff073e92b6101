// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/config.hpp"

#include "tests/support/expect_error.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::expect_error;

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

TEST(Config, HasDefaultsWhereNothingIsSet) {
  const Config c = parse_config(environment({{"HOME", "/home/user"}}));
  EXPECT_EQ(c.cache_dir, "/home/user/.cache/tensorcraft");
  EXPECT_EQ(c.cache_limit_bytes, int64_t(1) << 30);
  EXPECT_EQ(c.device, "");
  EXPECT_EQ(c.nvrtc, "");
  EXPECT_EQ(c.log, LogLevel::warn);
  EXPECT_FALSE(c.allow_tf32);
  EXPECT_EQ(c.num_threads, 0);
  EXPECT_EQ(c.onednn, "");
  EXPECT_EQ(c.gpu_allocator, "pool");
  EXPECT_EQ(c.trace, "");
  EXPECT_FALSE(c.status);
  EXPECT_TRUE(c.jit);
  EXPECT_EQ(c.kernel_record, "");
  EXPECT_EQ(parse_config(environment({})).cache_dir, "");
}

TEST(Config, ReadsEveryVariable) {
  const Config c = parse_config(environment({{"TENSORCRAFT_CACHE_DIR", "/cache"},
                                             {"TENSORCRAFT_DEVICE", "cuda:1"},
                                             {"TENSORCRAFT_NVRTC", "/lib/libnvrtc.so"},
                                             {"TENSORCRAFT_LOG", "debug"},
                                             {"TENSORCRAFT_ALLOW_TF32", "1"},
                                             {"TENSORCRAFT_TRACE", "/tmp/trace.json"},
                                             {"TENSORCRAFT_STATUS", "1"}}));
  EXPECT_EQ(c.cache_dir, "/cache");
  EXPECT_EQ(c.device, "cuda:1");
  EXPECT_EQ(c.nvrtc, "/lib/libnvrtc.so");
  EXPECT_EQ(c.log, LogLevel::debug);
  EXPECT_TRUE(c.allow_tf32);
  EXPECT_EQ(c.trace, "/tmp/trace.json");
  EXPECT_TRUE(c.status);
}

TEST(Config, ReadsEveryKeyOfTheFile) {
  const Config c = parse_config(environment({}),
                                R"({"cache_dir": "/cache", "cache_limit_bytes": 10000000000,
            "device": "cpu", "nvrtc": "x.so", "log": "off", "allow_tf32": true, "num_threads": 3,
            "onednn": "off", "gpu_allocator": "driver", "trace": "t.json",
            "status": true, "jit": "off", "kernel_record": "kernels.txt"})");
  EXPECT_EQ(c.cache_dir, "/cache");
  EXPECT_EQ(c.cache_limit_bytes, 10000000000);
  EXPECT_EQ(c.device, "cpu");
  EXPECT_EQ(c.nvrtc, "x.so");
  EXPECT_EQ(c.log, LogLevel::off);
  EXPECT_TRUE(c.allow_tf32);
  EXPECT_EQ(c.num_threads, 3);
  EXPECT_EQ(c.onednn, "off");
  EXPECT_EQ(c.gpu_allocator, "driver");
  EXPECT_EQ(c.trace, std::filesystem::absolute("t.json"));
  EXPECT_TRUE(c.status);
  EXPECT_FALSE(c.jit);
  EXPECT_EQ(c.kernel_record, std::filesystem::absolute("kernels.txt"));
}

TEST(Config, PrefersTheEnvironmentToTheFile) {
  const std::string file = R"({"log": "info", "device": "cpu"})";
  EXPECT_EQ(parse_config(environment({{"TENSORCRAFT_LOG", "error"}}), file).log, LogLevel::error);
  EXPECT_EQ(parse_config(environment({{"TENSORCRAFT_LOG", ""}}), file).log, LogLevel::info);
}

void expect_bad_variable(const std::string& name, const std::string& value,
                         const std::string& text) {
  expect_error(ErrorKind::value, [&] { parse_config(environment({{name, value}})); }, text);
}

TEST(Config, NamesTheVariableAndWhatItAccepts) {
  expect_bad_variable("TENSORCRAFT_LOG", "loud",
                      "TENSORCRAFT_LOG must be off, error, warn, info or debug, got \"loud\"");
  expect_bad_variable("TENSORCRAFT_DEVICE", "tpu",
                      "TENSORCRAFT_DEVICE must be cpu, cuda, cuda:N or simt, got \"tpu\"");
  expect_bad_variable("TENSORCRAFT_ALLOW_TF32", "yes",
                      "TENSORCRAFT_ALLOW_TF32 must be 1, true, 0 or false in the environment; "
                      "true or false in the file, got \"yes\"");
}

void expect_bad_file(const std::string& file, const std::string& text) {
  expect_error(ErrorKind::value, [&] { parse_config(environment({}), file, "my.json"); }, text);
}

TEST(Config, NamesTheFileAndTheKey) {
  expect_bad_file(R"({"logs": "warn"})",
                  "my.json: there is no key \"logs\"; the keys are cache_dir, cache_limit_bytes, "
                  "device, gpu_allocator, nvrtc, log, allow_tf32, num_threads, onednn, jit, "
                  "kernel_record, trace, status; did "
                  "you mean log?");
  expect_bad_file(R"({"num_threads": "4"})",
                  "my.json: num_threads must be a number of threads, 0 or more, got \"4\"");
  expect_bad_file(R"({"num_threads": -1})",
                  "my.json: num_threads must be a number of threads, 0 or more, got \"-1\"");
  expect_bad_file(R"({"num_threads": 3000000000})",
                  "my.json: num_threads must be a number of threads, 0 or more, got "
                  "\"3000000000\"");
  expect_bad_file(R"({"cache_limit_bytes": 1.5})",
                  "my.json: cache_limit_bytes must be a number of bytes, 0 or more, got 1.5");
  expect_bad_file(R"({"log": 3})", "my.json: log must be off, error, warn, info or debug, got 3");
  expect_bad_file("[]", "my.json must hold one JSON object");
}

TEST(Config, TakesTheHomeFolderForATildeInEveryPath) {
  const auto home = [](const std::string& key) {
    return parse_config(environment({{"HOME", "/home/user"}}), "{\"" + key + "\": \"~/k\"}");
  };
  EXPECT_EQ(home("cache_dir").cache_dir, "/home/user/k");
  EXPECT_EQ(home("nvrtc").nvrtc, "/home/user/k");
  EXPECT_EQ(home("onednn").onednn, "/home/user/k");
  EXPECT_EQ(home("kernel_record").kernel_record, "/home/user/k");
  EXPECT_EQ(home("trace").trace, "/home/user/k");
  const auto folder = [](const char* text) {
    return parse_config(environment({{"HOME", "/home/user"}, {"TENSORCRAFT_CACHE_DIR", text}}))
        .cache_dir;
  };
  EXPECT_EQ(folder("~"), "/home/user");
  EXPECT_EQ(folder("~user"), std::filesystem::absolute("~user"));
  EXPECT_EQ(folder("/a/~/b"), "/a/~/b");
  expect_bad_variable("TENSORCRAFT_CACHE_DIR", "~/k",
                      "TENSORCRAFT_CACHE_DIR is \"~/k\", but there is no home folder: HOME is not "
                      "set");
}

TEST(Config, KeepsARelativePathForTheFolderThatItWasReadIn) {
  const std::filesystem::path here = std::filesystem::current_path();
  const auto read = [](const std::string& key) {
    return parse_config(environment({}), "{\"" + key + "\": \"rel/k\"}");
  };
  EXPECT_EQ(read("cache_dir").cache_dir, here / "rel/k");
  EXPECT_EQ(read("nvrtc").nvrtc, here / "rel/k");
  EXPECT_EQ(read("onednn").onednn, here / "rel/k");
  EXPECT_EQ(read("kernel_record").kernel_record, here / "rel/k");
  EXPECT_EQ(read("trace").trace, here / "rel/k");
  // A name alone is the loader's to find.
  const Config names = parse_config(environment({}), R"({"nvrtc": "a.so", "onednn": "b.so"})");
  EXPECT_EQ(names.nvrtc, "a.so");
  EXPECT_EQ(names.onednn, "b.so");
}

TEST(Config, RefusesAFileOfManyLevelsWithTheLine) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  expect_bad_file("{\n\"log\": " + deep + "}",
                  "my.json:2:71: arrays and objects are nested more than 64 levels deep");
  const std::string few = std::string(20, '[') + std::string(20, ']');
  expect_bad_file("{\"log\": " + few + "}",
                  "my.json: log must be off, error, warn, info or debug, got " + few);
}

TEST(Config, SaysThatAFileIsNotJson) {
  try {
    parse_config(environment({}), "{", "my.json");
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("my.json is not valid JSON: ")) << e.what();
  }
}

TEST(Config, ReadsTheFileThatTheEnvironmentNames) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "tensorcraft_config_test.json";
  std::ofstream(path) << R"({"num_threads": 5})";
  EXPECT_EQ(load_config(environment({{"TENSORCRAFT_CONFIG", path.string()}})).num_threads, 5);
  std::filesystem::remove(path);
  expect_error(
      ErrorKind::not_found,
      [&] { load_config(environment({{"TENSORCRAFT_CONFIG", path.string()}})); },
      "TENSORCRAFT_CONFIG names " + path.string() + ", which cannot be read");
}

TEST(Config, RefusesAFolderInPlaceOfTheFile) {
  expect_error(
      ErrorKind::not_found, [] { load_config(environment({{"TENSORCRAFT_CONFIG", "/"}})); },
      "TENSORCRAFT_CONFIG names /, which cannot be read");
}

TEST(Config, ReadsTheFileThatTheEnvironmentNamesInTheHomeFolder) {
  const std::filesystem::path home = testing::TempDir();
  const std::filesystem::path path = home / "tensorcraft_config_home_test.json";
  std::ofstream(path) << R"({"num_threads": 6})";
  const auto named = environment(
      {{"HOME", home.string()}, {"TENSORCRAFT_CONFIG", "~/" + path.filename().string()}});
  EXPECT_EQ(load_config(named).num_threads, 6);
  std::filesystem::remove(path);
}

TEST(Config, WorksWithoutAFile) {
  EXPECT_EQ(load_config(environment({{"HOME", "/no/such/folder"}})).num_threads, 0);
  EXPECT_EQ(load_config(environment({})).num_threads, 0);
}

TEST(Config, DescribesEverySettingOnce) {
  std::set<std::string_view> keys;
  int variables = 1;  // TENSORCRAFT_CONFIG itself
  for (const Setting& s : settings()) {
    EXPECT_TRUE(keys.insert(s.key).second) << s.key;
    EXPECT_FALSE(s.meaning.empty() || s.accepted.empty() || s.default_text.empty()) << s.key;
    variables += !s.environment.empty();
  }
  EXPECT_EQ(keys.size(), 13u);
  EXPECT_EQ(variables, 8);
}

}  // namespace
}  // namespace tensorcraft
