// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/kernel_baseline.hpp"
#include "tests/support/passed_before.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>

// The compile gate: every kernel that a case would launch goes through NVRTC and is held against
// docs/kernels.json, and one of each variant and dtype goes through nvcc if there is one. No GPU is
// needed. What the JIT cache has, and what nvcc passed before, is not compiled again; nor are the
// kernels of a rung whose texts are those that were accepted, but for a few.
namespace tensorcraft::test {
namespace {

struct Kernel {
  op::Step step;
  std::string variant;
  bool may_spill;
};

enum class Keep { all, one_a_dtype };

// The form of a rung that serves several operators: "layer", "rms".
std::string form_of(const jit::KernelKey& key) {
  const std::string fields = jit::config_fields(*key.rung, key.config);
  const size_t at = fields.find("form = ");
  return at == fields.npos ? "" : fields.substr(at, fields.find(',', at) - at);
}
std::string types_of(const jit::KernelKey& key) {
  return form_of(key) + join(key.rung->function, "/", key.num_types, "/") +
         std::string(reinterpret_cast<const char*>(&key.types), sizeof(key.types));
}
std::string config_of(const jit::KernelKey& key) {
  return join(key.rung->function, "/", key.threads, "/", key.min_blocks, "/") +
         std::string(reinterpret_cast<const char*>(key.config.data()), key.config.size());
}

// TC_GATE_ONLY leaves out kernels whose names begin with none of its words: "softmax_,gemm_".
bool is_asked_for(const std::string& name) {
  const char* const only = std::getenv("TC_GATE_ONLY");
  if (!only) return true;
  for (std::string_view rest = only; !rest.empty();) {
    const size_t comma = rest.find(',');
    if (name.starts_with(rest.substr(0, comma))) return true;
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

// The distinct kernels of all cases.
std::vector<Kernel> kernels(const DeviceInfo& device, Keep keep) {
  static const auto cases = all_cases();
  std::vector<Kernel> found;
  std::set<std::string> seen;
  for (const Case& c : cases) {
    for (const auto& row : explain_case(c, device).variants) {
      if (!row.accepted || !row.plan) continue;
      for (const op::Step& step : row.plan->steps()) {
        const jit::KernelKey& key = step.kernel;
        if (!is_asked_for(kernel_name(key))) continue;
        const std::string config = keep == Keep::all ? config_of(key) : "";
        if (!seen.insert(types_of(key) + config).second) continue;
        found.push_back({step,
                         join(c.op->description().name, " ", row.variant.name, " (", c.name, ")"),
                         !row.variant.spills.empty()});
      }
    }
  }
  return found;
}

std::set<std::string> names(const std::vector<Kernel>& kernels) {
  std::set<std::string> all;
  for (const Kernel& kernel : kernels) all.insert(kernel_name(kernel.step.kernel));
  return all;
}

std::string rung_of(const Kernel& kernel) { return rung_name(kernel_name(kernel.step.kernel)); }

// Chooses what a run compiles of the kernels for one architecture.
class Chosen {
 public:
  Chosen(const KernelUses& baseline, std::set<std::string> samples)
      : baseline_(baseline), samples_(std::move(samples)) {}

  // Chooses each Config, each tuple of dtypes, and unknown kernels of a rung whose texts have
  // changed. With TC_TEST_FULL all, so each Config with each of its dtypes.
  bool of_changed_texts(const jit::KernelKey& key) {
    const bool new_types = types_.insert(types_of(key)).second;
    const bool new_config = configs_.insert(config_of(key)).second;
    return is_full_ || new_types || new_config || !baseline_.contains(kernel_name(key));
  }
  // All of a rung were compiled when its texts were accepted: the samples show that the baseline is
  // this compiler's.
  bool of_accepted_texts(const jit::KernelKey& key) const {
    return samples_.contains(kernel_name(key));
  }

 private:
  const bool is_full_ = std::getenv("TC_TEST_FULL") != nullptr;
  const KernelUses& baseline_;
  std::set<std::string> samples_, types_, configs_;
};

// For one architecture the samples are a kernel of each variant and dtype, for others there are
// none.
std::set<std::string> samples(const DeviceInfo& device, Keep keep) {
  if (keep == Keep::one_a_dtype) return {};
  return names(kernels(device, Keep::one_a_dtype));
}

// For each rung a hash of the JIT's keys of its kernels: of the compiler, its options and every
// text it reads.
RungTexts texts_of(const std::vector<Kernel>& all, const std::string& arch) {
  std::map<std::string, std::set<std::string>> keys;
  for (const Kernel& kernel : all)
    keys[rung_of(kernel)].insert(program_hash(kernel.step.kernel, arch));
  RungTexts texts;
  for (const auto& [rung, of_rung] : keys) {
    Sha256 hash;
    for (const std::string& key : of_rung) hash.field(key);
    texts[rung] = hash.hex().substr(0, 16);
  }
  return texts;
}

// Calls `work` for every item on every core.
template <class T>
void for_all(const std::vector<T>& items, const std::function<void(const T&)>& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (size_t item = next++; item < items.size(); item = next++) work(items[item]);
    });
  }
}

// Calls `compile`, which throws what is wrong, for every kernel. False if one failed.
bool compile_all(const std::vector<Kernel>& all, std::string_view arch,
                 const std::function<void(const Kernel&)>& compile) {
  std::atomic<bool> complete = true;
  for_all<Kernel>(all, [&](const Kernel& kernel) {
    try {
      compile(kernel);
    } catch (const std::exception& e) {
      complete = false;
      ADD_FAILURE() << kernel.variant << " for " << arch << ": " << e.what();
    }
  });
  return complete;
}

std::string gate_file(const std::string& name) {
  std::filesystem::create_directories(TENSORCRAFT_GATE_FOLDER);
  return std::string(TENSORCRAFT_GATE_FOLDER) + "/" + name;
}

// This run's measurements go to a file, from which a change is accepted.
class Measurements : public ::testing::Environment {
 public:
  static std::string file() { return gate_file("kernels.json"); }
  static std::string accept() { return "scripts/kernels_table.py --accept " + file(); }

