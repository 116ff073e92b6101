// SPDX-License-Identifier: Apache-2.0
#include "cli/results.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace tensorcraft::cli {
namespace {

constexpr const char* kAll = "all operators";

// The number of a rung by its file in the operator's folder: "tensorcraft/ops/gemm/07_swizzled.cuh"
// is that of swizzled, and of swizzled_tf32. Else npos.
size_t rung_by_file(const std::string& op, const std::string& variant) {
  const std::string folder = "tensorcraft/ops/" + op + "/";
  for (int i = 0; i < jit::kNumEmbedded; ++i) {
    const std::string_view path = jit::kEmbedded[i].name;
    if (!path.starts_with(folder)) continue;
    const std::string_view file = path.substr(folder.size());  // "07_swizzled.cuh"
    const size_t number = file.find_first_not_of("0123456789"), end = file.rfind('.');
    if (number == 0 || number >= end || file[number] != '_') continue;
    const std::string_view idea = file.substr(number + 1, end - number - 1);
    if (variant == idea || variant.starts_with(std::string(idea) + "_"))
      return std::stoul(std::string(file.substr(0, number)));
  }
  return std::string::npos;
}

// The place of a variant in a ladder: by its file, else, in families that share a folder, from the
// last choice to the first. One that this library does not know comes last.
std::pair<size_t, size_t> rung_of(const std::string& op, const std::string& variant) {
  const size_t rung = rung_by_file(op, variant);
  for (const op::Operator* known : operators()) {
    const auto& variants = known->description().variants;  // best first
    if (known->description().name != op) continue;
    const auto found = std::ranges::find(variants, variant, &op::VariantInfo::name);
    return {rung, found == variants.end() ? variants.size() + 1 : size_t(variants.end() - found)};
  }
  return {rung, 0};
}

size_t place_of_peer(const std::string& peer) {
  constexpr std::array<std::string_view, 8> kOrder = {
      "copy",     "cublaslt", "cublaslt+kernel", "cudnn",
      "cusparse", "torch",    "torch.compile",   "numpy"};
  return size_t(std::ranges::find(kOrder, peer) - kOrder.begin());
}

std::vector<bench::Row> sorted_rows(const ResultCase& c) {
  std::vector<bench::Row> rows = c.rows;
  std::ranges::stable_sort(rows, {}, [&c](const bench::Row& m) {
    return m.is_ours() ? std::pair(size_t{0}, rung_of(c.op, m.variant))
                       : std::pair(1 + place_of_peer(m.candidate), std::pair(size_t{0}, size_t{0}));
  });
  return rows;
}

double rounded(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return std::strtod(text.data(), nullptr);
}

// A count, without a fraction in its text.
Json whole(double value) {
  constexpr double kExact = 0x1p53;
  return value < kExact ? Json(int64_t(value)) : Json(value);
}

Json to_json(const bench::Row& m, const std::string& timing) {
  Json json{{"candidate", m.candidate}};
  if (!m.variant.empty()) json["variant"] = m.variant;
  if (m.timing != timing && !m.timing.empty()) json["timing"] = m.timing;
  if (m.chosen) json["chosen"] = true;
  if (!m.is_measured()) {
    json["error"] = m.error;
    return json;
  }
  json["median_us"] = rounded(m.median_us);
  if (m.p10_us > 0) json["p10_us"] = rounded(m.p10_us);
  if (m.p90_us > 0) json["p90_us"] = rounded(m.p90_us);
  if (m.runs > 0) json["runs"] = m.runs;
  if (m.bytes > 0) json["gbs"] = rounded(m.bytes / m.median_us * 1e-3);
  if (m.flops > 0) json["tflops"] = rounded(m.flops / m.median_us * 1e-6);
  return json;
}

// Returns what limits a problem, from its operations for each byte and the device's figures.
std::string bound_of(const bench::Row& m, const std::string& dtype, const Json& device) {
  if (m.bytes <= 0) return m.flops > 0 ? "flops" : "";
  const double bandwidth = device.value("bandwidth_gbs", 0.0);
  const Json peaks = device.value("peak_tflops", Json::object());
  const double peak = peaks.is_object() ? peaks.value(dtype, 0.0) : 0.0;
  if (bandwidth <= 0 || peak <= 0) return "bytes";
  return m.flops / m.bytes > peak * 1e3 / bandwidth ? "flops" : "bytes";
}

// Takes the first row that has a figure, in the order of the page.
std::string bound_of(const ResultCase& c, const Json& device) {
  const auto rows = sorted_rows(c);
  const auto measured = std::ranges::find_if(rows, &bench::Row::is_measured);
  return bound_of(measured == rows.end() ? bench::Row{} : *measured, c.dtype, device);
}

// A copy moves the same bytes and computes nothing: it is a bound, which no candidate loses to.
bool is_rival(const std::string& peer) { return peer != "copy"; }

Json to_json(const ResultCase& c, const Json& device) {
  const auto rows = sorted_rows(c);
  const auto measured = std::ranges::find_if(rows, &bench::Row::is_measured);
  const bench::Row any = measured == rows.end() ? bench::Row{} : *measured;
  Json json{{"op", c.op},
            {"case", c.name},
            {"shape", c.shape},
            {"dtype", c.dtype},
            {"options", c.options},
            {"timing", c.timing()},
            {"cache", c.cache},
            {"bytes", whole(any.bytes)},
            {"flops", whole(any.flops)},
            {"bound", bound_of(any, c.dtype, device)}};
  Json ratios = Json::object(), loses_to = Json::array(), all = Json::array();
  const bench::Row* ours = c.ours();
  if (ours) json["variant"] = ours->variant;
  if (ours) json["median_us"] = rounded(ours->median_us);
  if (ours && c.floor_us > 0) json["of_floor"] = rounded(c.floor_us / ours->median_us);
  if (c.floor_us > 0) json["floor_us"] = rounded(c.floor_us);
  for (const bench::Row& m : rows) {
    all.push_back(to_json(m, c.timing()));
    const double ratio = c.ratio_to(m);
    if (ratio == 0) continue;
    ratios[m.candidate] = rounded(ratio);
    if (ratio < 1 && is_rival(m.candidate)) loses_to.push_back(m.candidate);
  }
  json["ratios"] = ratios;
  json["loses_to"] = loses_to;
  json["rows"] = all;
  return json;
}

// The ratios of one operator to one peer.
struct Comparison {
  double log_sum = 0, smallest = HUGE_VAL;
  int count = 0, losing = 0, missing = 0;

