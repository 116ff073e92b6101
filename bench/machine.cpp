// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.hpp"

#include "bench/engine.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"

#include <unistd.h>

#include <fstream>

namespace tensorcraft::bench {
namespace {

// Returns what follows `mark` in the first line of a file that has it, without spaces around.
std::string line_after(const char* path, std::string_view mark) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find(mark);
    if (at == line.npos) continue;
    const size_t begin = line.find_first_not_of(" \t:", at + mark.size());
    return begin == line.npos ? "" : line.substr(begin);
  }
  return {};
}

// "580.159.04", if the kernel module says it; else the version of CUDA that the driver serves.
std::string driver_text() {
  const std::string line = line_after("/proc/driver/nvidia/version", "Kernel Module");
  const size_t begin = line.find_first_of("0123456789");
  if (begin != line.npos && line.find('.', begin) != line.npos) {
    for (size_t at = begin; at != line.npos && at < line.size();) {  // a word with a point
      const size_t end = std::min(line.find(' ', at), line.size());
      const std::string word = line.substr(at, end - at);
      if (word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos)
        return word;
      at = line.find_first_not_of(' ', end);
    }
  }
  const int version = cuda::driver_version();
  return join("CUDA ", version / 1000, '.', version % 1000 / 10);
}

}  // namespace

size_t cache_bytes(const DeviceInfo& device) {
  if (device.l2_bytes > 0) return device.l2_bytes;
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return l3 > 0 ? size_t(l3) : size_t(32) << 20;
}

Results describe(const Settings& settings, std::string title) {
  const DeviceInfo& device = device_info(settings.device);
  Results results{std::move(title), Json::object(), Json::object(), Json::object(), {}, {}};
  results.machine["processor"] = line_after("/proc/cpuinfo", "model name");
  if (device.device.is_cuda()) {
    results.machine["gpu"] = device.name;
    results.machine["driver"] = driver_text();
    if (cuda::nvrtc_available()) {
      const cuda::NvrtcVersion nvrtc = cuda::nvrtc_version();
      results.machine["nvrtc"] = join(nvrtc.major, '.', nvrtc.minor);
    }
  }
  results.machine["tensorcraft"] = version();
  results.device = {{"name", device.name},
                    {"arch", device.device.is_cuda() ? device.arch() : "cpu"},
                    {"bandwidth_gbs", device.memory_gb_per_s},
                    {"peak_tflops",
                     {{"float32", device.peak_fp32_tflops},
                      {"bfloat16", device.peak_bf16_tflops},
                      {"float16", device.peak_bf16_tflops}}}};
  const std::string_view method =
      device.device.is_cuda()
          ? "CUDA events around one call, or around a graph of many below 16 MB or 10 us"
          : "wall time";
  results.timing = {{"method", join(method,
                                    "; inputs rotated past the cache unless warm; "
                                    "candidates interleaved at random; medians")},
                    {"data", "standard normal"},
                    {"warmup_s", settings.warmup_s}};
  return results;
}

}  // namespace tensorcraft::bench
