// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/source.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// Kernels of tests/simt/ as NVRTC compiles them.
namespace tensorcraft::test {

// `entries` is text behind the include of tests/simt/NAME.
inline cuda::NvrtcResult compile_for_hopper(const std::string& source_folder,
                                            const std::string& name, const std::string& entries) {
  const std::string path = "tests/simt/" + name;
  std::ostringstream text;
  text << std::ifstream(source_folder + "/" + path).rdbuf();
  jit::add_header(path, text.str());
  const auto closure = jit::include_closure(path);
  std::vector<std::pair<const char*, const char*>> headers;
  for (const auto& header : *closure)
    headers.emplace_back(header->name.c_str(), header->text.c_str());
  const std::string options[] = {"--gpu-architecture=sm_90a", "--std=c++20",
                                 "--ptxas-options=--verbose"};
  return cuda::nvrtc_compile("#include \"" + path + "\"\n" + entries, name + ".cu", headers,
                             options);
}

inline cuda::NvrtcResult compile_wgmma_tile(const std::string& source_folder) {
  return compile_for_hopper(source_folder, "wgmma_tile.cuh",
                            "namespace tile = tensorcraft::kernel::wgmma_tile;\n"
                            "extern \"C\" __global__ void __launch_bounds__(128, 1)\n"
                            "tc_entry(const __grid_constant__ tile::Params p) { tile::run(p); }\n");
}

// Entries load_1 to load_5, store_1, ... for every copy and rank.
inline cuda::NvrtcResult compile_copy_box(const std::string& source_folder) {
  std::string entries = "namespace box = tensorcraft::kernel::copy_box;\n";
  for (const std::string copy : {"load", "store", "add", "min", "max"})
    for (const std::string rank : {"1", "2", "3", "4", "5"})
      entries += "extern \"C\" __global__ void __launch_bounds__(32) " + copy + "_" + rank +
                 "(const __grid_constant__ box::Params p) { box::run<" + rank +
                 ", box::Copy::" + copy + ">(p); }\n";
  return compile_for_hopper(source_folder, "copy_box.cuh", entries);
}

}  // namespace tensorcraft::test
