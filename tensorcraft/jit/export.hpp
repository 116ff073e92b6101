// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/tensor_view.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

// How a function of a user's own file becomes one that load_jit() finds: TC_EXPORT, which
// the wrappers of a module hold. It may take views of tensors, numbers, bools and texts, and return
// nothing, a number or a bool. What it throws reaches the caller.
namespace tensorcraft::jit {

// One argument or result on its way; monostate is a result of nothing.
using ExportValue =
    std::variant<std::monostate, bool, int64_t, double, std::string_view, TensorView>;

// A module has a function of this type for each export.
using ExportFunction = void(ExportValue* result, const char* called, const ExportValue* arguments,
                            size_t count);

namespace detail {

template <class T>
concept ExportTensor = std::same_as<T, TensorView>;
template <class T>
concept ExportText = std::same_as<T, std::string_view> || std::same_as<T, std::string>;

template <class T>
[[noreturn]] void refuse_argument(std::string_view name, size_t i, const ExportValue& value) {
  constexpr std::string_view kGiven[] = {"nothing", "a bool", "an int",
                                         "a float", "a text", "a tensor"};
  const std::string_view wanted = ExportTensor<T>           ? "a tensor"
                                  : ExportText<T>           ? "a text"
                                  : std::is_same_v<T, bool> ? "a bool"
                                  : std::is_integral_v<T>   ? "an int"
                                                            : "a number";
  fail(ErrorKind::type, name, ": argument ", i, " must be ", wanted, ", got ",
       kGiven[value.index()]);
}

// Argument i as a parameter of type T.
template <class T>
T take_argument(std::string_view name, size_t i, const ExportValue& value) {
  if constexpr (ExportTensor<T>) {
    if (const auto* tensor = std::get_if<TensorView>(&value)) return *tensor;
  } else if constexpr (ExportText<T>) {
    if (const auto* text = std::get_if<std::string_view>(&value)) return T(*text);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  } else if constexpr (std::is_integral_v<T>) {
    if (const auto* whole = std::get_if<int64_t>(&value)) {
      if (!std::in_range<T>(*whole))
        fail(ErrorKind::value, name, ": argument ", i, " is ", *whole, ", which its type in C++, ",
             sizeof(T), " bytes, does not hold");
      return T(*whole);
    }
  } else {
    static_assert(std::is_floating_point_v<T>,
                  "an exported function takes TensorView, numbers, bool and std::string_view");
    if (const auto* number = std::get_if<double>(&value)) return T(*number);
    if (const auto* whole = std::get_if<int64_t>(&value)) return T(*whole);
  }
  refuse_argument<T>(name, i, value);
}

template <class R>
ExportValue as_result(const R& result) {
  if constexpr (std::is_same_v<R, bool>)
    return result;
  else if constexpr (std::is_integral_v<R>)
    return int64_t(result);
  else {
    static_assert(std::is_floating_point_v<R>,
                  "an exported function returns nothing, a number or a bool");
    return double(result);
  }
}

template <class R, class... P, size_t... i>
ExportValue call_exported(R (*function)(P...), std::string_view name,
                          std::span<const ExportValue> given, std::index_sequence<i...>) {
  if (given.size() != sizeof...(P))
    fail(ErrorKind::type, name, ": takes ", sizeof...(P), " arguments, got ", given.size());
  if constexpr (std::is_void_v<R>) {
    function(take_argument<std::remove_cvref_t<P>>(name, i, given[i])...);
    return {};
  } else {
    return as_result(function(take_argument<std::remove_cvref_t<P>>(name, i, given[i])...));
  }
}

}  // namespace detail

template <class R, class... P>
ExportValue call_exported(R (*function)(P...), std::string_view name,
                          std::span<const ExportValue> given) {
  return detail::call_exported(function, name, given, std::index_sequence_for<P...>{});
}

}  // namespace tensorcraft::jit

// TC_EXPORT(NAME, FUNCTION): one line of a module. FUNCTION may have commas.
#define TC_EXPORT(name, ...)                                                                \
  extern "C" __attribute__((visibility("default"))) void tensorcraft_export_##name(         \
      ::tensorcraft::jit::ExportValue* result, const char* called,                          \
      const ::tensorcraft::jit::ExportValue* arguments, size_t count) {                     \
    *result = ::tensorcraft::jit::call_exported((__VA_ARGS__), called, {arguments, count}); \
  }                                                                                         \
  static_assert(true)
