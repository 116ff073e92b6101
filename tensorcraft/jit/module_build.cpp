// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/module_build.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/jit/memory_library.hpp"
#include "tensorcraft/jit/work_folder.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCommand = "command ", kFile = "file ";
constexpr const char* kExportHeader = "tensorcraft/jit/export.hpp";

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_header(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kExportHeader, ignored);
}

// Beside the library as packages lay it out, or above it in a tree that is being worked on.
std::string find_headers(const ModuleSpec& spec, const std::string& library) {
  for (const std::string& path : spec.extra_include_paths)
    if (has_header(path)) return fs::absolute(path).string();
  fs::path above = fs::path(library).parent_path();
  for (int level = 0; level < 5 && above.has_relative_path(); ++level) {
    for (const fs::path& folder : {above / "include", above})
      if (has_header(folder)) return folder.string();
    above = above.parent_path();
  }
  fail(ErrorKind::unsupported, "load_jit: ", module_name(spec),
       " needs the headers of TensorCraft, "
       "and there is no ",
       kExportHeader, " near ", library.empty() ? "the program" : library,
       "; install the wheel, which has them, or give the include folder of the C++ package in "
       "extra_include_paths");
}

// The text of the CUDA files, in which LaunchKernel launches their functions.
std::string cuda_text(const ModuleSpec& spec) {
  return "#include \"tensorcraft/kernels/launch.cuh\"\n" +
         wrapper_text(spec.cuda_files, spec.cuda_wrappers);
}

bool names_architecture(const ModuleSpec& spec) {
  return std::ranges::any_of(spec.extra_cuda_cflags, [](const std::string& flag) {
    return flag.starts_with("-arch") || flag.starts_with("-gencode") ||
           flag.starts_with("--gpu-architecture") || flag.starts_with("--generate-code");
  });
}

std::string arch_of_machine() {
  constexpr const char* kWithoutGpu = "sm_90a";
  return cuda_device_count() > 0 ? device_info(Device::cuda(0)).arch() : kWithoutGpu;
}

using Command = std::vector<std::string>;

void append(Command& command, const std::vector<std::string>& words) {
  command.insert(command.end(), words.begin(), words.end());
}

// The include folders, what is read and what is written.
void append_compile(Command& command, const ModuleSpec& spec, const ModuleTools& tools,
                    const std::string& suffix) {
  const std::string stem = file_stem(spec);
  for (const std::string& path : spec.extra_include_paths)
    command.push_back("-I" + fs::absolute(path).string());
  append(command, {"-I" + tools.headers, "-MD", "-MF", stem + suffix + ".d", "-c", stem + suffix,
                   "-o", stem + suffix + ".o"});
}

std::string text_of(const Command& command) {
  std::string text;
  for (const std::string& word : command) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

// The absolute paths of a rule as compilers write it: "x.o: a.cpp \ b.hpp", a blank in a name as
// "\ ". Those of the system belong to the compiler.
void add_files(std::set<std::string>& files, const std::string& rule) {
  std::string word;
  const auto take = [&] {
    if (word.starts_with('/') && !word.starts_with("/usr/") && !word.ends_with(':'))
      files.insert(std::exchange(word, {}));
    word.clear();
  };
  for (size_t i = 0; i < rule.size(); ++i) {
    if (rule[i] == '\\' && i + 1 < rule.size() && rule[i + 1] == ' ')
      word += rule[++i];
    else if (rule[i] == ' ' || rule[i] == '\n' || rule[i] == '\\')
      take();
    else
      word += rule[i];
  }
  take();
}

[[noreturn]] void fail_to_build(const ModuleSpec& spec, const Command& command,
                                const std::string& log) {
  fail(ErrorKind::compile, "load_jit: ", module_name(spec), " does not compile: ", trimmed_log(log),
       "\n  command: ", text_of(command), "\nIts whole output:\n", log);
}

// The place where compilers run: that of the user, or one that is gone afterwards.
WorkFolder work_folder(const ModuleSpec& spec) {
  if (spec.build_directory.empty()) return WorkFolder("load_jit");
  return WorkFolder("load_jit", spec.build_directory);
}

}  // namespace

ModuleTools find_tools(const ModuleSpec& spec) {
  ModuleTools tools{.library = own_library(), .arch = arch_of_machine()};
  const auto host = find_host_compiler(config().search_path);
  if (!host)
    fail(ErrorKind::unsupported, "load_jit: ", module_name(spec),
         " needs a C++ compiler, and there "
         "is no g++, clang++ or c++ in the folders of PATH; install g++");
  tools.host = *host;
  tools.headers = find_headers(spec, tools.library);
  if (spec.cuda_files.empty()) return tools;
  constexpr std::string_view kNvcc[] = {"nvcc"};
  tools.nvcc = find_executable(config().search_path + ":/usr/local/cuda/bin", kNvcc);
  if (!tools.nvcc)
    fail(ErrorKind::unsupported, "load_jit: ", module_name(spec),
         " has cuda_files, and there is no "
         "nvcc in the folders of PATH or in /usr/local/cuda/bin; install the CUDA toolkit, or give "
         "the device text to tc.kernel, which needs no nvcc");
  return tools;
}