  void add(const std::string& arch, const RungTexts& texts, const MeasuredKernels& measured) {
    all_.texts[arch] = texts;
    for (const auto& [name, kernel] : measured) all_.kernels[arch][name] = kernel.use;
  }
  void keep(const std::string& arch, const std::string& name, const KernelUse& use, bool changed) {
    all_.kernels[arch][name] = use;
    if (changed) ++all_.left_out[arch];
  }
  void TearDown() override {
    if (all_.kernels.empty()) return;
    const auto [major, minor] = cuda::nvrtc_version();
    all_.nvrtc = join(major, ".", minor);
    write_baseline(all_, file());
  }

 private:
  KernelBaseline all_;
};
// GoogleTest owns it.
auto* const measurements = new Measurements;
const auto* const registered = ::testing::AddGlobalTestEnvironment(measurements);

MeasuredKernel measure(const Kernel& kernel, const DeviceInfo& device) {
  const op::KernelReport report = op::report_kernel(kernel.step, device);
  if (report.problem.empty()) return measured_kernel(report, device, kernel.may_spill);
  jit::compile(kernel.step.kernel, report.arch);  // throws the same with the whole log
  fail(ErrorKind::internal, report.problem);
}

bool nvrtc_knows(int architecture) {
  const auto known = cuda::nvrtc_architectures();
  return std::ranges::find(known, architecture) != known.end();
}

void compile_with_nvrtc(const std::string& arch, Keep keep) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const DeviceInfo device = device_info_of_arch(arch);
  const auto [major, minor] = cuda::nvrtc_version();
  const std::string nvrtc = join(major, ".", minor);
  if (!nvrtc_knows(device.compute_capability))
    GTEST_SKIP() << "NVRTC " << nvrtc << " does not know " << arch;

  KernelBaseline baseline = read_baseline(TENSORCRAFT_SOURCE "/docs/kernels.json");
  KernelUses& accepted = baseline.kernels[arch];
  const auto all = kernels(device, keep);
  ASSERT_FALSE(all.empty());
  // Unchanged texts and an unchanged compiler would give what the baseline lists.
  const RungTexts texts = texts_of(all, arch);
  const auto is_known = [&](const Kernel& kernel) {
    const auto of_rung = baseline.texts[arch].find(rung_of(kernel));
    return of_rung != baseline.texts[arch].end() && of_rung->second == texts.at(of_rung->first);
  };
  Chosen chosen(accepted, samples(device, keep));
  std::vector<Kernel> now;
  int unchanged = 0;
  for (const Kernel& kernel : all) {
    const jit::KernelKey& key = kernel.step.kernel;
    const bool known = is_known(kernel);
    unchanged += known;
    if (known ? chosen.of_accepted_texts(key) : chosen.of_changed_texts(key)) now.push_back(kernel);
  }
  const jit::Counters before = jit::counters();
  MeasuredKernels measured;
  std::mutex mutex;
  const bool complete = compile_all(now, arch, [&](const Kernel& kernel) {
    const MeasuredKernel result = measure(kernel, device);
    const std::string name = kernel_name(kernel.step.kernel);
    const std::lock_guard lock(mutex);
    if (!measured.emplace(name, result).second)
      fail(ErrorKind::internal, "two kernels have the name ", name);
  });
  std::cout << all.size() << " kernels for " << arch << ", " << unchanged
            << " of them of texts as in the baseline, " << now.size() << " chosen, "
            << jit::counters().compiles - before.compiles << " compiled now\n";
  if (!complete) return;  // the failures say enough
  measurements->add(arch, texts, measured);
  for (const Kernel& kernel : all) {  // what was left out stays as it was accepted
    const std::string name = kernel_name(kernel.step.kernel);
    if (measured.contains(name)) continue;
    ASSERT_TRUE(accepted.contains(name)) << name << " for " << arch << " is not in the baseline";
    measurements->keep(arch, name, accepted.at(name), !is_known(kernel));
    accepted.erase(name);
  }
  const Findings found = judge(measured, arch, nvrtc, baseline, Measurements::accept());
  for (const std::string& failure : found.failures) ADD_FAILURE() << failure;
  if (nvrtc != baseline.nvrtc)
    std::cout << "The baseline was made with NVRTC " << baseline.nvrtc << ", this is " << nvrtc
              << ", so growth does not fail.\n";
  for (const std::string& note : found.notes) std::cout << "note: " << note << '\n';
}

