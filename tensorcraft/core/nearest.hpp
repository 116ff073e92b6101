// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tensorcraft {

// The known word that `word` is most likely a misspelling of; empty if it is like none of them.
// Upper and lower case are alike.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);
// "; did you mean softmax?" for the end of an error about an unknown word; empty likewise.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace tensorcraft
