// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/simt/instance.hpp"
#include "tests/support/simt_cases.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

// Writes the sources of the kernels that are compiled ahead for the emulator (cmake/simt.cmake):
//   write_instances FOLDER held/softmax_0.cpp cases/softmax_0.cpp cases/softmax_1.cpp ...
// held: what the last rung of each operator launches for the calls of all cases, which the library
// holds for machines without a compiler. cases: what else the cases on the emulator launch, for
// the tests, until each rung has all dtypes and every value of its Config that cases have.
// An operator's folder has one file or several of each. The text depends on the cases and the rungs
// alone, so that a compiler cache knows it.
namespace tensorcraft::test {
namespace {

// A kernel, and whether an instrumented library leaves it out.
struct Kernel {
  jit::KernelKey key;
  bool is_plain_only = false;
};
// By the text that calls a kernel; and what is written.
using Kernels = std::map<std::string, Kernel>;
struct Lists {
  Kernels held, cases;
};

constexpr std::string_view kBody = "void body";
// Kernels that read an expression or a semiring as steps include these; their Config says so.
constexpr std::pair<std::string_view, std::string_view> kReaders[] = {
    {"::expression)::interpreted", "tensorcraft/ops/gemm/parts/interpreted_expression.cuh"},
    {"::semiring)::interpreted", "tensorcraft/device/interpreted_semiring.cuh"}};

// Whatever is asked for is there: plans are then made as on a machine without a compiler.
const simt::KnownInstances kEverything([](const simt::Wanted&) -> const simt::Instance* {
  static const simt::Instance any;
  return &any;
});

// The kernel that serves calls of this one.
jit::KernelKey general(jit::KernelKey key) {
  if (key.rung->general) key.config = key.rung->general(key.config);
  return key;
}

// Is the text of all its kernels in files? That of an expression is made when it is called.
bool is_written(const op::Plan& plan) {
  return std::ranges::all_of(plan.steps(), [](const op::Step& step) {
    return std::filesystem::exists(join(TENSORCRAFT_SOURCE, "/", step.kernel.rung->header));
  });
}

// The kernels that serve a plan.
std::vector<jit::KernelKey> kernels_of(const op::Plan& plan) {
  std::vector<jit::KernelKey> keys;
  for (const op::Step& step : plan.steps()) keys.push_back(general(step.kernel));
  return keys;
}

bool is_of_float16(const jit::KernelKey& key) {
  return std::find(key.types.begin(), key.types.begin() + key.num_types, DType::float16) !=
         key.types.begin() + key.num_types;
}

void add(Kernels& kernels, const std::vector<jit::KernelKey>& keys, bool is_drawn = false) {
  for (const jit::KernelKey& key : keys)
    kernels.emplace(jit::host_function(key, kBody), Kernel{key, is_drawn || is_of_float16(key)});
}

// "DType(0), DType(2)"
std::string types_of(const jit::KernelKey& key) {
  std::string text;
  for (int i = 0; i < key.num_types; ++i)
    text += join(i ? ", " : "", "DType(", int(key.types[size_t(i)]), ")");
  return text;
}

// Dtypes and values that are compiled into kernels.
class Known {
 public:
  // Takes note of the values of a kernel that the operator launches; is one of them new?
  bool add(std::string_view op, const jit::KernelKey& key) {
    const jit::Rung& rung = *key.rung;
    bool is_new = known_.insert(join(op, "|", rung.function, "|", types_of(key))).second;
    for (size_t i = 0; i < rung.fields.size(); ++i) {
      const std::string value = jit::config_fields(rung, key.config, uint64_t(1) << i);
      is_new |= known_.insert(join(rung.function, "|", value)).second;
    }
    return is_new;
  }

