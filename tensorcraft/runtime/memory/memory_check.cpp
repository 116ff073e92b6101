// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/memory_check.hpp"

#include "tensorcraft/core/error.hpp"

#include <execinfo.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace tensorcraft::memory {
namespace {

std::vector<void*> call_stack() {
  constexpr int kMost = 32;
  std::vector<void*> frames(kMost);
  frames.resize(size_t(backtrace(frames.data(), kMost)));
  return frames;
}

std::string text_of(const char* what, const std::vector<void*>& frames) {
  if (frames.empty()) return {};
  const std::unique_ptr<char*, void (*)(void*)> names(
      backtrace_symbols(frames.data(), int(frames.size())), std::free);
  std::string text = join("\n  ", what, " at");
  for (size_t i = 0; names && i < frames.size(); ++i) text += join("\n    ", names.get()[i]);
  return text;
}

}  // namespace

void MemoryCheck::hand_out(const Chunk& chunk, StreamRef stream, bool is_recorded) {
  std::byte* const data = chunk.data + zone();
  Past& past = pasts_[data];
  past = {chunk.requested, call_stack(), {}};
  if (is_recorded) return;  // the graph would run it each time
  device_.fill(chunk.data, kZone, zone(), stream);
  device_.fill(data, kPoison, chunk.requested, stream);
  device_.fill(data + chunk.requested, kZone, chunk.bytes - zone() - chunk.requested, stream);
}

// ": N bytes from offset O on" if there are some; empty if all are as expected.
std::string MemoryCheck::changed(const std::byte* from, size_t bytes, unsigned char expected,
                                 StreamRef stream) {
  std::vector<unsigned char> seen(bytes);
  device_.copy(seen.data(), from, bytes, stream);
  device_.synchronize(stream);
  const auto differs = [&](unsigned char byte) { return byte != expected; };
  const auto first = std::ranges::find_if(seen, differs);
  if (first == seen.end()) return {};
  return join(std::ranges::count_if(seen, differs), " bytes, the first at offset ",
              first - seen.begin());
}

MemoryCheck::Finding MemoryCheck::take_back(Chunk& chunk, StreamRef stream) {
  Finding found;
  std::byte* const data = chunk.data + zone();
  Past& past = pasts_[data];
  past.freed = call_stack();
  const auto report = [&](const void* block, const std::string& what, const std::string& where) {
    if (where.empty() || !found.wrong.empty()) return;
    found.wrong = join("the block of ", pasts_[block].bytes, " bytes at ", block, " on ",
                       device_.name(), what, where, this->past(block));
  };
  const size_t behind = chunk.bytes - zone() - chunk.requested;
  report(data, " was written to before its begin: ", changed(chunk.data, zone(), kZone, stream));
  report(data,
         " was written to after its end: ", changed(data + chunk.requested, behind, kZone, stream));
  device_.fill(data, kPoison, chunk.requested, stream);
  quarantine_.push_back({&chunk, stream});
  if (quarantine_.size() <= options_.quarantine) return found;
  const Kept oldest = quarantine_.front();
  quarantine_.pop_front();
  std::byte* const old = oldest.chunk->data + zone();
  report(old, " was written to after it was freed: ",
         changed(old, oldest.chunk->requested, kPoison, stream));
  found.leaving = oldest.chunk;
  return found;
}

std::vector<Chunk*> MemoryCheck::empty_quarantine() {
  std::vector<Chunk*> chunks;
  chunks.reserve(quarantine_.size());
  for (const Kept& kept : quarantine_) chunks.push_back(kept.chunk);
  quarantine_.clear();
  return chunks;
}

std::string MemoryCheck::past(const void* data) const {
  const auto known = pasts_.find(data);
  if (known == pasts_.end()) return {};
  return text_of("allocated", known->second.allocated) + text_of("freed", known->second.freed);
}

}  // namespace tensorcraft::memory
