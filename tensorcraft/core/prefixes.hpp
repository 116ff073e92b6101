// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

// Folders that libraries opened at run time (NVRTC, oneDNN) may be installed in, besides the
// system's.
namespace tensorcraft {

// The folder of libtensorcraft.so; empty if the loader does not say.
std::filesystem::path own_folder();
// Installation prefixes: the one this library is installed under as a Python package, then those
// added. Python packages keep libraries in PREFIX/lib and PREFIX/lib/python3.X/site-packages.
std::vector<std::filesystem::path> prefixes();
// The Python package adds sys.prefix, since it may run from a build folder. Before the first use.
void add_prefix(const std::string& path);
// Folders called site-packages below a prefix.
std::vector<std::filesystem::path> site_packages(const std::filesystem::path& prefix);

}  // namespace tensorcraft
