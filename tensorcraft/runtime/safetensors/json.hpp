// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/safetensors/refusal.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensorcraft::safetensors {

inline constexpr int kMaxDepth = 8;
inline constexpr size_t kMaxKeys = 1'000'000;
inline constexpr size_t kMaxNameBytes = 64 * 1024;

bool is_utf8(std::string_view text);

// Reads JSON from the front, one value a call, and throws Refused at the first byte that does not
// fit. It builds no tree, so no key can hide another: object() refuses a key that comes twice. The
// text must be UTF-8 already and outlive the reader.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Calls member(key) after each key; the call reads the value. Keys are at most kMaxNameBytes.
  template <class Member>
  void object(Member&& member) {
    open('{');
    std::vector<std::string> keys;
    for (bool more = !closes('}'); more; more = continues('}')) {
      keys.push_back(key(keys.size()));
      member(std::as_const(keys.back()));
    }
    --depth_;
    refuse_duplicates(std::move(keys));
  }
  // Calls element() before each element; the call reads it.
  template <class Element>
  void array(Element&& element) {
    open('[');
    for (bool more = !closes(']'); more; more = continues(']')) element();
    --depth_;
  }
  std::string string();
  // A whole number from 0 to 2^64 - 1, written without sign, fraction, exponent or leading zero.
  uint64_t integer();
  // Any value, read by the same rules and dropped.
  void skip();

  // The next byte that is not white space, '\0' at the end.
  char peek();
  // Returns the text after the last value.
  std::string_view rest() const { return text_.substr(at_); }

 private:
  [[noreturn]] void refuse(Refusal reason, std::string_view what) const;
  void open(char bracket);
  bool closes(char bracket);
  bool continues(char bracket);
  std::string key(size_t earlier);
  void refuse_duplicates(std::vector<std::string> keys) const;
  void append_escape(std::string& out);
  uint32_t four_hex_digits();
  void skip_number();
  size_t skip_digits();
  void literal(std::string_view word);

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace tensorcraft::safetensors
