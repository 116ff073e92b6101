// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// NVRTC, opened at run time. Search order: TENSORCRAFT_NVRTC (a file or folder), beside
// libtensorcraft.so, Python's nvidia packages near it, toolkit folders, the loader's path.
namespace tensorcraft::cuda {

struct NvrtcVersion {
  int major = 0, minor = 0;
  friend auto operator<=>(const NvrtcVersion&, const NvrtcVersion&) = default;
};

// True when a usable NVRTC was found; why it was not is nvrtc_problem().
bool nvrtc_available();
std::string nvrtc_problem();
std::string nvrtc_path();
NvrtcVersion nvrtc_version();
// Architectures NVRTC can compile for, as numbers: 80, 86, 89, 90, ...
std::span<const int> nvrtc_architectures();

struct NvrtcResult {
  bool ok = false;
  std::string image;  // cubin for a real architecture ("sm_90a"), PTX for a virtual one
  std::string log;    // without trailing NULs
};
// One compilation; headers are (name, text). Kind unsupported with
// "NVRTC JIT compiler not available" in the text when there is none.
NvrtcResult nvrtc_compile(const std::string& source, const std::string& name,
                          std::span<const std::pair<const char*, const char*>> headers,
                          std::span<const std::string> options);

}  // namespace tensorcraft::cuda
