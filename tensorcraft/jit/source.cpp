// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/source.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"

#include <map>
#include <mutex>

namespace tensorcraft::jit {
namespace {

using HeaderMap = std::map<std::string, std::shared_ptr<const Header>, std::less<>>;

struct Table {
  ForkSafeMutex mutex;
  HeaderMap headers;
  std::map<std::string, std::shared_ptr<const HeaderSet>, std::less<>> closures;
};

Table* make_table() {
  auto table = std::make_unique<Table>();
  for (int i = 0; i < kNumEmbedded; ++i) {
    const EmbeddedHeader& row = kEmbedded[i];
    table->headers[row.name] =
        std::make_shared<const Header>(Header{row.name, row.sha256, row.text});
  }
  return table.release();
}
Table& table() {
  static constinit FirstMade<Table, make_table> one;
  return *one;
}

std::string_view skip_blanks(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t");
  return at == text.npos ? std::string_view() : text.substr(at);
}

// The name in an `#include "name"` line, empty for any other line.
std::string_view included_name(std::string_view line) {
  line = skip_blanks(line);
  if (!line.starts_with('#')) return {};
  line = skip_blanks(line.substr(1));
  if (!line.starts_with("include")) return {};
  line = skip_blanks(line.substr(7));
  if (!line.starts_with('"')) return {};
  line.remove_prefix(1);
  return line.substr(0, line.find('"'));
}

// Adds what a text includes, and what that does.
void reach(const HeaderMap& headers, std::string_view text, HeaderMap& reached) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const auto found = headers.find(included_name(text.substr(0, end)));
    // An unknown name is left to the compiler, whose message is better.
    if (found != headers.end() && reached.insert(*found).second)
      reach(headers, found->second->text, reached);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
}

std::shared_ptr<const HeaderSet> as_set(const HeaderMap& headers) {
  auto set = std::make_shared<HeaderSet>();
  for (const auto& [name, one] : headers) set->push_back(one);
  return set;
}

}  // namespace

std::shared_ptr<const HeaderSet> include_closure(std::string_view header) {
  Table& sources = table();
  const std::lock_guard lock(sources.mutex);
  if (const auto known = sources.closures.find(header); known != sources.closures.end()) {
    return known->second;
  }
  const auto first = sources.headers.find(header);
  if (first == sources.headers.end()) {
    fail(ErrorKind::not_found, "jit: there is no device header named '", header,
         "'; the library holds ", sources.headers.size(),
         " headers, with names such as tensorcraft/device/base.h");
  }
  HeaderMap reached{*first};
  reach(sources.headers, first->second->text, reached);
  const std::shared_ptr<const HeaderSet> closure = as_set(reached);
  sources.closures.emplace(header, closure);
  return closure;
}

std::shared_ptr<const HeaderSet> include_closure_of(std::string_view text, const HeaderSet& own) {
  Table& sources = table();
  HeaderMap headers;
  {
    const std::lock_guard lock(sources.mutex);
    headers = sources.headers;
  }
  for (const auto& header : own) headers[header->name] = header;
  HeaderMap reached;
  reach(headers, text, reached);
  return as_set(reached);
}

void add_source(std::string_view path, std::string_view text) {
  auto header = std::make_shared<const Header>(
      Header{std::string(path), sha256_hex(text), std::string(text)});
  Table& sources = table();
  const std::lock_guard lock(sources.mutex);
  sources.headers[std::string(path)] = std::move(header);
  sources.closures.clear();
}

}  // namespace tensorcraft::jit