 private:
  std::set<std::string> known_;
};

Kernels held(const std::vector<Case>& cases) {
  Kernels kernels;
  for (const Case& c : cases) {
    const op::Considered last = explain_case(c, device_info(Device::simt())).variants.back();
    if (last.accepted) add(kernels, kernels_of(*last.plan));
  }
  return kernels;
}

// The launches of one variant for a case.
struct Launched {
  const Case* by;
  std::vector<jit::KernelKey> kernels;
};

std::vector<Launched> launched_by(const std::vector<Case>& cases) {
  std::vector<Launched> all;
  for (const Case& c : cases) {
    const ImaginedCall call(c, Device::simt());
    for (const op::Plan& plan : plans_on_simt(c, call.outputs, call.arguments()))
      if (is_written(plan)) all.push_back({&c, kernels_of(plan)});
  }
  return all;
}

// All plans of cases that fix a Config, of other cases those with something new, and all of drawn
// ones.
Kernels of_cases(const std::vector<Case>& cases, const std::vector<Case>& drawn) {
  std::vector<Launched> all = launched_by(cases);
  // Instrumented libraries have no float16: what it shares with the others is theirs.
  std::ranges::stable_partition(
      all, [](const Launched& l) { return std::ranges::none_of(l.kernels, is_of_float16); });
  Kernels kernels;
  Known known;
  for (const Launched& l : all) {
    bool is_new = l.by->has_tag("fixed");
    for (const jit::KernelKey& key : l.kernels)
      is_new |= known.add(l.by->op->description().name, key);
    if (is_new) add(kernels, l.kernels);
  }
  for (const Launched& l : launched_by(drawn)) add(kernels, l.kernels, true);
  return kernels;
}

Lists collect() {
  std::vector<Case> all = all_cases();
  const std::vector<Case> small = simt_cases();
  all.insert(all.end(), small.begin(), small.end());
  Lists lists{held(all), of_cases(small, usual_drawn_cases())};
  for (const auto& [text, kernel] : lists.held) lists.cases.erase(text);
  return lists;
}

std::string row(const jit::KernelKey& key, const std::string& scope) {
  const bool has_config = !key.rung->config.empty();
  return join("    {\"", key.rung->function, "\", {", types_of(key), "}, ", key.num_types, ", ",
              has_config ? join("config_bytes(", scope, "::kConfig)") : std::string("{}"), ", ",
              scope, "::body},\n");
}

std::string source(std::vector<std::pair<std::string, Kernel>> kernels) {
  std::ranges::stable_sort(kernels, {}, [](const auto& k) { return k.second.key.rung->function; });
  std::set<std::string> headers;
  std::string bodies, rows;
  size_t count = 0;
  for (const auto& [text, kernel] : kernels) {
    headers.insert(kernel.key.rung->header);
    for (const auto& [words, header] : kReaders)
      if (text.find(words) != text.npos) headers.insert(std::string(header));
    const std::string scope = join("k", count++);
    const bool is_left_out = kernel.is_plain_only;
    const char* const begin = is_left_out ? "#if !defined(TENSORCRAFT_SIMT_INSTRUMENTED)\n" : "";
    const char* const end = is_left_out ? "#endif\n" : "";
    bodies += join(begin, "namespace ", scope, " {\n", text, "}\n", end);
    rows += join(begin, row(kernel.key, scope), end);
  }
  std::string includes;
  for (const std::string& header : headers) includes += join("#include \"", header, "\"\n");
  return join("// Written by tests/support/write_instances.cpp\n",
              "#include \"tensorcraft/device/host.h\"\n",
              "#include \"tensorcraft/device/host_async.h\"\n",
              "#include \"tensorcraft/simt/instance.hpp\"\n\n",
              "#pragma GCC visibility push(hidden)  // nobody else calls a kernel\n", includes,
              "#pragma GCC visibility pop\n", "\nnamespace tensorcraft {\nnamespace {\n\n", bodies,
              "\nconst simt::Instance kInstances[] = {\n    {},\n", rows, "};\n\n",
              "const simt::KnownInstances kKnown([](const simt::Wanted& wanted) {\n",
              "  return simt::find_in(kInstances, wanted);\n});\n\n}  // namespace\n",
              "}  // namespace tensorcraft\n");
}

// A file whose content is new; others keep their time, and are not compiled again.
void write(const std::filesystem::path& path, const std::string& text) {
  std::ifstream known(path);
  if (known && std::string(std::istreambuf_iterator<char>(known), {}) == text) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path);
  if (!(out << text).flush()) fail(ErrorKind::io, path.string(), " cannot be written");
}

// A number that a kernel's text has in every process and on every machine.
size_t number_of(std::string_view text) {
  return std::stoul(sha256_hex(text).substr(0, 8), nullptr, 16);
}

// The files of one list, "cases/softmax_0.cpp", by the operator's folder.
void write_list(const std::filesystem::path& folder, const std::string& list,
                const Kernels& kernels, const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::string& name : names)
    if (name.starts_with(list)) {
      const std::string stem = std::filesystem::path(name).stem().string();
      files[stem.substr(0, stem.rfind('_'))].push_back(name);
    }
  std::map<std::string, std::vector<std::pair<std::string, Kernel>>> kernels_of;
  for (const auto& kernel : kernels) {
    const auto& of_folder = files[kernel.second.key.rung->op];
    if (of_folder.empty())
      fail(ErrorKind::value, "write_instances: no file for rungs of ", kernel.second.key.rung->op);
    kernels_of[of_folder[number_of(kernel.first) % of_folder.size()]].push_back(kernel);
  }
  for (const auto& [op, of_folder] : files)
    for (const std::string& name : of_folder) write(folder / name, source(kernels_of[name]));
  std::printf("%s: %zu kernels\n", list.c_str(), kernels.size());
}

int run(const std::vector<std::string>& words) try {
  if (words.size() < 2)
    fail(ErrorKind::value, "usage: write_instances FOLDER FILE...; see the head of its source");
  const Lists lists = collect();
  const std::vector<std::string> names(words.begin() + 1, words.end());
  write_list(words[0], "held", lists.held, names);
  write_list(words[0], "cases", lists.cases, names);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

}  // namespace
}  // namespace tensorcraft::test

int main(int argc, char** argv) { return tensorcraft::test::run({argv + 1, argv + argc}); }
