// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// One device header in the library's data; the table is written by cmake/embed.cmake.
struct EmbeddedHeader {
  const char* name;    // "tensorcraft/device/base.h"
  const char* sha256;  // of the text
  const char* text;
};
extern const EmbeddedHeader kEmbedded[];
extern const int kNumEmbedded;

// A header NVRTC can be given.
struct Header {
  std::string name, sha256, text;
};
using HeaderSet = std::vector<std::shared_ptr<const Header>>;

// Every header reached from `header` by #include "..." lines, itself included, in the order of
// their names. Branches of the preprocessor are not followed, so the set may be larger than what
// one compilation reads, never smaller. Kind not_found if `header` itself does not exist.
std::shared_ptr<const HeaderSet> include_closure(std::string_view header);

// Likewise for a text that is no header of the library. `own` are further headers it may reach.
std::shared_ptr<const HeaderSet> include_closure_of(std::string_view text, const HeaderSet& own);

// Adds device text under the path that includes name it by, or replaces it; later closures and keys
// see the new text. The rungs of an operator outside the library's tree are given so.
void add_source(std::string_view path, std::string_view text);

}  // namespace tensorcraft::jit
