// SPDX-License-Identifier: Apache-2.0
// No wrapper without a case, and no kernel that no case runs. Names are found in the text.
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/source.hpp"

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace tensorcraft::test {
namespace {

const std::string kDevice = "tensorcraft/device/", kKernels = "tests/wrappers/kernels/";

// Functions that no kernel here calls, and why.
const std::map<std::string, std::string> kWithoutCase{
    {"atom_inc_u32", "atomic_increment() is this instruction and has a case"},
    {"atom_add_noftz_f16x2", "atomic_add() of two f16 is this instruction and has a case"},
    {"atom_add_noftz_bf16x2", "atomic_add() of two bf16 is this instruction and has a case"},
    {"tma_reduce_inc", "only for unsigned 32-bit elements, and no dtype is that; it is compiled"},
    {"tma_reduce_dec", "only for unsigned 32-bit elements, and no dtype is that; it is compiled"},
    {"flush_subnormal", "exists on the host only, as part of other host bodies"},
    {"one_nan", "exists on the host only, as part of other host bodies"},
    {"identity", "what block_reduce() begins with, which has a case"},
    {"in_pairs", "one thread's arithmetic; tests/device/reduce_test.cpp has it"},
    {"trap_in_debug", "ends the kernel, and only in a build for a debugger"},
    {"element_bytes", "evaluated by the compiler only"},
    {"wgmma_k", "evaluated by the compiler only"},
    {"is_integer", "evaluated by the compiler only"},
    {"is_valid", "evaluated by the compiler only"},
};

std::vector<std::string> files_in(const std::string& folder) {
  const std::string root = std::filesystem::exists(TENSORCRAFT_SOURCE) ? TENSORCRAFT_SOURCE : ".";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/" + folder))
    if (entry.path().extension() == ".cuh")
      files.push_back(folder + entry.path().filename().string());
  return files;
}

// The files whose functions stand for instructions or for what several of them do together.
std::vector<std::string> wrapper_files() {
  std::vector<std::string> files = files_in(kDevice + "ptx/");
  for (const std::string name : {"atomic", "cluster", "copy_ring", "reduce", "swizzle", "wgmma"})
    files.push_back(kDevice + name + ".cuh");
  return files;
}

// Without comments and what is in namespace detail.
std::string code_of(const std::string& path) {
  std::istringstream text(source_text(path));
  std::string code;
  bool detail = false;
  for (std::string line; std::getline(text, line);) {
    detail |= line.starts_with("namespace detail {");
    if (!detail) code += line.substr(0, line.find("//")) + '\n';
    if (line.starts_with("}  // namespace detail")) detail = false;
  }
  return code;
}

// The names of device functions; of kernels those that a case can run.
std::set<std::string> functions_of(const std::string& path, bool kernels) {
  static const std::regex function(R"(TC_(?:HOST_)?DEVICE\s[^;{}()=]*?\b(\w+)\()");
  static const std::regex kernel(R"(\n *TC_DEVICE void (\w+)\(const Params& p\))");
  static const std::regex with_template(
      R"(template <[^;{}]*>\s*TC_DEVICE void \w+\(const Params& p\))");
  std::string code = code_of(path);
  if (kernels) code = std::regex_replace(code, with_template, "");
  std::set<std::string> names;
  const std::sregex_iterator end;
  for (std::sregex_iterator i(code.begin(), code.end(), kernels ? kernel : function); i != end; ++i)
    names.insert((*i)[1]);
  names.erase("operator");
  return names;
}

// Returns the bodies of the kernels, without the heads of their functions.
std::string kernel_bodies() {
  static const std::regex head(R"(TC_DEVICE void \w+\(const Params& p)");
  std::string bodies;
  for (const std::string& path : files_in(kKernels)) bodies += code_of(path);
  return std::regex_replace(bodies, head, "");
}

TEST(Coverage, EveryWrapperHasACaseOrAReason) {
  const std::string bodies = kernel_bodies();
  std::set<std::string> unused_reasons;
  for (const auto& [name, reason] : kWithoutCase) unused_reasons.insert(name);
  size_t count = 0;
  for (const std::string& path : wrapper_files()) {
    const bool is_ptx = path.find("/ptx/") != path.npos;
    for (const std::string& name : functions_of(path, false)) {
      ++count;
      const bool called = std::regex_search(
          bodies,
          std::regex(is_ptx ? "\\bptx::" + name + "\\b" : "\\b" + name + "(<[^;()]*>)?\\("));
      EXPECT_NE(called, kWithoutCase.contains(name))
          << path << ": " << name
          << (called ? " has a case and a reason to have none" : " is called by no kernel here");
      unused_reasons.erase(name);
    }
  }
  EXPECT_GE(count, 150u) << "the functions are no longer found";
  for (const std::string& name : unused_reasons) ADD_FAILURE() << "there is no function " << name;
}

TEST(Coverage, EveryKernelIsRunByACase) {
  std::set<std::string> run;
  for (const Case& c : cases())
    run.insert(kKernels + c.header + c.name.substr(0, c.name.find(':')));
  size_t count = 0;
  for (const std::string& path : files_in(kKernels))
    for (const std::string& name : functions_of(path, true)) {
      ++count;
      EXPECT_TRUE(run.contains(path + name)) << path << ": " << name << " is run by no case";
    }
  EXPECT_GE(count, 150u) << "the kernels are no longer found";
}

}  // namespace
}  // namespace tensorcraft::test
