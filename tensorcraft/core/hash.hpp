// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tensorcraft {

// SHA-256 (FIPS 180-4): identity of content that is kept or shared.
class Sha256 {
 public:
  Sha256& update(std::string_view bytes);
  // Adds the length first, so that two fields never run into each other.
  Sha256& field(std::string_view bytes);
  // The digest as 64 lower-case hexadecimal digits; the object is used up.
  std::string hex();

 private:
  void block(const unsigned char* bytes);

  std::array<uint32_t, 8> state_{0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::array<unsigned char, 64> pending_{};
  size_t num_pending_ = 0;
  uint64_t total_bytes_ = 0;
};
std::string sha256_hex(std::string_view bytes);

// XXH3-128: finds accidental damage fast; no protection against an attacker.
struct Hash128 {
  uint64_t low = 0, high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
Hash128 xxh3_128(std::string_view bytes);

// For tables in memory: fast, and any word changes every bit that a table looks at. A step waits
// for the one before it, so four sequences take turns.
constexpr uint64_t hash_words(std::span<const uint64_t> words) {
  const auto next = [](uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
  };
  uint64_t a = words.size(), b = 1, c = 2, d = 3;
  for (; words.size() >= 4; words = words.subspan(4)) {
    a = next(a, words[0]);
    b = next(b, words[1]);
    c = next(c, words[2]);
    d = next(d, words[3]);
  }
  for (const uint64_t word : words) a = next(a, word);
  return next(next(next(a, b), c), d);
}

}  // namespace tensorcraft
