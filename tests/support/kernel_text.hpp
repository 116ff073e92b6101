// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/source.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

// Kernels of tests/simt/ as NVRTC compiles them: tests/CMakeLists.txt puts their text into the
// program, which finds it wherever it runs.
namespace tensorcraft::jit {
extern const EmbeddedHeader kTestKernels[];
extern const int kNumTestKernels;
}  // namespace tensorcraft::jit

namespace tensorcraft::test {

// `entries` is text after the include of tests/simt/NAME. Kind not_found for a name that
// tests/CMakeLists.txt does not list.
inline cuda::NvrtcResult compile_for_hopper(const std::string& name, const std::string& entries) {
  const std::string path = "tests/simt/" + name;
  for (const auto& text : std::span(jit::kTestKernels, size_t(jit::kNumTestKernels)))
    jit::add_source(text.name, text.text);
  const auto closure = jit::include_closure(path);
  std::vector<std::pair<const char*, const char*>> headers;
  for (const auto& header : *closure)
    headers.emplace_back(header->name.c_str(), header->text.c_str());
  const std::string options[] = {"--gpu-architecture=sm_90a", "--std=c++20",
                                 "--ptxas-options=--verbose"};
  return cuda::nvrtc_compile("#include \"" + path + "\"\n" + entries, name + ".cu", headers,
                             options);
}

inline cuda::NvrtcResult compile_wgmma_tile() {
  return compile_for_hopper("wgmma_tile.cuh",
                            "namespace tile = tensorcraft::kernel::wgmma_tile;\n"
                            "extern \"C\" __global__ void __launch_bounds__(128, 1)\n"
                            "tc_entry(const __grid_constant__ tile::Params p) { tile::run(p); }\n");
}

// Entries load_1 to load_5, store_1, ... for every copy and rank.
inline cuda::NvrtcResult compile_copy_box() {
  std::string entries = "namespace box = tensorcraft::kernel::copy_box;\n";
  for (const std::string copy : {"load", "store", "add", "min", "max"})
    for (const std::string rank : {"1", "2", "3", "4", "5"})
      entries += "extern \"C\" __global__ void __launch_bounds__(32) " + copy + "_" + rank +
                 "(const __grid_constant__ box::Params p) { box::run<" + rank +
                 ", box::Copy::" + copy + ">(p); }\n";
  return compile_for_hopper("copy_box.cuh", entries);
}

}  // namespace tensorcraft::test
