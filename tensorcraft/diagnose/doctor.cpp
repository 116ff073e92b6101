// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/doctor.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/environment.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/folder.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tensorcraft/op/host/onednn_library.hpp"
#include "tensorcraft/diagnose/python_package.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace tensorcraft::diagnose {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMiB = size_t(1) << 20;
constexpr size_t kLeastFreeBytes = 64 * kMiB;  // a few hundred kernels
// 12.0 to 12.2 refuse the text of every kernel, 12.3 and 12.4 that of wgmma.
constexpr cuda::NvrtcVersion kOldestNvrtc{12, 5};

// The checks share these facts, which several of them need.
struct Patient {
  const DoctorOptions& options;
  bool has_config = false;
  std::optional<Device> gpu;  // the first that can be used
  PythonPackage python;
};

using Check = DoctorCheck (*)(Patient&);

// No GPU is a state to know of, unless the caller needs one.
CheckResult without_gpu(const Patient& p) {
  return p.options.require_gpu ? CheckResult::fail : CheckResult::warn;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string mebibytes(size_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

DoctorCheck check_configuration(Patient& p) {
  config();
  p.has_config = true;
  std::string unknown;
  for (const std::string& one : unknown_variables(environ))
    unknown += (unknown.empty() ? "" : "; ") + one;
  if (!unknown.empty())
    return {"configuration", CheckResult::warn, unknown,
            "correct the name or unset it; tensorcraft help environment has the names"};
  return {"configuration", CheckResult::pass,
          "the environment and the configuration file are valid", ""};
}

DoctorCheck check_driver(Patient& p) {
  if (!cuda::driver())
    return {"driver", without_gpu(p), first_line(cuda::driver_problem()),
            "install the NVIDIA driver, or use this machine's CPU; in a container, start it with "
            "access to the GPU"};
  const int version = cuda::driver_version();
  return {"driver", CheckResult::pass,
          join("supports CUDA ", version / 1000, ".", version % 1000 / 10), ""};
}

DoctorCheck check_device(Patient& p) {
  std::string usable, refused;
  for (int index = 0; index < cuda_device_count(); ++index) {
    try {
      const DeviceInfo& info = device_info(Device::cuda(index));
      if (!p.gpu) p.gpu = info.device;
      usable +=
          join(usable.empty() ? "" : ", ", info.device, " ", info.name, " (", info.arch(), ")");
    } catch (const Error& e) {
      refused += join(refused.empty() ? "" : ", ", "cuda:", index, ": ", first_line(e.what()));
    }
  }
  if (usable.empty() && refused.empty())
    return {"device", without_gpu(p), "no GPU; every operator runs on the CPU",
            cuda::driver() ? "look at nvidia-smi and at CUDA_VISIBLE_DEVICES" : "see the driver"};
  const std::string fix = "choose another with TENSORCRAFT_DEVICE, or cpu";
  if (usable.empty()) return {"device", CheckResult::fail, refused, fix};
  const std::string standard = join("; the default is ", default_device());
  if (!refused.empty())
    return {"device", CheckResult::warn, usable + "; refused: " + refused + standard, fix};
  return {"device", CheckResult::pass, usable + standard, ""};
}

DoctorCheck check_nvrtc(Patient& p) {
  if (!cuda::nvrtc_available())
    return {"NVRTC", p.gpu ? CheckResult::fail : without_gpu(p), first_line(cuda::nvrtc_problem()),
            "pip install nvidia-cuda-nvrtc (no newer than the driver), or set TENSORCRAFT_NVRTC to "
            "libnvrtc.so"};
  const auto known = cuda::nvrtc_architectures();
  const std::string oldest = "sm_" + std::to_string(known.empty() ? 80 : known.front()),
                    newest = "sm_" + std::to_string(known.empty() ? 80 : known.back());
  const std::array<std::string, 1> flags{"--gpu-architecture=" + newest};
  const auto begin = std::chrono::steady_clock::now();
  const cuda::NvrtcResult compiled = cuda::nvrtc_compile(
      "extern \"C\" __global__ void probe(float* x) { *x = 1; }", "probe.cu", {}, flags);
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  const auto version = cuda::nvrtc_version();
  const std::string what = join(version.major, ".", version.minor, " at ", cuda::nvrtc_path());
  if (!compiled.ok)
    return {"NVRTC", CheckResult::fail, what + " does not compile: " + first_line(compiled.log),
            "install it anew; libnvrtc-builtins.so must lie beside it"};
  if (version < kOldestNvrtc)
    return {"NVRTC", p.gpu ? CheckResult::fail : without_gpu(p),
            what + " is older than 12.5, the first that compiles every kernel",
            "install 12.5 or newer; older drivers of its major version run what it compiles"};
  if (cuda::driver_version() > 0 &&
      version.major * 1000 + version.minor * 10 > cuda::driver_version())
    return {"NVRTC", CheckResult::warn,
            what + " is newer than the driver, which may refuse its PTX",
            "install the NVRTC of the driver's own version"};
  return {"NVRTC", CheckResult::pass,
          join(what, "; compiles for GPUs from ", oldest, " to ", newest, ", a probe in ",
               std::lround(elapsed.count()), " ms"),
          ""};
}

DoctorCheck check_cache(Patient&) {
  constexpr const char* kFix = "set TENSORCRAFT_CACHE_DIR to a folder that you own";
  const std::string problem = cache_problem();
  if (!problem.empty()) return {"cache folder", CheckResult::fail, problem, kFix};
  const jit::CacheStat stat = jit::cache_stat();
  return {"cache folder", CheckResult::pass,
          join(stat.folder, " holds ", stat.entries, " kernels, ", mebibytes(stat.bytes), " of ",
               mebibytes(stat.limit_bytes)),
          ""};
}

DoctorCheck check_disk(Patient&) {
  const jit::CacheStat stat = jit::cache_stat();
  fs::path folder = stat.folder;
  std::error_code error;
  while (folder.has_relative_path() && !fs::is_directory(folder, error))
    folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  if (stat.folder.empty() || error)
    return {"disk space", CheckResult::fail, "not known: there is no cache folder",
            "mend the cache folder first"};
  const size_t free = space.available;
  const size_t wanted = stat.limit_bytes > stat.bytes ? stat.limit_bytes - stat.bytes : 0;
  const std::string finding = mebibytes(free) + " free for the cache";
  const std::string fix = "free space there, or set TENSORCRAFT_CACHE_DIR to another disk";
  if (free < kLeastFreeBytes) return {"disk space", CheckResult::fail, finding, fix};
  if (free < wanted)
    return {"disk space", CheckResult::warn, finding + ", less than its limit leaves room for",
            "set cache_limit_bytes lower, or " + fix};
  return {"disk space", CheckResult::pass, finding, ""};
}

DoctorCheck check_onednn(Patient&) {
  constexpr const char* kFix = "pip install onednn-cpu-gomp";
#ifdef TENSORCRAFT_ONEDNN
  if (config().onednn == "off")
    return {"oneDNN", CheckResult::pass, "switched off by the configuration", ""};
  const std::string problem = onednn_problem();
  if (problem.empty())
    return {"oneDNN", CheckResult::pass, host::onednn::library().version_text, ""};
  return {"oneDNN", CheckResult::warn, "products on the CPU take a slower variant: " + problem,
          kFix};
#else
  return {"oneDNN", CheckResult::warn,
          onednn_problem() + ": products on the CPU take a slower variant",
          std::string(kFix) + ", and build the library with onednn-devel-cpu-gomp installed"};
#endif
}

DoctorCheck check_python(Patient& p) {
  p.python = find_python_package();
  if (p.python.interpreter.empty())
    return {"Python package", CheckResult::warn, "there is no python3",
            "install Python to use TensorCraft from it; C++ needs none"};
  if (p.python.version.empty())
    return {"Python package", CheckResult::warn, p.python.interpreter + ": " + p.python.problem,
            "pip install . in the source tree to use it from Python; C++ needs none"};
  return {"Python package", CheckResult::pass, join(p.python.version, " in ", p.python.place), ""};
}

DoctorCheck check_versions(Patient& p) {
  const std::string_view library = version();
  std::string finding = join("library ", library);
  bool equal = true;
  const auto compare = [&](std::string_view what, std::string_view theirs) {
    if (theirs.empty()) return;
    finding += join(", ", what, " ", theirs);
    equal = equal && theirs == library;
  };
  compare("command", p.options.program_version);
  compare("Python package", p.python.version);
  if (equal) return {"versions", CheckResult::pass, finding, ""};
  return {"versions", CheckResult::fail, finding, "install all of one version"};
}

DoctorCheck check_mps(Patient&) {
  std::error_code error;
  const bool active = fs::exists("/tmp/nvidia-mps/control", error);
  return {"MPS", CheckResult::pass,
          active ? "a control daemon is active: processes share a GPU's multiprocessors"
                 : "no control daemon: processes take turns on a GPU",
          ""};
}

// One operator from its arguments to its result: on a GPU that is compiler, cache, driver, memory
// and launch.
DoctorCheck check_operator(Patient& p) {
  const Device device = p.gpu.value_or(Device::cpu());
  const float given[] = {3, 4};
  float got[2] = {};
  Tensor x(DType::float32, {1, 2}, device), y(DType::float32, {1, 2}, device);
  x.copy_from_host(given, sizeof given);
  const TensorView in = x.view(), out = y.view();
  const std::vector<op::Value> values(p.options.probe->description().options.size());
  p.options.probe->run(std::span(&out, 1), {std::span(&in, 1), values});
  y.copy_to_host(got, sizeof got);
  const std::string name(p.options.probe->description().name);
  if (std::abs(got[0] - 0.6f) < 1e-6f && std::abs(got[1] - 0.8f) < 1e-6f)
    return {"operator", CheckResult::pass, join(name, " is right on ", device), ""};
  return {"operator", CheckResult::fail,
          join(name, " of [3, 4] on ", device, " gave [", got[0], ", ", got[1], "]"),
          "report it with the output of tensorcraft doctor --json"};
}

struct Named {
  const char* name;
  Check check;
};
constexpr std::array<Named, 11> kChecks = {{{"configuration", check_configuration},
                                            {"driver", check_driver},
                                            {"device", check_device},
                                            {"NVRTC", check_nvrtc},
                                            {"cache folder", check_cache},
                                            {"disk space", check_disk},
                                            {"oneDNN", check_onednn},
                                            {"Python package", check_python},
                                            {"versions", check_versions},
                                            {"MPS", check_mps},
                                            {"operator", check_operator}}};

DoctorCheck failed(const Patient& p, const Named& named, const std::exception& e) {
  if (named.check == check_configuration)
    return {named.name, CheckResult::fail, first_line(e.what()),
            "correct the value that the message names; tensorcraft help environment has what is "
            "accepted"};
  if (!p.has_config)
    return {named.name, CheckResult::fail, "not known: there is no valid configuration",
            "mend the configuration first"};
  return {named.name, CheckResult::fail, first_line(e.what()), "do what the message says"};
}

}  // namespace

std::string_view to_string(CheckResult result) {
  constexpr std::array<std::string_view, 3> kNames = {"PASS", "WARN", "FAIL"};
  return kNames.at(size_t(result));
}

std::string onednn_problem() {
#ifdef TENSORCRAFT_ONEDNN
  const std::string& reason = host::onednn::library().unavailable_reason;
  return reason.substr(0, reason.find_first_of(";\n"));
#else
  return "this library was built without oneDNN";
#endif
}

std::string cache_problem() {
  jit::CacheFolder folder(config().cache_dir);
  if (folder.path().empty()) return "there is no home folder to keep kernels in";
  const std::string problem = folder.problem();
  if (!problem.empty()) return folder.path() + ": " + problem;
  const std::string name = "probe-" + std::to_string(getpid());
  if (!folder.write(name, std::string(4096, '\0')))
    return join(folder.path(), " cannot be written to (", std::strerror(errno), ")");
  folder.remove(name);
  return {};
}

std::vector<DoctorCheck> run_doctor(const DoctorOptions& options) {
  Patient patient{.options = options, .gpu = {}, .python = {}};
  std::vector<DoctorCheck> all;
  for (const Named& named : kChecks) {
    if (named.check == check_operator && !options.probe) continue;
    try {
      all.push_back(named.check(patient));
    } catch (const std::exception& e) {
      all.push_back(failed(patient, named, e));
    }
  }
  return all;
}

}  // namespace tensorcraft::diagnose
