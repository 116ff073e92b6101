// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/simt/instrumentation.hpp"
#include "tests/support/simt_cases.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace tensorcraft::test {
namespace {

using Json = nlohmann::json;
using Random = std::mt19937_64;
constexpr uint64_t kUsualSeed = 1;
constexpr size_t kCount = 60;

// Its numbers and so its cases are the same with every standard library.
Random random_of(uint64_t seed, std::string_view op) {
  const std::string text = join(seed, op);
  std::seed_seq words(text.begin(), text.end());
  return Random(words);
}

template <class List>
const auto& one_of(const List& list, Random& random) {
  return list[random() % list.size()];
}

bool has_range(const Json& values) {
  return *std::ranges::min_element(values) != *std::ranges::max_element(values);
}

// Cases whose sweep has a range, of those for the emulator.
std::vector<Json> ranges_of(const std::string& op) {
  static const std::vector<Json> entries = entries_of_all_files("cases");
  std::vector<Json> all;
  for (const Json& entry : entries) {
    const Json tags = entry.value("tags", Json::array()), sweep = entry.value("sweep", Json());
    if (std::ranges::count(entry["operators"], Json(op)) &&
        std::ranges::count(tags, Json("simt")) && !std::ranges::count(tags, Json("fixed")) &&
        std::ranges::any_of(sweep, has_range))
      all.push_back(entry);
  }
  return all;
}

// The valid call of an operator takes every size, and says nothing of its error.
std::vector<Json> calls_of(const std::string& op) {
  static const std::vector<Json> calls = entries_of_all_files("calls");
  std::vector<Json> all;
  for (Json call : calls) {
    if (!std::ranges::count(call["operators"], Json(op))) continue;
    for (Json& sizes : call["sweep"]) sizes = {1, 40};
    call.update({{"name", "call"},
                 {"tags", {"simt"}},
                 {"dtypes", {"float32", "float16", "bfloat16"}},
                 {"reduction", 2048},
                 {"rounds_inside", true}});
    all.push_back(std::move(call));
  }
  return all;
}

// Between the least and the largest value; half of them are values of the list, so edges remain.
int64_t number_between(const Json& values, Random& random) {
  if (random() % 2) return one_of(values, random).template get<int64_t>();
  const auto least = std::ranges::min_element(values)->get<int64_t>(),
             largest = std::ranges::max_element(values)->get<int64_t>();
  return least + int64_t(random() % uint64_t(largest - least + 1));
}

Case drawn(Json entry, const std::string& op, Random& random) {
  for (Json& values : entry["sweep"]) values = {number_between(values, random)};
  entry["dtypes"] = {one_of(entry.value("dtypes", Json{"float32"}), random)};
  entry["operators"] = {op};
  return std::move(cases_of({{"cases", {std::move(entry)}}}).front());
}

// A call that the operator refuses is no case.
bool is_legal(const Case& c) {
  try {
    const auto rows = explain_case(c, device_info(Device::simt())).variants;
    return std::ranges::any_of(rows, &op::Considered::accepted);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<Case> drawn_cases(const op::Operator& op, uint64_t seed) {
  const std::string name(op.description().name);
  std::vector<Json> entries = ranges_of(name);
  if (entries.empty()) entries = calls_of(name);
  Random random = random_of(seed, name);
  std::set<std::string> known;
  std::vector<Case> all;
  for (size_t tries = 0; all.size() < kCount && tries < 10 * kCount; ++tries) {
    Case c = drawn(one_of(entries, random), name, random);
    if (known.insert(c.name).second && is_legal(c)) all.push_back(std::move(c));
  }
  return all;
}

std::vector<Case> usual_drawn_cases() {
  std::vector<Case> all;
  if (!simt::compiles(DType::float16)) return all;
  for (const op::Operator* op : operators())
    std::ranges::move(drawn_cases(*op, kUsualSeed), std::back_inserter(all));
  return all;
}

}  // namespace tensorcraft::test
