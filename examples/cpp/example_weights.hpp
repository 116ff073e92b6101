// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

// Stands for the file that a model comes in.
namespace example {

// A name and a shape.
using Entry = std::pair<std::string, std::vector<int64_t>>;

// Writes a safetensors file: the header's size, the header, then all values of all entries.
inline void write_weights(const std::string& path, const std::vector<Entry>& entries) {
  std::string header;
  std::vector<float> values;
  for (const auto& [name, shape] : entries) {
    const size_t begin = values.size();
    size_t size = 1;
    std::string sizes;
    for (const int64_t n : shape) {
      size *= size_t(n);
      sizes += (sizes.empty() ? "" : ",") + std::to_string(n);
    }
    const float most = shape.size() > 1 ? 1 / std::sqrt(float(shape.back())) : 1;
    for (size_t i = 0; i < size; ++i)
      values.push_back(most * std::sin(float(begin + i) * 1.7f + 0.3f));
    header += (header.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[)" + sizes +
              R"(],"data_offsets":[)" + std::to_string(begin * 4) + "," +
              std::to_string(values.size() * 4) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t header_size = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header_size), sizeof header_size);
  file << header;
  file.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size() * 4));
}

}  // namespace example
