// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/module.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

namespace tensorcraft::jit {
namespace {

using test::expect_error, test::expect_error_with;

constexpr const char* kText = R"(
#include "tensorcraft/core/tensor_matcher.hpp"
#include "factor.hpp"
#include <string>
namespace mine {
template <int factor, bool checked>
double scale(const tensorcraft::TensorView& y, const tensorcraft::TensorView& x, float a, long n) {
  tensorcraft::SymbolicSize size("n");
  tensorcraft::TensorMatcher({size}).with_dtype<float>().verify(y, "scale", "y").verify(x, "scale", "x");
  for (long i = 0; i < n; ++i) y.data_as<float>()[i] = a * factor * kFactor * x.data_as<float>()[i];
  return double(n) * kFactor;
}
int length(std::string_view text, bool twice) { return int(text.size()) * (twice ? 2 : 1); }
void nothing(signed char) {}
}
)";

class HostModule : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_host_compiler(config().search_path)) GTEST_SKIP() << "no C++ compiler on PATH";
    before_ = module_counters();
    spec_ = {.markers = {"scale", "3"},
             .cpp_files = {folder_.write("scale.cpp", kText)},
             .cpp_wrappers = {{"scale", "mine::scale<3, true>"},
                              {"length", "mine::length"},
                              {"nothing", "mine::nothing"}},
             .extra_include_paths = {TC_SOURCE}};
    factor("2");
  }
  void factor(const std::string& value) {
    folder_.write("factor.hpp", "constexpr int kFactor = " + value + ";\n");
  }
  long compiles() const { return module_counters().compiles - before_.compiles; }
  long disk_hits() const { return module_counters().disk_hits - before_.disk_hits; }

  const test::TemporaryFolder folder_;
  ModuleSpec spec_;
  ModuleCounters before_;
};

TEST_F(HostModule, CallsWhatAFileExports) {
  const auto module = load_module(spec_);
  EXPECT_EQ(module->name(), "tensorcraft_jit_scale_3");
  EXPECT_EQ(module->exports(), (std::vector<std::string>{"length", "nothing", "scale"}));
  std::vector<float> x = {1, 2, 3}, y(3);
  const std::vector<ExportValue> arguments = {TensorView(y.data(), DType::float32, {3}),
                                              TensorView(x.data(), DType::float32, {3}), 0.5,
                                              int64_t(3)};
  EXPECT_EQ(std::get<double>(module->call("scale", arguments)), 6);
  EXPECT_EQ(y, (std::vector<float>{3, 6, 9}));
  const std::vector<ExportValue> text = {std::string_view("four"), true};
  EXPECT_EQ(std::get<int64_t>(module->call("length", text)), 8);
  EXPECT_EQ(module->call("nothing", std::vector<ExportValue>{int64_t(-7)}).index(), 0u);
}

TEST_F(HostModule, RefusesArgumentsInWords) {
  const auto module = load_module(spec_);
  const auto call = [&](const char* name, std::vector<ExportValue> arguments) {
    return [=] { module->call(name, arguments); };
  };
  expect_error(ErrorKind::type, call("length", {true}), "length: takes 2 arguments, got 1");
  expect_error(ErrorKind::type, call("length", {int64_t(1), true}),
               "length: argument 0 must be a text, got an int");
  expect_error(ErrorKind::type, call("length", {std::string_view("a"), 1.5}),
               "length: argument 1 must be a bool, got a float");
  expect_error(ErrorKind::value, call("nothing", {int64_t(200)}),
               "nothing: argument 0 is 200, which its type in C++, 1 bytes, does not hold");
  expect_error(ErrorKind::key, call("lenght", {}),
               "tensorcraft_jit_scale_3 exports no lenght; did you mean length?");
  // An exception of the function becomes an Error of the library.
  std::vector<float> x(3), y(2);
  expect_error_with(ErrorKind::value,
                    "scale: x: Size mismatch for shape#0('n'): expected 2 but got 3",
                    call("scale", {TensorView(y.data(), DType::float32, {2}),
                                   TensorView(x.data(), DType::float32, {3}), 1.0, int64_t(1)}));
}

TEST_F(HostModule, IsCompiledOnceForEachContent) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { load_module(spec_); });
  for (std::thread& t : threads) t.join();
  EXPECT_LE(compiles(), 1);
  const long first = compiles();
  clear_modules();
  const auto same = load_module(spec_);
  EXPECT_EQ(compiles(), first);
  EXPECT_EQ(load_module(spec_), same);
  factor("5");  // a header that the file reaches
  const auto other = load_module(spec_);
  EXPECT_EQ(compiles(), first + 1);
  std::vector<float> x = {1}, y(1);
  const std::vector<ExportValue> arguments = {TensorView(y.data(), DType::float32, {1}),
                                              TensorView(x.data(), DType::float32, {1}), 1.0,
                                              int64_t(1)};
  EXPECT_EQ(std::get<double>(other->call("scale", arguments)), 5);
  EXPECT_EQ(std::get<double>(same->call("scale", arguments)), 2);
}

