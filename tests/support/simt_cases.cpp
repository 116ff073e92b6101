// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt_cases.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/simt/instrumentation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensorcraft::test {
namespace {

using Json = nlohmann::json;

const Json kFloats{"float32", "float16", "bfloat16"};
const Json kHalves{"float16", "bfloat16"};
const Json kBytes{"float8_e4m3fn", "float8_e5m2", "int8"};
const Json kFloat8s{"float8_e4m3fn", "float8_e5m2"};
const Json kActivations{"none", "relu", "gelu", "gelu_tanh", "silu"};
// Rows that no single stride describes.
const Json kNestedStrides{8, 2};

Json case_of(std::string name, Json dtypes, Json inputs, Json options) {
  return {{"name", std::move(name)},       {"dtypes", std::move(dtypes)},
          {"inputs", std::move(inputs)},   {"options", std::move(options)},
          {"tags", Json::array({"simt"})}, {"reduction", 8}};
}
// A case for the last variant alone, which has a kernel for every pair of dtypes and every fusion.
Json last_case_of(std::string name, Json dtypes, Json inputs, Json options) {
  Json c = case_of(std::move(name), std::move(dtypes), std::move(inputs), std::move(options));
  c["tags"].push_back("last");
  return c;
}

// Adds a case for each dtype that naive has a result of.
void add_products(Json& cases, const std::string& name, const Json& inputs, Json options) {
  const std::pair<Json, Json> results[] = {{kFloats, nullptr},
                                           {kHalves, "float32"},
                                           {Json::array({"float16"}), "bfloat16"},
                                           {Json::array({"bfloat16"}), "float16"}};
  for (const auto& [operands, result] : results) {
    if (!result.is_null()) options["out_dtype"] = result;
    if (!result.is_null() && options.contains("c")) options["c"]["dtype"] = result;
    cases.push_back(last_case_of(join(name, "_", result.dump()), operands, inputs, options));
  }
}

// Results of 8 bits of all operands that have them; nothing is C then, and 8-bit operands have a
// float32 bias.
void add_codes(Json& cases, const std::string& name, Json options, Json inputs) {
  if (options.contains("c")) return;
  if (inputs.contains("x1")) inputs["x1"]["dtype"] = "float32";
  const Json int8 = Json::array({"int8"});
  for (const Json& result : kBytes) {
    options["out_dtype"] = result;
    for (const Json& operands : {kFloats, result == "int8" ? int8 : kFloat8s}) {
      const bool are_floats = operands == kFloats;
      const std::string is_of = are_floats ? "_floats_" : "_codes_";
      if (options.contains("bias")) options["bias"].erase("dtype");
      if (options.contains("bias") && !are_floats) options["bias"]["dtype"] = "float32";
      cases.push_back(last_case_of(join(name, is_of, result.dump()), operands, inputs, options));
      cases.back()["code_steps"] = 1;
    }
  }
}

// Results of 8 bits that the copy engine does not store: threads do, in words.
void add_codes_in_words(Json& cases) {
  const auto add = [&](const std::string& name, const char* dtype, Json a, Json b, Json options) {
    options["out_dtype"] = "float8_e4m3fn";
    cases.push_back(case_of("codes_in_words_" + name, Json::array({dtype}),
                            {{"a", std::move(a)}, {"b", std::move(b)}}, std::move(options)));
    cases.back()["code_steps"] = 1;
  };
  for (const bool is_a_across : {false, true})
    for (const bool is_b_along : {false, true}) {
      Json a{{"shape", {72, 72}}}, b{{"shape", {72, 64}}}, options = Json::object();
      if (is_a_across) a["strides"] = {1, 72};
      if (is_b_along) b["shape"] = {64, 72}, options["transpose_b"] = true;
      add(join(is_a_across, is_b_along), "bfloat16", a, b, options);
    }
  const Json a{{"shape", {72, 144}}}, b{{"shape", {68, 144}}};
  const auto scale = [](Json shape) {
    return Json{{"shape", std::move(shape)}, {"dtype", "float32"}};
  };
  add("fast", "float8_e4m3fn", a, b, {{"transpose_b", true}, {"accumulation", "fast"}});
  add("by_row", "float8_e4m3fn", a, b,
      {{"transpose_b", true}, {"a_scale", scale({72, 1})}, {"b_scale", scale({68})}});
  add("by_square", "float8_e4m3fn", a, b,
      {{"transpose_b", true}, {"a_scale", scale({72, 2})}, {"b_scale", scale({1, 2})}});
}

// Products of 3 x 5.
void add_tiny_products(Json& cases, const std::string& name, Json options,
                       Json inputs = Json::object()) {
  inputs["a"] = {{"shape", {3, 4}}};
  inputs["b"] = {{"shape", {4, options.contains("gated") ? 10 : 5}}};
  add_products(cases, name, inputs, options);
  // For 8-bit operands all that is added has the dtype of the result.
  for (const Json& result : kFloats) {
    options["out_dtype"] = result;
    for (const char* added : {"c", "bias"})
      if (options.contains(added)) options[added]["dtype"] = result;
    if (inputs.contains("x1")) inputs["x1"]["dtype"] = result;
    cases.push_back(last_case_of(join(name, "_bytes_", result.dump()), kBytes, inputs, options));
  }
  add_codes(cases, name, options, inputs);
}

// Rungs for vectors need these besides: bias and an expression in whole vectors, a result of the
// other 16 bits, and gates at rows of D that vectors do not divide.
void add_products_in_vectors(Json& cases) {
  const auto add = [&](const char* name, Json dtypes, Json a, Json b, Json options) {
    cases.push_back(case_of(name, std::move(dtypes), {{"a", std::move(a)}, {"b", std::move(b)}},
                            std::move(options)));
  };
  const Json bfloat16 = Json::array({"bfloat16"});
  const Json a{{"shape", {40, 72}}}, b{{"shape", {72, 56}}}, bias{{"shape", {56}}};
  add("bias_in_vectors", kFloats, a, b, {{"bias", bias}, {"activation", "gelu_tanh"}});
  add("crossed_in_vectors", Json::array({"float16"}), a, b, {{"out_dtype", "bfloat16"}});
  add("expression_in_vectors", bfloat16, a, b,
      {{"bias", bias}, {"epilogue", "x + r"}, {"operands", "r"}});
  cases.back()["inputs"]["x1"] = {{"shape", {40, 56}}};
  add("gate_of_single_elements", bfloat16, {{"shape", {37, 35}}}, {{"shape", {35, 66}}},
      {{"gated", "silu"}});
  add("gate_in_odd_rows", bfloat16, a, {{"shape", {72, 112}}}, {{"gated", "silu"}});
  cases.back()["outputs"] = {{"out", {{"strides", {57, 1}}}}};
}

// Everything done to a sum: activation or gate, C and bias with and without the others, and an
// expression of it.
Json gemm() {
  Json cases;
  for (const char* bias : {"none", "column", "row"}) {
    const auto with_bias = [&](Json options) {
      const int columns = options.contains("gated") ? 10 : 5;
      if (bias == std::string_view("column")) options["bias"] = {{"shape", {columns}}};
      if (bias == std::string_view("row")) options["bias"] = {{"shape", {3, 1}}};
      return options;
    };
    for (const Json& activation : kActivations)
      for (const bool c : {false, true}) {
        Json options = with_bias({{"activation", activation}});
        if (c) options["c"] = {{"shape", {3, 5}}};
        add_tiny_products(cases, join("epilogue_", activation.get<std::string>(), c, "_", bias),
                          options);
      }
    for (const char* gate : {"silu", "gelu", "gelu_tanh"})
      add_tiny_products(cases, join("gate_", gate, "_", bias), with_bias({{"gated", gate}}));
    for (const char* gate : {"none", "silu"}) {
      Json options = gate == std::string_view("none") ? Json::object() : Json{{"gated", gate}};
      options = with_bias(options);
      options["epilogue"] = "x + r";
      options["operands"] = "r";
      add_tiny_products(cases, join("expression_", gate, "_", bias), options,
                        {{"x1", {{"shape", {3, 5}}}}});
    }
  }
  add_products_in_vectors(cases);
  add_codes_in_words(cases);
  return {{"operator", "gemm"}, {"cases", cases}};
}

// Every activation and gate, and every activation of groups along k.
Json grouped_gemm() {
  Json cases;
  const auto add = [&](const char* option, const Json& value) {
    const Json inputs{{"a", {{"shape", {7, 4}}}},
                      {"b", {{"shape", {2, 4, option == std::string_view("gated") ? 10 : 5}}}}};
    const Json sizes{
        {"shape", {2}}, {"dtype", "int32"}, {"fill", {{"kind", "list"}, {"values", {3, 4}}}}};
    Json options{{option, value}, {"sizes", sizes}};
    add_products(cases, value.get<std::string>(), inputs, options);
    for (const Json& result : kFloats) {
      options["out_dtype"] = result;
      cases.push_back(last_case_of(join(value.get<std::string>(), "_float8_", result.dump()),
                                   kFloat8s, inputs, options));
    }
  };
  const Json along_k{{"a", {{"shape", {7, 4}}, {"strides", {1, 7}}}}, {"b", {{"shape", {4, 5}}}}};
  const Json depths{
      {"shape", {2}}, {"dtype", "int32"}, {"fill", {{"kind", "list"}, {"values", {1, 3}}}}};
  for (const Json& activation : kActivations) {
    add("activation", activation);
    add_products(cases, "along_k_" + activation.get<std::string>(), along_k,
                 {{"activation", activation}, {"sizes", depths}});
  }
  for (const char* gate : {"silu", "gelu", "gelu_tanh"}) add("gated", gate);
  return {{"operator", "grouped_gemm"}, {"cases", cases}};
}

// Every fusion, with parameters of the dtype of x and in float32.
Json layer_norm() {
  const Json inputs{{"x", {{"shape", {2, 3, 6}}, {"strides", {40, 12, 2}}}}};
  Json cases;
  for (const Json& activation : kActivations)
    for (int tensors = 0; tensors < 8; ++tensors)
      for (const bool wide : {false, true}) {
        Json parameter{{"shape", {6}}};
        if (wide) parameter["dtype"] = "float32";
        Json options{{"activation", activation}};
        if (tensors & 1) options["weight"] = parameter;
        if (tensors & 2) options["bias"] = parameter;
        if (tensors & 4) options["residual"] = {{"shape", {2, 3, 6}}};
        if (!wide || tensors & 3)
          cases.push_back(
              last_case_of(join("fusion_", activation.get<std::string>(), tensors, wide),
                           wide ? kHalves : kFloats, inputs, options));
      }
  return {{"operator", "layer_norm"}, {"cases", cases}};
}

// Every pair of dtypes, in vectors and at any strides.
Json binary() {
  const Json numbers{"float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8"};
  const Json divisors{{"kind", "uniform"}, {"low", 1}, {"high", 9}};
  Json cases;
  for (const Json& second : numbers)
    for (const bool strided : {false, true}) {
      Json a{{"shape", {2, 3}}};
      if (strided) a["strides"] = kNestedStrides;
      const Json b{{"shape", {2, 3}}, {"dtype", second}, {"fill", divisors}};
      cases.push_back(last_case_of(join("with_", second.get<std::string>(), strided), numbers,
                                   {{"a", a}, {"b", b}}, Json::object()));
      // In vectors one dtype, and some that differ.
      if (strided) continue;
      Json firsts = Json::array({second});
      if (second == "bfloat16") firsts.insert(firsts.end(), {"float32", "float16"});
      if (second == "float32") firsts.insert(firsts.end(), {"float16", "int64"});
      if (second == "int32") firsts.push_back("int64");
      cases.push_back(case_of(join("in_vectors_with_", second.get<std::string>()), firsts,
                              {{"a", a}, {"b", b}}, Json::object()));
    }
  return {{"operators", {"add", "subtract", "multiply", "divide", "maximum", "minimum"}},
          {"cases", cases}};
}

Json astype() {
  const Json all{"float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8",
                 "int16",   "int32",   "int64",    "uint8",         "bool"};
  Json cases;
  for (const Json& to : all)
    for (const bool strided : {false, true}) {
      Json x{{"shape", {2, 3}}, {"fill", {{"kind", "uniform"}, {"low", 0}, {"high", 1}}}};
      if (strided) x["strides"] = kNestedStrides;
      cases.push_back(last_case_of(join("to_", to.get<std::string>(), "_tiny", strided), all,
                                   {{"x", x}}, {{"dtype", to}}));
      if (strided) continue;
      cases.push_back(case_of(join("in_vectors_to_", to.get<std::string>()),
                              to == "float32" ? all : Json::array({"float32"}), {{"x", x}},
                              {{"dtype", to}}));
    }
  return {{"operator", "astype"}, {"cases", cases}};
}

Json gelu() {
  const Json x{{"shape", {2, 3}}, {"strides", kNestedStrides}};
  return {{"operator", "gelu"},
          {"cases", {case_of("by_tanh_strided", kFloats, {{"x", x}}, {{"approximate", "tanh"}})}}};
}

// Every number of threads a row may have, for ids in one line and not.
Json embedding() {
  Json cases;
  for (const char* id : {"int32", "int64"})
    for (const bool nested : {false, true})
      for (int64_t units = 1; units <= 32; units *= 2) {
        Json ids{{"shape", {2, 3}}, {"dtype", id}};
        if (nested) ids["strides"] = kNestedStrides;
        for (const auto& [dtype, vector] :
             {std::pair("float8_e4m3fn", 16), {"bfloat16", 8}, {"float32", 4}})
          for (const int64_t rest : {0, 1})  // one more element leaves no row aligned
            cases.push_back(
                case_of(join("units_", units, id, nested, rest), {dtype},
                        {{"ids", ids}, {"table", {{"shape", {10, units * vector + rest}}}}},
                        Json::object()));
      }
  return {{"operator", "embedding"}, {"cases", cases}};
}

// The answers of the variants that the case is for.
std::vector<op::Considered> rows_of(const Case& c, const std::vector<TensorView>& outputs,
                                    const op::Arguments& arguments, const DeviceInfo& device) {
  auto rows = c.op->explain(outputs, arguments, device).variants;
  if (c.has_tag("last")) rows.erase(rows.begin(), std::prev(rows.end()));
  return rows;
}

// Has the library kernels for every type that the case takes and returns?
bool is_compiled(const Case& c) {
  const auto known = [](const auto& tensor) { return simt::compiles(tensor.dtype); };
  return std::ranges::all_of(c.inputs, known) && std::ranges::all_of(infer_case(c), known) &&
         std::ranges::all_of(c.tensors, [&](const auto& t) { return !t || known(*t); });
}

}  // namespace

