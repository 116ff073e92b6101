// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

TEST(Sha256, AgreesWithTheStandardVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheInputIsCut) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += char(i);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Sha256().update(text.substr(0, cut)).update(text.substr(cut)).hex(),
              sha256_hex(text));
  }
}

TEST(Sha256, KeepsFieldsApart) {
  EXPECT_NE(Sha256().field("ab").field("c").hex(), Sha256().field("a").field("bc").hex());
}

TEST(Xxh3, AgreesWithThePublishedValueOfTheEmptyInput) {
  EXPECT_EQ(xxh3_128(""), (Hash128{0x6001c324468d497full, 0x99aa06d3014798d8ull}));
}

TEST(Xxh3, NoticesEverySingleFlippedBit) {
  const std::string text(100, 'x');
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] ^= char(1 << bit % 8);
    EXPECT_NE(xxh3_128(damaged), xxh3_128(text));
  }
}

// A table of 128 lines looks at the low bits; half of all changes of a word move to another half.
TEST(HashWords, DependsOnEveryBitOfEveryWord) {
  for (size_t size = 1; size < 20; ++size) {
    std::vector<uint64_t> words(size, 7);
    const uint64_t before = hash_words(words);
    std::array<int, 7> changed{};
    for (size_t bit = 0; bit < 64 * size; ++bit) {
      words[bit / 64] ^= uint64_t(1) << bit % 64;
      const uint64_t difference = hash_words(words) ^ before;
      EXPECT_NE(difference, 0u) << size << ' ' << bit;
      for (size_t i = 0; i < changed.size(); ++i) changed[i] += int(difference >> i & 1);
      words[bit / 64] ^= uint64_t(1) << bit % 64;
    }
    for (const int count : changed) EXPECT_NEAR(count / double(64 * size), 0.5, 0.25) << size;
  }
}

TEST(HashWords, DependsOnTheOrderAndTheNumberOfWords) {
  std::set<uint64_t> hashes;
  std::vector<uint64_t> words(9, 0);
  for (size_t place = 0; place < words.size(); ++place) {
    words[place] = 1;
    hashes.insert(hash_words(words));
    words[place] = 0;
  }
  for (size_t size = 0; size <= words.size(); ++size)
    hashes.insert(hash_words(std::span(words).first(size)));
  EXPECT_EQ(hashes.size(), 19u);
}

}  // namespace
}  // namespace tensorcraft
