// SPDX-License-Identifier: Apache-2.0
// A compiler with NVRTC's binary interface, for tests that need many quick compilations or have no
// NVRTC: TENSORCRAFT_NVRTC names this library. The image holds the source, by which the fake driver
// knows what to run, and depends on every byte of it and of its headers, so that a wrong one is
// noticed; or it is the file that TC_TEST_IMAGE names. A source or header with #error does not
// compile.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

struct Program {
  std::string text, image, log, source;
};

namespace {

constexpr size_t kImageBytes = 60000;
constexpr int kArchitectures[] = {80, 86, 89, 90, 100, 120};

uint64_t mix(uint64_t hash, const std::string& text) {
  for (const char c : text) hash = (hash ^ uint64_t(uint8_t(c))) * 0x100000001b3u;
  return hash;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 1;  // no real one: its kernels never answer for those of a compiler
  *minor = 0;
  return 0;
}

int nvrtcGetNumSupportedArchs(int* count) {
  *count = int(std::size(kArchitectures));
  return 0;
}

int nvrtcGetSupportedArchs(int* architectures) {
  std::memcpy(architectures, kArchitectures, sizeof(kArchitectures));
  return 0;
}

int nvrtcCreateProgram(Program** program, const char* source, const char*, int count,
                       const char* const* headers, const char* const*) {
  *program = new Program{source, {}, {}, source};
  for (int i = 0; i < count; ++i) (*program)->text += headers[i];
  return 0;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  // As long as a test asks for, since a kill must find something to interrupt.
  if (const char* const us = std::getenv("TC_TEST_COMPILE_US")) usleep(useconds_t(std::atoi(us)));
  if (program->text.find("#error") != std::string::npos) {
    program->log = "kernel.cu(1): error: #error directive\n";
    return 6;
  }
  uint64_t state = mix(0xcbf29ce484222325u, program->text);
  for (int i = 0; i < count; ++i) state = mix(state, options[i]);
  program->log = "ptxas info    : Used 16 registers\n";
  if (const char* const made_up = std::getenv("TC_TEST_IMAGE")) {
    std::ifstream file(made_up, std::ios::binary);
    program->image.assign(std::istreambuf_iterator<char>(file), {});
    return 0;
  }
  program->image =
      "\x7f"
      "ELF" +
      program->source + '\0';
  while (program->image.size() < kImageBytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    program->image.append(reinterpret_cast<const char*>(&state), sizeof(state));
  }
  return 0;
}

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->image.size();
  return 0;
}

int nvrtcGetCUBIN(Program* program, char* bytes) {
  std::memcpy(bytes, program->image.data(), program->image.size());
  return 0;
}

int nvrtcGetPTXSize(Program* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(Program* program, char* bytes) { return nvrtcGetCUBIN(program, bytes); }

int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}

int nvrtcGetProgramLog(Program* program, char* text) {
  std::memcpy(text, program->log.c_str(), program->log.size() + 1);
  return 0;
}

const char* nvrtcGetErrorString(int) { return "fake error"; }

}  // extern "C"
