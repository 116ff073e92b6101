// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorcraft::safetensors {

// Why a file was not accepted. The name stands in brackets at the end of the error's text.
enum class Refusal : uint8_t {
  big_endian_host,
  file_too_short,
  header_too_short,
  header_too_long,
  header_past_end,
  not_utf8,
  not_an_object,
  trailing_bytes,
  bad_json,
  duplicate_key,
  not_an_integer,
  integer_overflow,
  too_deep,
  too_many_keys,
  name_too_long,
  rank_too_high,
  bad_metadata,
  bad_field,
  missing_field,
  unknown_dtype,
  shape_overflow,
  partial_byte,
  reversed_offsets,
  size_mismatch,
  overlap,
  hole,
  misplaced_empty,
  truncated_file,
  file_too_long,
  bad_shard_name,
  in_two_shards,
  not_in_shard,
  not_in_index,
  short_read,
  changed_while_reading,
};
inline constexpr int kNumRefusals = int(Refusal::changed_while_reading) + 1;

// "header_too_long", ...: the enumerator's own spelling.
std::string_view to_string(Refusal refusal);

// A refusal and its sentence, without the file's name. Thrown inside the parser only.
struct Refused {
  Refusal reason;
  std::string message;
};

// Text from a file inside quotes for a message: at most 100 bytes, control characters as '?'.
std::string in_quotes(std::string_view text);

}  // namespace tensorcraft::safetensors
