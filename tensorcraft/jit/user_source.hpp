// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/jit/signature.hpp"
#include "tensorcraft/jit/source.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// All that a user's kernel is made of.
struct UserSource {
  std::string file;  // "axpy.cu": how messages of compilers call the text
  std::string text;
  KernelSignature signature;
  std::vector<KernelConstant> constants;
};

// The most bytes of a text.
inline constexpr size_t kMaxSourceBytes = size_t(16) << 20;

// One rung for all equal sources, kept for good, so that the caches of kernels know user's ones.
// Kind value for a text or a constant that cannot be one.
const Rung& rung_of(UserSource source);

// The text NVRTC compiles: the constants, the user's text as a header of its own, so that messages
// have its lines, and one entry that takes all arguments in a struct.
std::string entry_text(const UserSource& source, std::string_view arch);
// Likewise for a host compiler: a function of the entry's name that takes the struct's address.
std::string host_text(const UserSource& source);
// Every header that such a text reaches, the user's own text among them.
std::shared_ptr<const HeaderSet> headers_of(const UserSource& source, std::string_view text);
// How to mend what a compiler says at `error`, its first message, if that is of the entry:
// signature and text disagree. Empty for a message of the user's own lines.
std::string hint_for(const UserSource& source, std::string_view error);
// "user_mine__axpy": the name of the entry.
std::string entry_name(const UserSource& source);
// ".user_mine__axpy.cu": how compilers call its text; no file of a user begins with a dot.
std::string entry_file(const UserSource& source, std::string_view suffix);

}  // namespace tensorcraft::jit