std::string file_stem(const ModuleSpec& spec) {
  constexpr size_t kMost = 100;
  std::string stem = module_name(spec).substr(0, kMost);
  std::ranges::replace_if(stem, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return stem;
}

std::vector<Command> build_commands(const ModuleSpec& spec, const ModuleTools& tools) {
  const std::string stem = file_stem(spec);
  std::vector<Command> commands;
  Command link{(tools.nvcc ? *tools.nvcc : tools.host).path, "-shared"};
  if (!spec.cpp_files.empty()) {
    Command& compile = commands.emplace_back(Command{tools.host.path, "-std=c++20", "-O3"});
    append(compile, spec.extra_cflags);
    compile.push_back("-fPIC");
    append_compile(compile, spec, tools, ".cpp");
    link.push_back(stem + ".cpp.o");
  }
  if (tools.nvcc) {
    Command& compile = commands.emplace_back(
        Command{tools.nvcc->path, "-std=c++20", "-O3", "--expt-relaxed-constexpr"});
    append(compile, spec.extra_cuda_cflags);
    if (!names_architecture(spec)) compile.push_back("-arch=" + tools.arch);
    append(compile, {"-Xcompiler", "-fPIC"});
    append_compile(compile, spec, tools, ".cu");
    link.push_back(stem + ".cu.o");
  }
  if (!tools.library.empty()) {
    if (tools.nvcc) link.push_back("-Xlinker");  // it knows files by the end of their names
    link.push_back(tools.library);
  }
  append(link, {"-o", stem + ".so"});
  append(link, spec.extra_ldflags);
  commands.push_back(link);
  return commands;
}

std::string module_key(const ModuleSpec& spec, const ModuleTools& tools) {
  Sha256 hash;
  hash.field("tensorcraft module").field(std::to_string(kCacheFormat)).field(version());
  for (const Executable* program : {&tools.host, tools.nvcc ? &*tools.nvcc : nullptr})
    if (program)
      hash.field(program->path)
          .field(std::to_string(program->bytes))
          .field(std::to_string(program->modified_ns));
  for (const Command& command : build_commands(spec, tools)) hash.field(text_of(command));
  hash.field(wrapper_text(spec.cpp_files, spec.cpp_wrappers));
  hash.field(cuda_text(spec));
  for (const auto* files : {&spec.cpp_files, &spec.cuda_files})
    for (const std::string& file : *files) hash.field(content_of(file));
  return hash.hex();
}

CacheEntry build(const ModuleSpec& spec, const ModuleTools& tools, const std::string& key) {
  const WorkFolder folder = work_folder(spec);
  const auto begin = std::chrono::steady_clock::now();
  const std::string stem = file_stem(spec);
  std::string log;
  std::set<std::string> files;
  if (!spec.cpp_files.empty())
    folder.write(stem + ".cpp", wrapper_text(spec.cpp_files, spec.cpp_wrappers));
  if (!spec.cuda_files.empty()) folder.write(stem + ".cu", cuda_text(spec));
  for (const Command& command : build_commands(spec, tools)) {
    if (!folder.run(command)) fail_to_build(spec, command, folder.log());
    log += join(kCommand, text_of(command), "\n");
  }
  std::string image = folder.read(stem + ".so");
  if (image.empty()) fail_to_build(spec, build_commands(spec, tools).back(), folder.log());
  for (const char* suffix : {".cpp.d", ".cu.d"}) add_files(files, folder.read(stem + suffix));
  for (const std::string& file : files)
    log += join(kFile, sha256_hex(content_of(file)), " ", file, "\n");
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  return {.signature = join(module_name(spec), "_hash", key.substr(0, 16)),
          .arch = std::string(kModuleArch),
          .image = std::move(image),
          .log = log,
          .created = std::time(nullptr),
          .milliseconds = elapsed.count()};
}

namespace {

// The rest of each line of a log that begins so.
std::vector<std::string> lines_of(const std::string& log, std::string_view head) {
  std::vector<std::string> rest;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(head)) rest.push_back(line.substr(head.size()));
  return rest;
}

}  // namespace

bool is_fresh(const CacheEntry& entry) {
  return std::ranges::all_of(lines_of(entry.log, kFile), [](const std::string& line) {
    const size_t blank = line.find(' ');
    return blank != line.npos &&
           sha256_hex(content_of(line.substr(blank + 1))) == line.substr(0, blank);
  });
}

std::vector<std::string> commands_of(const CacheEntry& entry) {
  return lines_of(entry.log, kCommand);
}

std::vector<std::string> files_of(const CacheEntry& entry) {
  std::vector<std::string> files = lines_of(entry.log, kFile);
  for (std::string& line : files) line.erase(0, line.find(' ') + 1);
  return files;
}

}  // namespace tensorcraft::jit
