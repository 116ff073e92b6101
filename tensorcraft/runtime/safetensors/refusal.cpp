// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/refusal.hpp"

#include <algorithm>

namespace tensorcraft::safetensors {
namespace {

constexpr std::string_view kNames[] = {
    "big_endian_host", "file_too_short", "header_too_short",     "header_too_long",
    "header_past_end", "not_utf8",       "not_an_object",        "trailing_bytes",
    "bad_json",        "duplicate_key",  "not_an_integer",       "integer_overflow",
    "too_deep",        "too_many_keys",  "name_too_long",        "rank_too_high",
    "bad_metadata",    "bad_field",      "missing_field",        "unknown_dtype",
    "shape_overflow",  "partial_byte",   "reversed_offsets",     "size_mismatch",
    "overlap",         "hole",           "misplaced_empty",      "truncated_file",
    "file_too_long",   "bad_shard_name", "in_two_shards",        "not_in_shard",
    "not_in_index",    "short_read",     "changed_while_reading"};
static_assert(std::size(kNames) == kNumRefusals);

constexpr size_t kShownBytes = 100;

bool continues_a_character(char c) { return (uint8_t(c) & 0xC0) == 0x80; }

}  // namespace

std::string_view to_string(Refusal refusal) { return kNames[int(refusal)]; }

std::string in_quotes(std::string_view text) {
  size_t shown = std::min(text.size(), kShownBytes);
  while (shown > 0 && shown < text.size() && continues_a_character(text[shown])) --shown;
  std::string result = "\"" + std::string(text.substr(0, shown));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return uint8_t(c) < 0x20 || c == 0x7F; }, '?');
  return result + (shown < text.size() ? "...\"" : "\"");
}

}  // namespace tensorcraft::safetensors
