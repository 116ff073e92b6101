// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt_cases.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/simt/instance.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensorcraft::test {
namespace {

using Json = nlohmann::json;

const Json kFloats{"float32", "float16", "bfloat16"};
const Json kActivations{"none", "relu", "gelu", "gelu_tanh", "silu"};
// Rows that no single stride describes.
const Json kNestedStrides{8, 2};

Json case_of(std::string name, Json dtypes, Json inputs, Json options) {
  return {{"name", std::move(name)},       {"dtypes", std::move(dtypes)},
          {"inputs", std::move(inputs)},   {"options", std::move(options)},
          {"tags", Json::array({"simt"})}, {"reduction", 8}};
}

// Every epilogue: activation, C and bias with and without the others.
Json gemm() {
  const Json inputs{{"a", {{"shape", {3, 4}}}}, {"b", {{"shape", {4, 5}}}}};
  Json cases;
  for (const Json& activation : kActivations)
    for (const bool c : {false, true})
      for (const bool bias : {false, true})
        for (const bool wide : {false, true}) {
          Json options{{"activation", activation}};
          if (c) options["c"] = {{"shape", {3, 5}}};
          if (wide && c) options["c"]["dtype"] = "float32";
          if (bias) options["bias"] = {{"shape", {5}}};
          if (wide) options["out_dtype"] = "float32";
          cases.push_back(case_of(join("epilogue_", activation.get<std::string>(), c, bias, wide),
                                  wide ? Json{"float16", "bfloat16"} : kFloats, inputs, options));
        }
  return {{"operator", "gemm"}, {"cases", cases}};
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
          cases.push_back(case_of(join("fusion_", activation.get<std::string>(), tensors, wide),
                                  wide ? Json{"float16", "bfloat16"} : kFloats, inputs, options));
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
      cases.push_back(case_of(join("with_", second.get<std::string>(), strided), numbers,
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
      cases.push_back(case_of(join("to_", to.get<std::string>(), "_tiny", strided), all, {{"x", x}},
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
  for (const Json& file : {gemm(), layer_norm(), binary(), astype(), gelu(), embedding()})
    std::ranges::move(cases_of(file), std::back_inserter(all));
  std::erase_if(all, [](const Case& c) { return !is_compiled(c); });
  return all;
}

bool launches_the_same(const op::Plan& a, const op::Plan& b) {
  return std::ranges::equal(a.steps(), b.steps(), [](const op::Step& x, const op::Step& y) {
    return x.kernel == y.kernel && x.launch == y.launch;
  });
}

std::vector<op::Plan> plans_on_simt(const Case& c, const CaseRun& run) {
  std::vector<op::Plan> plans;
  if (run.outputs()[0].size() == 0) return plans;
  DeviceInfo device = device_info(Device::simt());
  for (const int sms : {device.num_sms, 1}) {
    device.num_sms = sms;
    for (auto& row : c.op->explain(run.outputs(), run.arguments({}), device).variants)
      if (row.accepted && std::ranges::none_of(plans, [&](const op::Plan& known) {
            return launches_the_same(known, *row.plan);
          }))
        plans.push_back(std::move(*row.plan));
  }
  return plans;
}

}  // namespace tensorcraft::test
