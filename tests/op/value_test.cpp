// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/value.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tensorcraft::op {
namespace {

using test::expect_error;

TEST(Value, BecomesTheTypeOfItsField) {
  EXPECT_TRUE(to_bool("f", "a", true));
  EXPECT_EQ(to_integer("f", "a", int64_t(-3)), -3);
  EXPECT_EQ(to_number("f", "a", int64_t(2)), 2.0);
  EXPECT_EQ(to_number("f", "a", 0.5), 0.5);
  EXPECT_EQ(to_dtype("f", "a", DType::bfloat16), DType::bfloat16);
  EXPECT_EQ(Field<Activation>::get("f", "a", std::string_view("gelu_tanh")), Activation::gelu_tanh);
  EXPECT_EQ(Field<Activation>::get("f", "a", {}), Activation::none);
  EXPECT_EQ(to_integers("f", "a", Dims{2, -1}), (Dims{2, -1}));
  EXPECT_EQ(to_integers("f", "a", int64_t(4)), Dims{4});
}

TEST(Value, NamedValuesKeepTheCallersOrder) {
  const NamedValue given[] = {{"g"}, {"k", 0.5}, {"u"}, {"n", int64_t(2)}};
  const NamedValues got = to_named_values("f", "a", NamedValues(given));
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got.data(), given);
  EXPECT_EQ(array_name(got, 0), "g");
  EXPECT_EQ(array_name(got, 1), "u");
  EXPECT_EQ(array_name(got, 2), "argument");
  expect_error(
      ErrorKind::type, [] { to_named_values("f", "a", std::string_view("g, u")); },
      "f: a must be named arguments, got a string");
}

TEST(Value, ANumberStaysWhatItIs) {
  constexpr int64_t odd = (int64_t(1) << 53) + 1;
  EXPECT_EQ(to_exact_number("f", "a", odd), Number(odd));
  EXPECT_EQ(to_exact_number("f", "a", true), Number(true));
  EXPECT_EQ(to_exact_number("f", "a", 0.5), Number(0.5));
  EXPECT_EQ(Field<Number>::text(odd), "9007199254740993");
  EXPECT_EQ(Field<Number>::text(0.5), "0.5");
  expect_error(
      ErrorKind::type, [] { to_exact_number("f", "a", {}); }, "f: a must be a number, got None");
}

TEST(Value, ANumberOrATensorIsWhatItWasGiven) {
  const TensorView rows(nullptr, DType::float32, {3}, Device::cpu());
  EXPECT_EQ(to_number_or_tensor("f", "a", int64_t(7)).number, Number(int64_t(7)));
  EXPECT_EQ(to_number_or_tensor("f", "a", 0.5).number, Number(0.5));
  const NumberOrTensor tensor = to_number_or_tensor("f", "a", rows);
  EXPECT_FALSE(tensor.number);
  EXPECT_EQ(tensor.tensor.value().shape(), (Dims{3}));
  EXPECT_FALSE(NumberOrTensor().is_given());
  EXPECT_TRUE(to_boolean_or_tensor("f", "a", true).value);
  EXPECT_EQ(to_boolean_or_tensor("f", "a", rows).tensor.value().shape(), (Dims{3}));
  expect_error(
      ErrorKind::type, [] { to_boolean_or_tensor("f", "a", int64_t(1)); },
      "f: a must be a bool or a tensor, got an int");
  EXPECT_EQ(Field<BooleanOrTensor>::text(true), "True");
  EXPECT_EQ(Field<NumberOrTensor>::text(1.0), "1.0");
  EXPECT_EQ(Field<NumberOrTensor>::text({}), "None");
  expect_error(
      ErrorKind::type, [] { to_number_or_tensor("f", "a", true); },
      "f: a must be a number or a tensor, got a bool");
}

TEST(Value, OfAnotherTypeIsRefusedByName) {
  expect_error(
      ErrorKind::type, [] { to_bool("f", "a", int64_t(1)); }, "f: a must be a bool, got an int");
  expect_error(
      ErrorKind::type, [] { to_integer("f", "a", 1.0); }, "f: a must be an int, got a float");
  expect_error(ErrorKind::type, [] { to_number("f", "a", {}); }, "f: a must be a number, got None");
  expect_error(
      ErrorKind::type, [] { to_dtype("f", "a", std::string_view("x")); },
      "f: a must be a dtype, got a string");
  expect_error(
      ErrorKind::type, [] { to_tensor("f", "a", DType::int8); },
      "f: a must be a tensor, got a dtype");
  expect_error(
      ErrorKind::type, [] { to_integers("f", "a", 0.5); }, "f: a must be integers, got a float");
  expect_error(
      ErrorKind::type, [] { to_integer("f", "a", Dims{1}); }, "f: a must be an int, got a list");
}

TEST(Value, ANumberBeyondFloat32IsRefusedAndInfinityIsNot) {
  expect_error(
      ErrorKind::value, [] { to_float("f", "a", -1e300); },
      "f: a must be at most 3.40282e+38 in size, float32's largest number, got -1e+300");
  EXPECT_EQ(to_float("f", "a", std::numeric_limits<double>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_float("f", "a", double(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::max());
}

TEST(Value, AnUnknownChoiceListsThemAll) {
  expect_error(
      ErrorKind::value,
      [] { Field<Activation>::get("gemm", "activation", std::string_view("tanh")); },
      "gemm: activation \"tanh\" is not known; there are none, relu, gelu, gelu_tanh, silu");
}

TEST(Value, AnInputThatIsWrittenSaysSo) {
  const Parameter cache = written("cache", "keys in pages");
  EXPECT_TRUE(cache.written && !cache.optional);
  EXPECT_EQ(documented(cache), "keys in pages, written in place");
  EXPECT_EQ(documented(Parameter{"keys", "keys in pages"}), "keys in pages");
}

TEST(Field, WritesDefaultsAsPythonDoes) {
  EXPECT_EQ(Field<bool>::text(true), "True");
  EXPECT_EQ(Field<float>::text(1), "1.0");
  EXPECT_EQ(Field<Dims>::text({1, 0}), "(1, 0)");
  EXPECT_EQ(Field<Dims>::text({1}), "(1,)");
  EXPECT_EQ(Field<float>::text(1e-5f), "1e-05");
  EXPECT_EQ(Field<Activation>::text(Activation::none), "None");
  EXPECT_EQ(Field<Activation>::text(Activation::silu), "\"silu\"");
}

TEST(Value, SettingsAreNamesWithValues) {
  const auto all = to_settings("gemm", "config", std::string_view(" tile_m = 64,schedule=x , b= "));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "tile_m");
  EXPECT_EQ(all[0].value, "64");
  EXPECT_EQ(all[1].name, "schedule");
  EXPECT_EQ(all[1].value, "x");
  EXPECT_EQ(all[2].value, "");
  EXPECT_TRUE(to_settings("gemm", "config", std::string_view("  ")).empty());
  EXPECT_THROW(to_settings("gemm", "config", std::string_view("tile_m")), Error);
  EXPECT_THROW(to_settings("gemm", "config", Value(int64_t(3))), Error);
}

}  // namespace
}  // namespace tensorcraft::op