TEST_F(HostModule, WhatNoCallerCanReadIsNamed) {
  spec_.cpp_files = {folder_.write("throws.cpp",
                                   "#include <stdexcept>\n"
                                   "struct Mine {};\nvoid f() { throw Mine(); }\n"
                                   "void g() { throw std::logic_error(\"read\"); }\n")};
  spec_.cpp_wrappers = {{"f", "f"}, {"g", "g"}};
  const auto module = load_module(spec_);
  expect_error_with(ErrorKind::type, "f: throws Mine, which is no std::exception",
                    [&] { module->call("f", {}); });
  EXPECT_THROW(module->call("g", {}), std::logic_error);
}

TEST_F(HostModule, OneUnusedForLongestIsForgottenAndItsUsersKeepIt) {
  set_module_limit(1);
  const auto module = load_module(spec_);
  const std::weak_ptr<const Module> seen = module;
  auto other = spec_;
  other.markers = {"other"};
  const std::weak_ptr<const Module> unused = load_module(other);
  EXPECT_FALSE(unused.expired());
  EXPECT_NE(load_module(spec_), module) << "loaded again, from disk";
  EXPECT_TRUE(unused.expired());
  EXPECT_EQ(std::get<int64_t>(
                module->call("length", std::vector<ExportValue>{std::string_view("four"), true})),
            8);
  set_module_limit(256);
}

TEST_F(HostModule, TheCommandHasTheFlags) {
  spec_.extra_cflags = {"-DMINE=1"};
  spec_.extra_ldflags = {"-lm"};
  spec_.build_directory = folder_.path() + "/kept";
  const auto module = load_module(spec_);
  ASSERT_EQ(module->commands().size(), 2u);
  EXPECT_NE(module->commands()[0].find(" -std=c++20 -O3 -DMINE=1 -fPIC -I"), std::string::npos)
      << module->commands()[0];
  EXPECT_TRUE(module->commands()[1].ends_with(" -o tensorcraft_jit_scale_3.so -lm"))
      << module->commands()[1];
  EXPECT_TRUE(std::filesystem::exists(spec_.build_directory + "/tensorcraft_jit_scale_3.so"));
}

TEST_F(HostModule, TheErrorOfACompileHasTheUsersLine) {
  spec_.cpp_files = {folder_.write("wrong.cpp", "int f(int n) {\n  return n + foo;\n}\n")};
  spec_.cpp_wrappers = {{"f", "f"}};
  for (const char* part : {"tensorcraft_jit_scale_3 does not compile",
                           "wrong.cpp:2:", "return n + foo;", "-std=c++20 -O3"})
    expect_error_with(ErrorKind::compile, part, [&] { load_module(spec_); });
}

TEST(Module, WrapsFilesByAbsolutePathAndALineForEachExport) {
  const std::vector<std::string> files = {"/a/b/../mine.cu"};
  const std::vector<ModuleWrapper> wrappers = {{"run", "Mine<128, 4>::run"}, {"stop", "stop"}};
  EXPECT_EQ(wrapper_text(files, wrappers),
            "#include \"tensorcraft/jit/export.hpp\"\n"
            "#include \"/a/mine.cu\"\n"
            "TC_EXPORT(run, Mine<128, 4>::run);\n"
            "TC_EXPORT(stop, stop);\n");
  EXPECT_EQ(module_name({.markers = {"a", "128", "true"}}), "tensorcraft_jit_a_128_true");
}

TEST(Module, RefusesWhatNoCompilerShouldSee) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("a.cpp", "void f() {}\n");
  const auto refuse = [](ErrorKind kind, const ModuleSpec& spec, const std::string& text) {
    expect_error(kind, [&] { load_module(spec); }, text);
  };
  refuse(ErrorKind::value, {}, "load_jit: a module needs a name: load_jit(\"my_kernel\", ...)");
  refuse(ErrorKind::not_found, {.markers = {"a"}, .cpp_files = {"/nowhere.cpp"}},
         "load_jit: there is no file \"/nowhere.cpp\"");
  refuse(
      ErrorKind::value, {.markers = {"a"}, .cpp_files = {file}},
      "load_jit: tensorcraft_jit_a exports nothing; give cpp_wrappers or cuda_wrappers, pairs of "
      "a name and a function");
  refuse(ErrorKind::value, {.markers = {"a"}, .cpp_wrappers = {{"f", "f"}}},
         "load_jit: cpp_wrappers are given and no cpp_files");
  refuse(ErrorKind::value,
         {.markers = {"a"}, .cpp_files = {file}, .cpp_wrappers = {{"f", "f"}, {"f", "g"}}},
         "load_jit: f is exported twice");
  refuse(ErrorKind::value,
         {.markers = {"a"}, .cpp_files = {file}, .cpp_wrappers = {{"class", "f"}}},
         "load_jit: 'class' is no name of an export; use letters, digits and _");
  refuse(ErrorKind::value,
         {.markers = {"a"}, .cpp_files = {file}, .cpp_wrappers = {{"f", "f;\nint g"}}},
         "load_jit: f: 'f;\nint g' is no function; write it as C++ does, \"MyKernel<256>::run\"");
}

}  // namespace
}  // namespace tensorcraft::jit
