// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace tensorcraft::cli {

// Replaces a file by the text as a whole, or leaves it as it was; a link keeps pointing to it. What
// is no regular file, such as a pipe, is written into. Kind io if that fails.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace tensorcraft::cli
