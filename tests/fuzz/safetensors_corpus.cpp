// SPDX-License-Identifier: Apache-2.0
// safetensors_corpus FOLDER writes the seeds as files, for libFuzzer.
#include "tests/fuzz/safetensors_seeds.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: safetensors_corpus FOLDER\n", stderr), 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& file : tensorcraft::fuzz::seeds()) {
    const std::string bytes = tensorcraft::fuzz::bytes_of(file);
    std::ofstream out(folder / ("seed_" + std::to_string(number++)), std::ios::binary);
    if (!out.write(bytes.data(), std::streamsize(bytes.size())))
      return std::fprintf(stderr, "safetensors_corpus: cannot write into %s\n", argv[1]), 1;
  }
}