TEST(CompileGate, EveryConfigBuildsForHopper) { compile_with_nvrtc("sm_90a", Keep::all); }

class CompileGateOthers : public ::testing::TestWithParam<const char*> {};
TEST_P(CompileGateOthers, OneKernelOfEachVariantAndDtypeBuilds) {
  compile_with_nvrtc(GetParam(), Keep::one_a_dtype);
}
INSTANTIATE_TEST_SUITE_P(Architectures, CompileGateOthers,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_100a", "sm_120"));

std::string output_of(const std::string& command) {
  std::string text;
  std::array<char, 256> part;
  FILE* const pipe = popen(command.c_str(), "r");
  while (pipe && std::fgets(part.data(), part.size(), pipe)) text += part.data();
  if (pipe) pclose(pipe);
  return text;
}

// A hash of nvcc's version and the JIT's keys of the kernels, which cover the text of every header.
std::string nvcc_key(const std::string& version, const std::vector<Kernel>& kernels,
                     std::string_view arch) {
  const jit::Toolchain any{.version = {}, .architectures = {90}};
  Sha256 hash;
  hash.field(version);
  for (const Kernel& kernel : kernels)
    hash.field(jit::make_program(kernel.step.kernel, arch, any).key);
  return hash.hex();
}

// Files for the headers of a rung that are no files: those of an expression are made at run time.
void write_generated_headers(const jit::KernelKey& key, const test::TemporaryFolder& folder) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const auto& header : *jit::include_closure(key.rung->header)) {
    const std::filesystem::path file = folder.file(header->name);
    if (std::filesystem::exists(std::filesystem::path(TENSORCRAFT_SOURCE) / header->name) ||
        std::filesystem::exists(file))
      continue;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << header->text;
  }
}

// One file for nvcc with the texts that NVRTC gets of these kernels, which are all of one rung:
// most of what nvcc does, it does once a file.
void write_for_nvcc(const std::vector<Kernel>& kernels, const std::string& file,
                    std::string_view arch) {
  std::ofstream text(file);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const jit::KernelKey& key = kernels[i].step.kernel;
    const std::string entry = jit::entry_name(*key.rung);
    text << "// " << kernels[i].variant << '\n';
    for (const std::string& name : {entry, std::string("kConfig")})
      text << "#define " << name << ' ' << name << '_' << i << '\n';
    text << jit::entry_text(key, arch) << "#undef " << entry << "\n#undef kConfig\n\n";
  }
}

// The kernels of each rung, those first that take longest.
std::vector<std::vector<Kernel>> by_rung(const std::vector<Kernel>& all) {
  std::map<std::string, std::vector<Kernel>> groups;
  for (const Kernel& kernel : all)
    groups[join(kernel.step.kernel.rung->header, " ", kernel.step.kernel.rung->function)].push_back(
        kernel);
  std::vector<std::vector<Kernel>> sorted;
  for (auto& [rung, kernels] : groups) sorted.push_back(std::move(kernels));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::vector<Kernel>::size);
  return sorted;
}

TEST(CompileGate, OneKernelOfEachVariantAndDtypeBuildsWithNvcc) {
  const std::string nvcc = TENSORCRAFT_NVCC;
  if (nvcc.empty()) GTEST_SKIP() << "there is no nvcc";
  const test::TemporaryFolder folder;
  const std::string version = output_of('"' + nvcc + "\" --version");
  PassedBefore passed("nvcc");
  std::atomic<size_t> compiled = 0;
  const auto all = kernels(device_info_of_arch("sm_90a"), Keep::one_a_dtype);
  for_all<std::vector<Kernel>>(by_rung(all), [&](const std::vector<Kernel>& kernels) {
    const std::string key = nvcc_key(version, kernels, "sm_90a");
    if (!passed.contains(key)) {
      compiled += kernels.size();
      const std::string file = folder.file(key);
      write_for_nvcc(kernels, file + ".cu", "sm_90a");
      write_generated_headers(kernels.front().step.kernel, folder);
      const std::string command =
          join('"', nvcc, "\" -cubin -std=c++20 --gpu-architecture=sm_90a -I\"", TENSORCRAFT_SOURCE,
               "\" -I\"", folder.path(), "\" -o \"", file, ".cubin\" \"", file, ".cu\" > \"", file,
               ".log\" 2>&1");
      if (std::system(command.c_str()) != 0)
        return void(ADD_FAILURE() << "nvcc: " << kernels.front().variant
                                  << " and others of its rung: "
                                  << std::ifstream(file + ".log").rdbuf());
    }
    passed.add(key);
  });
  std::cout << all.size() << " kernels with nvcc, " << compiled << " of them compiled now\n";
}

}  // namespace
}  // namespace tensorcraft::test
