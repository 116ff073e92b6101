// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/parser.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/safetensors/json.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>

namespace tensorcraft::safetensors {
namespace {

struct Format {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype = {};
};

constexpr Format kFormats[] = {
    {"F32", 32, DType::float32},
    {"F16", 16, DType::float16},
    {"BF16", 16, DType::bfloat16},
    {"F8_E4M3", 8, DType::float8_e4m3fn},
    {"F8_E5M2", 8, DType::float8_e5m2},
    {"I8", 8, DType::int8},
    {"I16", 16, DType::int16},
    {"I32", 32, DType::int32},
    {"I64", 64, DType::int64},
    {"U8", 8, DType::uint8},
    {"BOOL", 8, DType::bool_},
    {"F64", 64},
    {"C64", 64},
    {"U16", 16},
    {"U32", 32},
    {"U64", 64},
    {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"F4", 4},
};

template <class... Parts>
[[noreturn]] void refuse(Refusal reason, const Parts&... parts) {
  throw Refused{reason, join(parts...)};
}

uint64_t header_length(std::span<const std::byte> first_bytes) {
  uint64_t length = 0;  // the host is little-endian, as the file is
  std::memcpy(&length, first_bytes.data(), kLengthBytes);
  return length;
}

std::string_view header_text(std::span<const std::byte> first_bytes, uint64_t file_size) {
  if (file_size < kLengthBytes || first_bytes.size() < kLengthBytes)
    refuse(Refusal::file_too_short, "the file has ", file_size,
           " bytes, a header's length alone is ", kLengthBytes);
  const uint64_t length = header_length(first_bytes);
  if (length < 2)
    refuse(Refusal::header_too_short, "the header's length is ", length,
           ", at least 2 is accepted");
  if (length > kMaxHeaderBytes)
    refuse(Refusal::header_too_long, "the header's length is ", length, ", at most ",
           kMaxHeaderBytes, " is accepted; is this a safetensors file?");
  const uint64_t end = kLengthBytes + length;
  if (end > file_size || end > first_bytes.size())
    refuse(Refusal::header_past_end, "the header ends at byte ", end, ", the file has ", file_size,
           " bytes; it is truncated or no safetensors file");
  return {reinterpret_cast<const char*>(first_bytes.data()) + kLengthBytes, size_t(length)};
}

// Reads the header's object. It remembers which tensor it is at, for the message of a refusal.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : json_(text), text_(text) {}

  Header read() {
    if (!is_utf8(text_)) refuse(Refusal::not_utf8, "the header is not valid UTF-8");
    if (text_[0] != '{') refuse(Refusal::not_an_object, "the header does not start with '{'");
    json_.object([&](const std::string& key) {
      if (key == "__metadata__") return read_metadata();
      tensor_ = key;
      header_.tensors.push_back(read_tensor());
      header_.tensors.back().name = std::move(tensor_);
      tensor_.clear();
    });
    if (json_.rest().find_first_not_of(' ') != std::string_view::npos)
      refuse(Refusal::trailing_bytes, "the header has other bytes than spaces after its object");
    return std::move(header_);
  }
  const std::string& tensor() const { return tensor_; }

 private:
  void read_metadata() {
    if (json_.peek() != '{') refuse(Refusal::bad_metadata, "__metadata__ is not an object");
    json_.object([&](const std::string& key) {
      if (json_.peek() != '"')
        refuse(Refusal::bad_metadata, "__metadata__: the value of ", in_quotes(key),
               " is not a string");
      header_.metadata.emplace_back(key, json_.string());
    });
  }

  TensorInfo read_tensor() {
    if (json_.peek() != '{') refuse(Refusal::bad_field, "its value is not an object");
    TensorInfo info;
    const Format* format = nullptr;
    bool has_shape = false, has_offsets = false;
    json_.object([&](const std::string& key) {
      if (key == "dtype") {
        format = &read_format();
      } else if (key == "shape") {
        has_shape = true;
        read_shape(info.shape);
      } else if (key == "data_offsets") {
        has_offsets = true;
        read_offsets(info);
      } else {
        json_.skip();
      }
    });
    const char* missing = !format        ? "dtype"
                          : !has_shape   ? "shape"
                          : !has_offsets ? "data_offsets"
                                         : nullptr;
    if (missing) refuse(Refusal::missing_field, missing, " is missing");
    info.format = format->name;
    info.dtype = format->dtype;
    check_size(info, *format);
    return info;
  }

  const Format& read_format() {
    if (json_.peek() != '"') refuse(Refusal::bad_field, "dtype is not a string");
    const std::string name = json_.string();
    for (const Format& format : kFormats)
      if (format.name == name) return format;
    refuse(Refusal::unknown_dtype, "dtype ", in_quotes(name),
           " is unknown; accepted: ", loadable_formats());
  }

  void read_shape(std::vector<int64_t>& shape) {
    if (json_.peek() != '[') refuse(Refusal::bad_field, "shape is not an array");
    json_.array([&] {
      if (shape.size() == kMaxFileRank)
        refuse(Refusal::rank_too_high, "it has more than ", kMaxFileRank, " dimensions");
      const uint64_t size = json_.integer();
      if (size > uint64_t(std::numeric_limits<int64_t>::max()))
        refuse(Refusal::shape_overflow, "a dimension of ", size, " does not fit int64");
      shape.push_back(int64_t(size));
    });
  }