  void add(double ratio) {
    log_sum += std::log(ratio);
    smallest = std::min(smallest, ratio);
    losing += ratio < 1;
    ++count;
  }
};

Json to_json(const char* kind, const std::string& of, const std::string& peer,
             const Comparison& c) {
  Json json{{kind, of}, {"peer", peer}, {"count", c.count}, {"missing", c.missing}};
  if (!c.count) return json;
  json["geomean"] = rounded(std::exp(c.log_sum / c.count));
  json["smallest"] = rounded(c.smallest);
  if (is_rival(peer)) json["losing"] = c.losing;
  return json;
}

// Returns the means of the cases with the same `of`, which is the operator or the group, in the
// order of the cases; `all`: the name of a last line for all of them, empty for none. A peer that
// has no row has no line. A copy's time says nothing of problems that operations limit, so it has
// no mean of those.
Json geomeans_of(const std::vector<ResultCase>& cases, const Json& device, const char* kind,
                 std::string ResultCase::* of, const std::string& all) {
  std::map<std::string, std::map<std::pair<size_t, std::string>, Comparison>> comparisons;
  std::vector<std::string> order;
  for (const ResultCase& c : cases) {
    if ((c.*of).empty()) continue;
    if (std::ranges::find(order, c.*of) == order.end()) order.push_back(c.*of);
    const bool computes = bound_of(c, device) == "flops";
    for (const bench::Row& m : c.rows) {
      if (m.is_ours() || (computes && !is_rival(m.candidate))) continue;
      const std::pair peer(place_of_peer(m.candidate), m.candidate);
      for (const std::string& one : {c.*of, all}) {
        Comparison& comparison = comparisons[one][peer];
        if (const double ratio = c.ratio_to(m); ratio > 0)
          comparison.add(ratio);
        else
          ++comparison.missing;
      }
    }
  }
  Json means = Json::array();
  if (!all.empty()) order.push_back(all);
  for (const std::string& one : order)
    for (const auto& [peer, comparison] : comparisons[one])
      means.push_back(to_json(kind, one, peer.second, comparison));
  return means;
}

// In the order of their first rows.
std::vector<ResultCase> cases_of(const std::vector<bench::Row>& rows) {
  std::vector<ResultCase> cases;
  std::map<std::string, size_t> index;
  for (const bench::Row& row : rows) {
    const std::string key = joined({row.op, row.name, row.shape, row.dtype, row.options, row.cache},
                                   std::string_view("\0", 1));
    const auto [place, is_new] = index.try_emplace(key, cases.size());
    if (is_new)
      cases.push_back(
          {row.op, row.name, row.shape, row.dtype, row.options, row.group, row.cache, 0, {}});
    ResultCase& c = cases[place->second];
    c.floor_us = std::max(c.floor_us, row.floor_us);
    c.rows.push_back(row);
  }
  return cases;
}

}  // namespace

const bench::Row* ResultCase::ours() const {
  const auto is_ours = [](const bench::Row& m) { return m.is_ours(); };
  const auto chosen =
      std::ranges::find_if(rows, [](const bench::Row& m) { return m.is_ours() && m.chosen; });
  if (chosen != rows.end()) return chosen->is_measured() ? &*chosen : nullptr;
  if (std::ranges::count_if(rows, is_ours) != 1) return nullptr;
  const auto only = std::ranges::find_if(rows, is_ours);
  return only->is_measured() ? &*only : nullptr;
}

std::string ResultCase::timing() const {
  const auto says = std::ranges::find_if(rows, [](const auto& m) { return !m.timing.empty(); });
  if (const bench::Row* m = ours()) return m->timing;
  return says == rows.end() ? "" : says->timing;
}

double ResultCase::ratio_to(const bench::Row& peer) const {
  const bench::Row* m = ours();
  return m && !peer.is_ours() ? bench::ratio(*m, peer) : 0;
}

Json summary_of(const bench::Results& results, const std::string& file) {
  if (results.rows.empty())
    fail(ErrorKind::value, file, ": rows is empty, there is nothing to show");
  const std::vector<ResultCase> all = cases_of(results.rows);
  Json cases = Json::array();
  for (const ResultCase& c : all) cases.push_back(to_json(c, results.device));
  return {{"file", file},
          {"title", results.title},
          {"machine", results.machine},
          {"device", results.device},
          {"timing", results.timing},
          {"cases", cases},
          {"geomeans", geomeans_of(all, results.device, "op", &ResultCase::op, kAll)},
          {"groups", geomeans_of(all, results.device, "group", &ResultCase::group, {})},
          {"skipped", results.skipped}};
}

}  // namespace tensorcraft::cli
