// SPDX-License-Identifier: Apache-2.0
// Runs the fuzz target without libFuzzer: safetensors_mutate [ITERATIONS] [SEED]; with TC_TEST_FULL
// set, twenty times as long. It mutates the parts of a header (length, key, offsets, shape, dtype)
// and single bytes, starting from known attacks, and stops when one parse holds more than 64 MiB.
#include "tests/fuzz/safetensors_seeds.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMaxLiveBytes = size_t(64) << 20;
constexpr size_t kMaxInputBytes = 4096;
size_t live_bytes = 0, peak_bytes = 0;

}  // namespace

// Not inlined: the compiler would take malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* block = std::malloc(bytes);
  if (!block) throw std::bad_alloc();
  live_bytes += malloc_usable_size(block);
  peak_bytes = std::max(peak_bytes, live_bytes);
  if (live_bytes > kMaxLiveBytes) {
    std::fputs("safetensors_mutate: more than 64 MiB are held\n", stderr);
    std::abort();
  }
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  live_bytes -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }

namespace {

using namespace tensorcraft::fuzz;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed), seeds_(seeds()) {}

  std::string next() {
    File file = pick(seeds_);
    for (size_t i = below(4); i > 0; --i) mutate(file);
    std::string bytes = bytes_of(file);
    for (size_t i = below(3); i > 0 && !bytes.empty(); --i) mutate_bytes(bytes);
    if (bytes.size() > kMaxInputBytes) bytes.resize(kMaxInputBytes);
    return bytes;
  }

 private:
  size_t below(size_t end) { return random_() % end; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  std::string number() {
    static const std::vector<std::string> edges = {"0",
                                                   "1",
                                                   "2",
                                                   "4",
                                                   "8",
                                                   "16",
                                                   "22",
                                                   "255",
                                                   "65536",
                                                   "4294967295",
                                                   "-1",
                                                   "1.0",
                                                   "1e1",
                                                   "NaN",
                                                   "2147483648",
                                                   "4294967296",
                                                   "4194305",
                                                   "null",
                                                   "00",
                                                   "\"1\"",
                                                   "",
                                                   "2305843009213693951",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "18446744073709551615",
                                                   "18446744073709551616"};
    return below(3) ? pick(edges) : std::to_string(below(64));
  }
  std::string numbers(size_t count) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) text += (i ? "," : "") + number();
    return text + "]";
  }

  void mutate(File& file) {
    static const std::vector<std::string> names = {
        "a", "b", "", "__metadata__", "\\u0061", "\\", "\xED\xA0\x80", "\\u0000", "dtype"};
    static const std::vector<std::string> dtypes = {"F32", "F16", "F4",   "F6_E2M3", "F64", "I8",
                                                    "C64", "U8",  "BOOL", "F8_E8M0", "",    "f32"};
    static const std::vector<std::string> extras = {"", R"("__metadata__":{})",
                                                    R"("__metadata__":{"a":"b","a":"c"})",
                                                    R"("x":{"y":[{}]})", ","};
    static const std::vector<std::string> tails = {"", " ", "\n", "}", std::string(1, '\0')};
    if (file.tensors.empty() || below(6) == 0) {
      file.tensors.push_back({pick(names), pick(dtypes), numbers(below(4)), numbers(2)});
      return;
    }
    Tensor& tensor = file.tensors[below(file.tensors.size())];
    switch (below(9)) {
      case 0:
        tensor.name = pick(names);
        break;
      case 1:
        tensor.dtype = pick(dtypes);
        break;
      case 2:
        tensor.shape = numbers(below(40));
        break;
      case 3:
        tensor.shape = numbers(below(3));
        break;
      case 4:
        tensor.offsets = numbers(below(8) ? 2 : below(4));
        break;
      case 5:
        file.length_error = int64_t(random_()) >> below(64);
        break;
      case 6:
        file.extra = pick(extras);
        break;
      case 7:
        file.tail = pick(tails);
        break;
      default:
        file.data_bytes = below(64);
        break;
    }
  }

  void mutate_bytes(std::string& bytes) {
    const size_t at = below(bytes.size());
    switch (below(4)) {
      case 0:
        bytes[at] = char(random_());
        break;
      case 1:
        bytes[at] = "{}[]\",:\\u0e-. "[below(14)];
        break;
      case 2:
        bytes.erase(at, 1 + below(8));
        break;
      default:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(64)));
        break;
    }
  }

  std::mt19937_64 random_;
  std::vector<File> seeds_;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t usual = std::getenv("TC_TEST_FULL") ? 20'000'000 : 1'000'000;
  const uint64_t iterations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : usual;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  for (const File& file : seeds()) {
    const std::string bytes = bytes_of(file);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  Mutator mutator(seed);
  for (uint64_t i = 0; i < iterations; ++i) {
    const std::string bytes = mutator.next();
    // Exactly as long as the input, so that a sanitizer sees a read one byte past it.
    const std::vector<uint8_t> input(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("safetensors_mutate: %llu inputs of seed %llu, at most %zu KiB held\n",
              static_cast<unsigned long long>(iterations), static_cast<unsigned long long>(seed),
              peak_bytes / 1024);
}
