// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/json.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft::safetensors {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the character that starts with `lead`, and the range its second byte must be in; that
// range is what shuts out overlong forms, surrogates and values above U+10FFFF.
struct Utf8Form {
  int bytes;
  uint8_t low, high;
};

Utf8Form utf8_form(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead < 0xF0)
    return {3, uint8_t(lead == 0xE0 ? 0xA0 : 0x80), uint8_t(lead == 0xED ? 0x9F : 0xBF)};
  if (lead < 0xF5)
    return {4, uint8_t(lead == 0xF0 ? 0x90 : 0x80), uint8_t(lead == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += char(code);
  } else if (code < 0x800) {
    out += {char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))};
  } else if (code < 0x10000) {
    out += {char(0xE0 | code >> 12), char(0x80 | (code >> 6 & 0x3F)), char(0x80 | (code & 0x3F))};
  } else {
    out += {char(0xF0 | code >> 18), char(0x80 | (code >> 12 & 0x3F)),
            char(0x80 | (code >> 6 & 0x3F)), char(0x80 | (code & 0x3F))};
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Form form = utf8_form(uint8_t(text[i]));
    if (form.bytes == 0 || text.size() - i < size_t(form.bytes)) return false;
    for (int j = 1; j < form.bytes; ++j) {
      const auto byte = uint8_t(text[i + j]);
      if (byte < (j == 1 ? form.low : 0x80) || byte > (j == 1 ? form.high : 0xBF)) return false;
    }
    i += form.bytes;
  }
  return true;
}

void JsonReader::refuse(Refusal reason, std::string_view what) const {
  throw Refused{reason, join("byte ", at_, " of the JSON: ", what)};
}

char JsonReader::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonReader::open(char bracket) {
  if (peek() != bracket) refuse(Refusal::bad_json, join("'", bracket, "' is expected"));
  if (++depth_ > kMaxDepth)
    refuse(Refusal::too_deep, join("nested more than ", kMaxDepth, " levels deep"));
  ++at_;
}

bool JsonReader::closes(char bracket) {
  if (peek() != bracket) return false;
  ++at_;
  return true;
}

bool JsonReader::continues(char bracket) {
  if (closes(bracket)) return false;
  if (peek() != ',') refuse(Refusal::bad_json, join("',' or '", bracket, "' is expected"));
  ++at_;
  return true;
}

std::string JsonReader::key(size_t earlier) {
  if (earlier == kMaxKeys)
    refuse(Refusal::too_many_keys, join("an object has more than ", kMaxKeys, " keys"));
  std::string name = string();
  if (name.size() > kMaxNameBytes)
    refuse(Refusal::name_too_long,
           join("a key of ", name.size(), " bytes; at most ", kMaxNameBytes, " are accepted"));
  if (peek() != ':') refuse(Refusal::bad_json, "':' is expected after a key");
  ++at_;
  return name;
}

void JsonReader::refuse_duplicates(std::vector<std::string> keys) const {
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end())
    throw Refused{Refusal::duplicate_key, join("the key ", in_quotes(*twice), " comes twice")};
}

std::string JsonReader::string() {
  if (peek() != '"') refuse(Refusal::bad_json, "a string in double quotes is expected");
  ++at_;
  std::string out;
  while (true) {
    const size_t from = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           uint8_t(text_[at_]) >= 0x20)
      ++at_;
    out.append(text_, from, at_ - from);
    if (at_ == text_.size()) refuse(Refusal::bad_json, "a string has no end");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') refuse(Refusal::bad_json, "a string has a raw control character");
    ++at_;
    append_escape(out);
  }
  ++at_;
  return out;
}

void JsonReader::append_escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = at_ < text_.size() ? text_[at_] : '\0';
  if (const size_t i = kLetters.find(letter); i != kLetters.npos) {
    ++at_;
    out += kMeanings[i];
    return;
  }
  if (letter != 'u') refuse(Refusal::bad_json, "an unknown escape in a string");
  uint32_t code = four_hex_digits();
  if (code >= 0xD800 && code < 0xE000) {
    // Above U+FFFF a character is two escapes: a high surrogate, then a low one.
    const bool paired = code < 0xDC00 && text_.substr(at_ + 1, 2) == "\\u";
    if (paired) at_ += 2;
    const uint32_t low = paired ? four_hex_digits() : 0;
    if (low < 0xDC00 || low >= 0xE000) refuse(Refusal::bad_json, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  ++at_;
  append_utf8(out, code);
}

// From the 'u' at the cursor; leaves the cursor on the last digit.
uint32_t JsonReader::four_hex_digits() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    ++at_;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const char lower = char(c | 0x20);
    if (!is_digit(c) && (lower < 'a' || lower > 'f'))
      refuse(Refusal::bad_json, "\\u needs four hexadecimal digits");
    code = code << 4 | uint32_t(is_digit(c) ? c - '0' : lower - 'a' + 10);
  }
  return code;
}

uint64_t JsonReader::integer() {
  const bool leading_zero = peek() == '0';
  const size_t from = at_;
  uint64_t value = 0;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
    if (__builtin_mul_overflow(value, uint64_t(10), &value) ||
        __builtin_add_overflow(value, uint64_t(text_[at_] - '0'), &value))
      refuse(Refusal::integer_overflow, "a number does not fit 64 bits");
  const char after = at_ < text_.size() ? text_[at_] : '\0';
  if (at_ == from || (leading_zero && at_ - from > 1) || after == '.' || (after | 0x20) == 'e')
    refuse(Refusal::not_an_integer,
           "a whole number is expected, without sign, fraction, exponent or leading zero");
  return value;
}

size_t JsonReader::skip_digits() {
  const size_t from = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  return at_ - from;
}

void JsonReader::skip_number() {
  const auto next = [&](std::string_view any) {
    const bool found = at_ < text_.size() && any.find(text_[at_]) != any.npos;
    at_ += found;
    return found;
  };
  next("-");
  const bool leading_zero = at_ < text_.size() && text_[at_] == '0';
  const size_t digits = skip_digits();
  bool good = digits > 0 && !(leading_zero && digits > 1);
  if (next(".")) good = good && skip_digits() > 0;
  if (next("eE")) {
    next("+-");
    good = good && skip_digits() > 0;
  }
  if (!good) refuse(Refusal::bad_json, "a value is expected");
}

void JsonReader::literal(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) refuse(Refusal::bad_json, "a value is expected");
  at_ += word.size();
}

void JsonReader::skip() {
  switch (peek()) {
    case '{':
      return object([&](const std::string&) { skip(); });
    case '[':
      return array([&] { skip(); });
    case '"':
      string();
      return;
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      return skip_number();
  }
}

}  // namespace tensorcraft::safetensors
