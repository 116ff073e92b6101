// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::diagnose {

// The text of a .clangd file with which an editor reads device text: CUDA as language, the
// architecture ("sm_90a"), C++20, warnings, and `folders` to search for headers.
std::string clangd_config(std::string_view arch, std::span<const std::filesystem::path> folders);

// The folders of this library's headers and of a CUDA toolkit's, if they exist.
std::vector<std::filesystem::path> header_folders();

}  // namespace tensorcraft::diagnose
