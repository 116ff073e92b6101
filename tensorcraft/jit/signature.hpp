// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tensorcraft::jit {

// How a kernel takes a number: the dtypes, and what C has besides.
enum class NumberType : uint8_t {
  bool_,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float8_e4m3fn,
  float8_e5m2,
  float16,
  bfloat16,
  float32,
  float64,
};
// "float64", "uint16": as dtypes are called.
std::string_view to_string(NumberType type);
// Returns the bytes of one such number.
size_t number_bytes(NumberType type);
// "double", "tensorcraft::f16": how device text spells it.
std::string_view device_type(NumberType type);

// A name that the text of a kernel and its signature may use: a dtype is a type in them.
struct KernelConstant {
  // The name stands for the value.
  std::string name;
  std::variant<bool, int64_t, double, DType> value;
};

// One parameter: a number, or the elements of a contiguous array.
struct KernelParameter {
  // As the signature has it.
  std::string name;
  NumberType number = NumberType::float32;  // of the array's elements, if it is one
  std::string spelling;                     // of that type in device text: "long long"
  std::optional<DType> dtype;  // of an array; uint64, as addresses are, comes as bits of int64
  bool is_const = false;       // the kernel only reads the array
  size_t offset = 0;           // in the struct of all arguments, as C lays it out
  bool is_array() const { return dtype.has_value(); }
};

// "axpy(float* y, const float* x, float a, int64 n)", read.
struct KernelSignature {
  // Its parts, in the order of the text.
  std::string name;                             // perhaps with namespaces: "mine::axpy"
  std::vector<std::string> template_arguments;  // as device text spells them
  std::vector<KernelParameter> parameters;
  size_t argument_bytes = 0;  // of the struct of all arguments
};

// Limits of a signature.
inline constexpr size_t kMaxSignatureBytes = 8192;
inline constexpr size_t kMaxKernelParameters = 64;

// Reads a signature: `NAME(PARAMETER, ...)` or `NAME<ARGUMENT, ...>(PARAMETER, ...)`, perhaps with
// `void` in front. A parameter is a type and a name; `*` makes it an array, `const` an array that
// is only read. Types are the dtypes ("float32", "int64", "bfloat16"), their spellings in C
// ("float", "long long", "int64_t"), "half", and constants that are dtypes. Kind value with the
// text, a caret and, for a word like a known one, that word, if it is no signature; if it has an
// array of a type that is no dtype of the library; or if two parameters have one name.
KernelSignature parse_signature(std::string_view text,
                                std::span<const KernelConstant> constants = {});

// "axpy(float* y, const float* x, float a, int64_t n)": what was understood.
std::string to_string(const KernelSignature& signature);

// Is it a name that C++ allows, without "::"?
bool is_identifier(std::string_view text);
// Is it a word that C++ keeps for itself, such as "class"?
bool is_keyword(std::string_view text);

}  // namespace tensorcraft::jit