  void read_offsets(TensorInfo& info) {
    if (json_.peek() != '[') refuse(Refusal::bad_field, "data_offsets is not an array");
    int count = 0;
    json_.array([&] {
      const uint64_t value = json_.integer();
      if (++count <= 2) (count == 1 ? info.begin : info.end) = value;
    });
    if (count != 2) refuse(Refusal::bad_field, "data_offsets has ", count, " numbers, not 2");
  }

  static void check_size(const TensorInfo& info, const Format& format) {
    uint64_t elements = 1, bits = 0;
    bool fits = true;
    for (const int64_t size : info.shape)
      fits = fits && !__builtin_mul_overflow(elements, uint64_t(size), &elements);
    if (!fits || __builtin_mul_overflow(elements, format.bits, &bits))
      refuse(Refusal::shape_overflow, "its shape has more bits than 64 bits count");
    if (bits % 8 != 0)
      refuse(Refusal::partial_byte, elements, " elements of ", format.name, " end inside a byte");
    if (info.begin > info.end)
      refuse(Refusal::reversed_offsets, "data_offsets [", info.begin, ", ", info.end,
             "] end before they begin");
    if (info.nbytes() != bits / 8)
      refuse(Refusal::size_mismatch, "data_offsets [", info.begin, ", ", info.end, "] hold ",
             info.nbytes(), " bytes, its shape and dtype need ", bits / 8);
  }

  JsonReader json_;
  std::string_view text_;
  std::string tensor_;
  Header header_;
};

// Sorts the tensors and checks that they fill the data range exactly.
void check_layout(Header& header, uint64_t file_size) {
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t filled = 0;
  for (const TensorInfo& t : tensors) {
    if (t.begin != filled) {
      const Refusal reason = t.nbytes() == 0    ? Refusal::misplaced_empty
                             : t.begin < filled ? Refusal::overlap
                                                : Refusal::hole;
      refuse(reason, "tensor ", in_quotes(t.name), ": begins at byte ", t.begin,
             " of the data, the tensors before it end at ", filled);
    }
    filled = t.end;
  }
  const uint64_t data_bytes = file_size - header.data_offset;
  if (data_bytes < filled)
    refuse(Refusal::truncated_file, "the file is truncated: its tensors need ", filled,
           " bytes after the header, ", data_bytes, " are there; fetch the file again");
  if (data_bytes > filled)
    refuse(Refusal::file_too_long, "the file is too long: its tensors need ", filled,
           " bytes after the header, ", data_bytes, " are there");
}

void check_shard_name(const std::string& tensor, const std::string& shard) {
  if (shard.empty() || shard == "." || shard.find("..") != shard.npos ||
      shard.find_first_of(std::string_view("/\\\0", 3)) != shard.npos)
    refuse(Refusal::bad_shard_name, "tensor ", in_quotes(tensor), ": shard ", in_quotes(shard),
           " is not a plain file name");
}

}  // namespace

std::string loadable_formats() {
  std::string names;
  for (const Format& format : kFormats)
    if (format.dtype) names.append(names.empty() ? "" : ", ").append(format.name);
  return names;
}

uint64_t header_extent(std::span<const std::byte> first_bytes, uint64_t file_size) {
  if (first_bytes.size() < kLengthBytes) return first_bytes.size();
  const uint64_t length = header_length(first_bytes);
  if (length > kMaxHeaderBytes || kLengthBytes + length > file_size) return kLengthBytes;
  return kLengthBytes + length;
}

std::variant<Header, Refused> parse_header(std::span<const std::byte> first_bytes,
                                           uint64_t file_size) {
  std::string at;
  try {
    if constexpr (std::endian::native != std::endian::little)
      refuse(Refusal::big_endian_host, "files are little-endian, this host is not");
    const std::string_view text = header_text(first_bytes, file_size);
    HeaderReader reader(text);
    Header header;
    try {
      header = reader.read();
    } catch (const Refused&) {
      if (!reader.tensor().empty()) at = "tensor " + in_quotes(reader.tensor()) + ": ";
      throw;
    }
    header.data_offset = kLengthBytes + text.size();
    check_layout(header, file_size);
    return header;
  } catch (Refused& refused) {
    return Refused{refused.reason, at + refused.message};
  }
}

std::variant<ShardMap, Refused> parse_index(std::string_view text) {
  try {
    if (!is_utf8(text)) refuse(Refusal::not_utf8, "the index is not valid UTF-8");
    ShardMap shards;
    bool found = false;
    JsonReader json(text);
    if (json.peek() != '{') refuse(Refusal::not_an_object, "the index is not a JSON object");
    json.object([&](const std::string& key) {
      if (key != "weight_map") return json.skip();
      found = true;
      json.object([&](const std::string& tensor) {
        shards.emplace_back(tensor, json.string());
        check_shard_name(tensor, shards.back().second);
      });
    });
    if (json.peek() != '\0' || !json.rest().empty())
      refuse(Refusal::trailing_bytes, "the index has bytes after its object");
    if (!found) refuse(Refusal::missing_field, "weight_map is missing");
    return shards;
  } catch (Refused& refused) {
    return std::move(refused);
  }
}

}  // namespace tensorcraft::safetensors