std::vector<Case> simt_cases() {
  std::vector<Case> all;
  for (Case& c : all_cases())
    if (c.has_tag("simt")) all.push_back(std::move(c));
  for (const Json& file :
       {gemm(), grouped_gemm(), layer_norm(), binary(), astype(), gelu(), embedding()})
    std::ranges::move(cases_of(file), std::back_inserter(all));
  std::erase_if(all, [](const Case& c) { return !is_compiled(c); });
  return all;
}

bool launches_the_same(const op::Plan& a, const op::Plan& b) {
  return std::ranges::equal(a.steps(), b.steps(), [](const op::Step& x, const op::Step& y) {
    return x.kernel == y.kernel && x.launch == y.launch;
  });
}

std::vector<op::Plan> plans_on_simt(const Case& c, const std::vector<TensorView>& outputs,
                                    const op::Arguments& arguments) {
  std::vector<op::Plan> plans;
  if (outputs[0].size() == 0) return plans;
  DeviceInfo device = device_info(Device::simt());
  for (const int sms : {device.num_sms, 1}) {
    device.num_sms = sms;
    for (auto& row : rows_of(c, outputs, arguments, device))
      if (row.accepted && std::ranges::none_of(plans, [&](const op::Plan& known) {
            return launches_the_same(known, *row.plan);
          }))
        plans.push_back(std::move(*row.plan));
  }
  return plans;
}

}  // namespace tensorcraft::test
