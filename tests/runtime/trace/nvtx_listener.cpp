// SPDX-License-Identifier: Apache-2.0
// NVTX loads this in the place of a profiler: it writes each range into the file that
// TC_TEST_NVTX_FILE names, one per line, indented by how deep it lies.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

int depth = 0;

std::FILE* file() {
  static std::FILE* const one = std::fopen(std::getenv("TC_TEST_NVTX_FILE"), "w");
  return one;
}

int push(const char* name) {
  std::fprintf(file(), "%*s%s\n", depth, "", name);
  std::fflush(file());
  return depth++;
}

int pop() { return --depth; }

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
    return 0;
  if (size <= NVTX_CBID_CORE_RangePop) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
