// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/source.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// tests/simt/wgmma_tile.cuh as NVRTC compiles it, with an entry named tc_entry.
namespace tensorcraft::test {

inline cuda::NvrtcResult compile_wgmma_tile(const std::string& source_folder) {
  std::ostringstream text;
  text << std::ifstream(source_folder + "/tests/simt/wgmma_tile.cuh").rdbuf();
  jit::add_header("tests/simt/wgmma_tile.cuh", text.str());
  const std::string entry =
      "#include \"tests/simt/wgmma_tile.cuh\"\n"
      "namespace tile = tensorcraft::kernel::wgmma_tile;\n"
      "extern \"C\" __global__ void __launch_bounds__(128, 1)\n"
      "tc_entry(const __grid_constant__ tile::Params p) { tile::run(p); }\n";
  const auto closure = jit::include_closure("tests/simt/wgmma_tile.cuh");
  std::vector<std::pair<const char*, const char*>> headers;
  for (const auto& header : *closure)
    headers.emplace_back(header->name.c_str(), header->text.c_str());
  const std::string options[] = {"--gpu-architecture=sm_90a", "--std=c++20",
                                 "--ptxas-options=--verbose"};
  return cuda::nvrtc_compile(entry, "wgmma_tile.cu", headers, options);
}

}  // namespace tensorcraft::test
