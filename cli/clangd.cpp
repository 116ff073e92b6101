// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/diagnose/clangd.hpp"

#include <filesystem>
#include <fstream>
#include <memory>

namespace tensorcraft::cli {
namespace {

struct ClangdArguments {
  std::string output = ".clangd", arch;
  bool force = false;
};

// The architecture of the first usable GPU, else the oldest that the library supports.
std::string live_arch() {
  for (const Device device : devices())
    if (device.is_cuda()) return device_info(device).arch();
  return "sm_80";
}

int write(Console& console, const ClangdArguments& a) {
  const std::string arch = a.arch.empty() ? live_arch() : device_info_of_arch(a.arch).arch();
  const auto folders = diagnose::header_folders();
  const std::string text = diagnose::clangd_config(arch, folders);
  if (a.output != "-") {
    if (!a.force && std::filesystem::exists(a.output))
      fail(ErrorKind::value, a.output, " exists; --force replaces it");
    std::ofstream file(a.output);
    if (!(file << text).flush()) fail(ErrorKind::io, a.output, " cannot be written to");
  }
  if (console.json) {
    Json names = Json::array();
    for (const auto& folder : folders) names.push_back(folder.string());
    console.print_json(
        Json{{"file", a.output}, {"arch", arch}, {"include_folders", names}, {"text", text}});
  } else if (a.output == "-") {
    console.print(text.substr(0, text.size() - 1));
  } else {
    console.print("wrote " + a.output + " for " + arch);
  }
  return kDone;
}

}  // namespace

Command clangd_command() {
  const auto a = std::make_shared<ClangdArguments>();
  return {
      .name = "clangd",
      .help = "write a .clangd file with which an editor reads device code",
      .options = {{"--output", "the file; - is standard output (.clangd)", &a->output, false, true},
                  {"--arch", "such as sm_90a (the GPU at hand, else sm_80)", &a->arch},
                  {"--force", "replace a file that exists", &a->force}},
      .run = [a](Console& console) { return write(console, *a); },
      .examples = {"clangd --arch sm_90a", "clangd --output -"}};
}

}  // namespace tensorcraft::cli
