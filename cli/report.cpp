// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
#include "cli/results.hpp"
#include "cli/roofline.hpp"
#include "cli/whole_file.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"

#include <map>
#include <memory>

namespace tensorcraft::cli {

// cli/report_page/ as one text, with {{names}} in the places of values; cmake/embed_page.cmake
// writes it.
extern const std::string_view kReportPage;

namespace {

struct ReportArguments {
  std::vector<std::string> files;
  std::string output = "report.html", csv;
};

std::string replaced(std::string_view text, const std::map<char, std::string_view>& by) {
  std::string to;
  for (const char c : text) {
    const auto found = by.find(c);
    if (found == by.end())
      to += c;
    else
      to += found->second;
  }
  return to;
}

std::string html_text(std::string_view text) {
  return replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}

// A < occurs within strings only, and as an escape it can end no script element.
std::string script_text(const Json& value) {
  return replaced(value.dump(-1, ' ', false, Json::error_handler_t::replace), {{'<', "\\u003c"}});
}

// One file's title, and where it was measured.
std::string title_of(const Json& files) {
  if (files.size() != 1) return "Benchmark results";
  const auto device = files[0]["device"].value("name", std::string());
  return files[0]["title"].get<std::string>() + (device.empty() ? "" : " on " + device);
}

std::string page_of(const Json& summary) {
  const Json& files = summary["files"];
  const std::string title = html_text(title_of(files));
  const std::map<std::string_view, std::string> values{
      {"title", title}, {"data", script_text(files)}, {"version", std::string(version())}};
  std::string page;
  size_t from = 0;
  for (size_t at; (at = kReportPage.find("{{", from)) != std::string_view::npos;) {
    const size_t end = kReportPage.find("}}", at);
    page += kReportPage.substr(from, at - from);
    page += values.at(kReportPage.substr(at + 2, end - at - 2));
    from = end + 2;
  }
  return page.append(kReportPage.substr(from));
}

std::string text_of(const Json& row, const char* key) { return row.at(key).get<std::string>(); }

std::string label_of(const Json& c) { return text_of(c, "op") + " " + text_of(c, "case"); }

std::string number_of(const Json& row, const char* key) {
  return row.contains(key) ? readable_number(row[key].get<double>()) : "-";
}

// Prints what is lost and what has no figure, one line each.
void print_shortfalls(Console& console, const Json& c) {
  for (const Json& peer : c["loses_to"]) {
    const auto name = peer.get<std::string>();
    console.print(console.colored(Color::yellow, "slower than ") + name + ": " + label_of(c) +
                  ", ratio " + number_of(c["ratios"], name.c_str()));
  }
  for (const Json& row : c["rows"]) {
    if (row.contains("timing") && row["candidate"] != "tensorcraft")
      console.print(console.colored(Color::red, "not compared with ") + text_of(row, "candidate") +
                    ": " + label_of(c) + ", timed by " + text_of(row, "timing") +
                    ", the others by " + text_of(c, "timing"));
    if (row.contains("error"))
      console.print(console.colored(Color::red, "no figure of ") +
                    row.value("variant", text_of(row, "candidate")) + ": " + label_of(c) + ", " +
                    text_of(row, "error"));
  }
}

void print_summary(Console& console, const Json& file) {
  console.print(console.colored(Color::bold, text_of(file, "title")));
  std::vector<std::vector<std::string>> table{
      {"operator", "peer", "geomean", "cases", "slower in", "smallest", "no ratio"}};
  for (const Json& g : file["geomeans"])
    table.push_back({text_of(g, "op"), text_of(g, "peer"), number_of(g, "geomean"),
                     number_of(g, "count"), number_of(g, "losing"), number_of(g, "smallest"),
                     number_of(g, "missing")});
  if (table.size() > 1) console.print_table(table);
  for (const Json& c : file["cases"]) print_shortfalls(console, c);
  for (const Json& reason : file["skipped"])
    console.print(console.colored(Color::red, "not run: ") + reason.get<std::string>());
}

int write(Console& console, const ReportArguments& a) {
  Json summary{{"page", a.output}, {"csv", a.csv}, {"files", Json::array()}};
  for (const std::string& file : a.files)
    summary["files"].push_back(summary_of(bench::read_results(file), file));
  const bool to_output = a.output == "-";
  if (!to_output) write_whole_file(a.output, page_of(summary));
  if (!a.csv.empty()) write_whole_file(a.csv, roofline_csv(summary["files"]));
  if (console.json) {
    console.print_json(summary);
  } else if (to_output) {
    console.print(page_of(summary));
  } else {
    for (const Json& file : summary["files"]) print_summary(console, file);
    console.print("wrote " + a.output + (a.csv.empty() ? "" : " and " + a.csv));
  }
  return kDone;
}

}  // namespace

Command report_command() {
  const auto a = std::make_shared<ReportArguments>();
  return {.name = "report",
          .help = "one HTML page of charts and tables from what bench measured",
          .options = {{"results", "JSON files that bench wrote", &a->files, true, true},
                      {"--output",
                       "the page; - is standard output (report.html)",
                       &a->output,
                       false,
                       true,
                       {},
                       "-o"},
                      {"--csv", "the points of the rooflines, one line each", &a->csv}},
          .run = [a](Console& console) { return write(console, *a); },
          .examples = {"report results.json --output report.html"}};
}

}  // namespace tensorcraft::cli
