// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

// The C interface by which XLA calls functions of others ("FFI"), as far as it is used here: the
// layouts of major version 0, in words of our own. A struct begins with its size, which tells what
// its maker knows of it. Nothing of XLA is needed to build or load this.
namespace tensorcraft::python::xla {

// The newest version whose layouts these are. A major version changes them, a minor one adds.
inline constexpr int kMajor = 0, kMinor = 3;

struct Extension {
  size_t bytes;
  int32_t type;
  Extension* next;
};
struct Head {
  size_t bytes;
  Extension* extensions;
};
struct Version {
  Head head;
  int major, minor;
};

// Codes of dtypes; there are more.
enum class Element : int32_t {
  pred = 1,
  s8 = 2,
  s16 = 3,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  f16 = 10,
  f32 = 11,
  f64 = 12,
  bf16 = 16,
  f8e5m2 = 19,
  f8e4m3fn = 20
};

struct Buffer {
  Head head;
  Element dtype;
  void* data;
  int64_t rank;
  const int64_t* dims;
};
inline constexpr int32_t kBuffer = 1;  // the only type of arguments and results

// Holds the arguments, or the results.
struct Buffers {
  Head head;
  int64_t size;
  const int32_t* types;
  Buffer* const* buffers;
};

struct Text {
  const char* data;
  size_t size;
  operator std::string_view() const { return {data, size}; }  // NOLINT
};
struct Scalar {
  Element dtype;
  const void* value;
};
struct Array {
  Element dtype;
  size_t size;
  const void* data;
};
enum class Kind : int32_t { array = 1, dictionary = 2, scalar = 3, text = 4 };
// Holds what a call is told beside its arrays, by names.
struct Attributes {
  Head head;
  int64_t size;
  const Kind* kinds;
  const Text* const* names;
  const void* const* values;  // Array, Attributes, Scalar, Text
};

enum class Code : int32_t {
  invalid_argument = 3,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13
};
struct Error;
struct Context;
struct ErrorRequest {
  Head head;
  const char* message;
  Code code;
};
struct StreamRequest {
  Head head;
  Context* context;
  void* stream;  // the answer
};
struct DeviceRequest {
  Head head;
  Context* context;
  int32_t device;  // the answer
};

// XLA offers this to the handlers that it calls.
struct Api {
  Head head;
  Version version;
  const void* internal;
  Error* (*create_error)(ErrorRequest*);
  void (*error_message)(void*);
  void (*destroy_error)(void*);
  void (*register_handler)();
  Error* (*get_stream)(StreamRequest*);
  void (*others[12])();
  Error* (*get_device)(DeviceRequest*);
};

struct Call {
  Head head;
  const Api* api;
  Context* context;
  int32_t stage;
  Buffers arguments, results;
  Attributes attributes;
};

// Asked for when a handler is registered: by a call with this extension.
inline constexpr int32_t kMetadata = 1;
inline constexpr uint32_t kMayBeRecorded = 1;  // into a command buffer, which is a CUDA graph
struct Metadata {
  size_t bytes;
  Version version;
  uint32_t traits;
};
struct MetadataExtension {
  Extension extension;
  Metadata* metadata;
};

using Handler = Error*(Call*);

// Sizes that the interface gives on a machine with 64-bit addresses.
static_assert(sizeof(Extension) == 24 && sizeof(Buffer) == 48 && sizeof(Buffers) == 40);
static_assert(sizeof(Attributes) == 48 && offsetof(Call, arguments) == 40);
static_assert(sizeof(Call) == 168 && offsetof(Api, get_stream) == 80 && sizeof(Api) == 192);

}  // namespace tensorcraft::python::xla
