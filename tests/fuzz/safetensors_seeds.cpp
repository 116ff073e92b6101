// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/safetensors_seeds.hpp"

#include <cstring>

namespace tensorcraft::fuzz {

std::string bytes_of(const File& file) {
  std::string header = "{" + file.extra;
  for (const Tensor& t : file.tensors)
    header += (header.size() > 1 ? ",\"" : "\"") + t.name + "\":{\"dtype\":\"" + t.dtype +
              "\",\"shape\":" + t.shape + ",\"data_offsets\":" + t.offsets + "}";
  header += "}" + file.tail;
  const uint64_t length = header.size() + uint64_t(file.length_error);
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(file.data_bytes, '\1');
}

std::vector<File> seeds() {
  const Tensor a{"a", "F32", "[2,2]", "[0,16]"}, b{"b", "BF16", "[3]", "[16,22]"};
  const Tensor empty{"e", "I64", "[0,5]", "[22,22]"};
  const std::string metadata = R"("__metadata__":{"format":"pt"})";
  return {
      {{a, b, empty}, metadata, "   ", 22},
      {{}, "", "", 0},
      {{{"wraps", "U8", "[4194305,4194305,211106198978564]", "[0,4]"}}, "", "", 4},
      {{a}, "", "", 16, int64_t(1) << 62},
      {{a}, "", "", 16, -1},
      {{a}, "", "", 15},
      {{a}, "", "", 17},
      {{a, a}, "", "", 16},
      {{a, {"over", "F32", "[1]", "[12,16]"}}, "", "", 16},
      {{a, {"hole", "F32", "[1]", "[20,24]"}}, "", "", 24},
      {{{"reversed", "U8", "[4]", "[4,0]"}}, "", "", 4},
      {{{"far", "U8", "[0]", "[18446744073709551615,18446744073709551615]"}}, "", "", 0},
      {{{"minus", "U8", "[-1]", "[0,-1]"}}, "", "", 0},
      {{{"real", "U8", "[1.0]", "[0,1e0]"}}, "", "", 1},
      {{{"half", "F4", "[3]", "[0,2]"}}, "", "", 2},
      {{{"\\ud83d\\ude00", "F64", "[]", "[0,8]"}}, "", "", 8},
      {{{"\\ud83d", "F31", "[1]", "[0,4]"}}, "", "", 4},
      {{{"\xC3\x28", "U8", "[0]", "[0,0]"}}, "", "", 0},
      {{}, R"("__metadata__":{"a":1})", "", 0},
      {{}, R"("t":)" + std::string(200, '[') + std::string(200, ']'), "", 0},
      {{a}, R"("weight_map":{"a":"../b","c":"d/e"})", "\n", 16},
  };
}

}  // namespace tensorcraft::fuzz
