// SPDX-License-Identifier: Apache-2.0
#include "bench/results.hpp"

#include "bench/regression.hpp"
#include "tests/bench/expect_mention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tensorcraft::bench {
namespace {

using test::expect_mention;

Row row(const std::string& candidate, double median, const std::string& variant = "",
        bool chosen = false) {
  Row row{.op = "softmax", .name = "4x8 float32", .shape = "4x8", .dtype = "float32"};
  row.candidate = candidate;
  row.variant = variant;
  row.chosen = chosen;
  row.timing = "events";
  row.cache = "cold";
  row.median_us = median;
  row.runs = median > 0 ? 7 : 0;
  row.bytes = 2e6;
  row.flops = 4e6;
  return row;
}

Results results(std::vector<Row> rows) {
  Results all{"title", Json{{"gpu", "g"}}, Json{{"arch", "sm_90a"}}, Json{{"warmup_s", 1}}, {}, {}};
  all.rows = std::move(rows);
  return all;
}

TEST(Row, HasTheMedianAndTheSpreadOfItsTimes) {
  Row r = row("copy", 0);
  set_times(r, {9, 1, 5, 3, 7, 2, 8, 4, 6, 10});
  EXPECT_EQ(r.median_us, 5.5);
  EXPECT_EQ(r.p10_us, 2);
  EXPECT_EQ(r.p90_us, 10);
  EXPECT_EQ(r.runs, 10);
  set_times(r, {3});
  EXPECT_EQ(r.median_us, 3);
  EXPECT_DOUBLE_EQ(row("copy", 4).gbs(), 500);
  EXPECT_DOUBLE_EQ(row("copy", 4).tflops(), 1);
}

TEST(Row, AskedOfAMachineThatCannotIsNoFailure) {
  Row r = row("cudnn", 0);
  r.error = "n/a: libcudnn.so.9 cannot be opened";
  EXPECT_FALSE(r.failed());
  r.error = "out of memory";
  EXPECT_TRUE(r.failed());
}

TEST(Results, HaveALineForEachFactAndRowAndSevenDigits) {
  Results all = results({row("copy", 1.0 / 3), row("torch", 8)});
  all.rows[0].floor_us = 2e-9 / 3;
  const std::string text = to_text(all);
  EXPECT_TRUE(text.starts_with("{\n \"schema\": 1,\n \"title\": \"title\",\n")) << text;
  EXPECT_TRUE(text.find("\n \"rows\": [\n  {\"op\": \"softmax\", ") != std::string::npos) << text;
  EXPECT_TRUE(text.find("\"median_us\": 0.3333333, ") != std::string::npos) << text;
  EXPECT_TRUE(text.find("\"floor_us\": 6.666667e-10, ") != std::string::npos) << text;
  EXPECT_TRUE(text.find("\"bytes\": 2000000.0, ") != std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("}\n ],\n \"skipped\": []\n}\n")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 12);
  EXPECT_EQ(parse_results(text, "it").rows[1].median_us, 8);
}

TEST(Results, AreWhatTheirFileSays) {
  Results before = results({row("tensorcraft", 10, "online", true), row("copy", 8)});
  before.rows[1].error = "a reason";
  before.rows[0].group = "odd shapes";
  before.rows[1].note = "algorithm 4";
  before.skipped = {"rope 1: there is no operator rope"};
  const Json json = to_json(before);
  EXPECT_EQ(json.at("schema"), 1);
  for (const char* key :
       {"op",        "case",   "shape",  "dtype", "options", "group", "candidate", "variant",
        "note",      "chosen", "timing", "cache", "bytes",   "flops", "floor_us",  "gbs",
        "median_us", "p10_us", "p90_us", "runs",  "tflops",  "error"})
    EXPECT_TRUE(json.at("rows")[0].contains(key)) << key;
  EXPECT_EQ(json.at("rows")[0].size(), 22u);  // a ratio is never stored
  EXPECT_TRUE(json.at("rows")[0].at("error").is_null());
  EXPECT_EQ(json.at("rows")[1].at("error"), "a reason");
  EXPECT_EQ(to_json(parse_results(json.dump(), "file")), json);
}

TEST(Results, OfAnotherFormAreRefused) {
  const auto refused = [](const std::string& text, const std::string& why) {
    expect_mention(ErrorKind::value, [&] { parse_results(text, "f.json"); }, why);
  };
  refused("{}", "f.json: names no schema, so tensorcraft bench did not write it");
  refused("[", "f.json:1:2: is not JSON: ");
  refused("{\"schema\": 1,\n\"machine\": {\"gpu\": " + std::string(100000, '[') +
              std::string(100000, ']') + "}}",
          "f.json:2:82: arrays and objects are nested more than 64 levels deep");
  Json json = to_json(results({}));
  EXPECT_TRUE(parse_results(json.dump(), "f.json").rows.empty());
  json["schema"] = 2;
  refused(json.dump(), "f.json: schema must be 1, which is all this command reads, got 2");
  const Row copy = row("copy", 8), ours = row("tensorcraft", 10, "online", true);
  refused(to_json(results({copy, ours, copy})).dump(),
          "f.json: rows[2] measures softmax 4x8 float32 by copy a second time");
  json = to_json(results({copy}));
  json["rows"][0]["runs"] = 0.5;
  refused(json.dump(), "f.json: rows[0].runs must be a whole number below 2^31, got 0.5");
}

TEST(ShareOfPeak, IsOfCasesThatOperationsLimit) {
  const Json device{{"bandwidth_gbs", 1000.0}};  // 2e6 bytes take 2 us
  Row ours = row("tensorcraft", 10, "online", true);
  ours.floor_us = 5;
  EXPECT_DOUBLE_EQ(share_of_peak(ours, device), 0.5);
  Row copy = ours, failed = ours;
  copy.candidate = "copy";
  failed.error = "a reason";
  EXPECT_EQ(share_of_peak(copy, device), 0);  // computes nothing
  EXPECT_EQ(share_of_peak(failed, device), 0);
  EXPECT_EQ(share_of_peak(ours, Json::object()), 0);
  ours.floor_us = 2;  // what the bytes take
  EXPECT_EQ(share_of_peak(ours, device), 0);
}

TEST(Ratio, IsOfRowsOfOneCaseThatWereTimedInOneWay) {
  const Row ours = row("tensorcraft", 10, "online", true), copy = row("copy", 8);
  Row other_way = copy, warm = copy;
  other_way.timing = "graph";
  warm.cache = "warm";
  EXPECT_DOUBLE_EQ(ratio(ours, copy), 0.8);
  EXPECT_EQ(ratio(ours, other_way), 0);
  EXPECT_EQ(peers_of(ours, {ours, other_way, warm}).size(), 1u);  // said, though without a ratio
  EXPECT_TRUE(compare(results({ours, other_way}), results({ours, other_way}), 0.05).empty());
}

TEST(Regression, ARatioThatFellByMoreThanTheToleranceIsNamed) {
  const Results before = results({row("tensorcraft", 10, "online", true), row("copy", 8)});
  const auto change_to = [&](double ours, double peer) {
    const auto changes = compare(
        results({row("tensorcraft", ours, "other", true), row("copy", peer)}), before, 0.05);
    EXPECT_EQ(changes.size(), 1u);
    return changes.at(0);
  };
  EXPECT_EQ(change_to(10, 8).kind, Change::Kind::same);
  EXPECT_EQ(change_to(10.4, 8).kind, Change::Kind::same);
  EXPECT_EQ(change_to(20, 16).kind, Change::Kind::same);  // the machine is slower, not ours
  const Change fell = change_to(11, 8);
  EXPECT_EQ(fell.kind, Change::Kind::fell);
  EXPECT_EQ(fell.what, "softmax 4x8 float32, chosen, against copy");
  EXPECT_DOUBLE_EQ(fell.before, 0.8);
  EXPECT_DOUBLE_EQ(fell.now, 8.0 / 11);
}

TEST(Regression, WhatIsMissingOnEitherSideIsSaid) {
  const Results before =
      results({row("tensorcraft", 10, "a", true), row("tensorcraft", 12, "b"), row("copy", 8)});
  const Results now =
      results({row("tensorcraft", 10, "a", true), row("tensorcraft", 12, "c"), row("copy", 8)});
  const auto changes = compare(now, before, 0.05);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].kind, Change::Kind::same);
  EXPECT_EQ(changes[1].kind, Change::Kind::only_now);
  EXPECT_EQ(changes[1].what, "softmax 4x8 float32, c, against copy");
  EXPECT_EQ(changes[2].kind, Change::Kind::only_before);
  EXPECT_EQ(changes[2].what, "softmax 4x8 float32, b, against copy");
}

TEST(Regression, ARowThatFailsNowFell) {
  const Results before = results({row("tensorcraft", 10, "a", true), row("copy", 8)});
  Results now = results({row("tensorcraft", 0, "a", true), row("copy", 8)});
  now.rows[0].error = "it does not compile";
  const auto changes = compare(now, before, 0.05);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].kind, Change::Kind::fell);
}

}  // namespace
}  // namespace tensorcraft::bench
