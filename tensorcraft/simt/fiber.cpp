// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/fiber.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <cerrno>
#include <cstring>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tensorcraft::simt {
namespace {

namespace context = boost::context::detail;

// Holds what begin() needs and a jump cannot carry.
struct Start {
  FiberEntry entry;
  void* argument;
};
constexpr size_t kStartBytes = 64;  // keeps the stack's alignment

size_t page_bytes() { return size_t(sysconf(_SC_PAGESIZE)); }

void before_switch([[maybe_unused]] Fiber& from, [[maybe_unused]] const Fiber& to,
                   [[maybe_unused]] bool last) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
}

void after_switch([[maybe_unused]] void* fake_stack, const context::transfer_t& transfer) {
  Fiber& previous = *static_cast<Fiber*>(transfer.data);
  previous.context = transfer.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, &previous.stack, &previous.stack_bytes);
#endif
}

void begin(context::transfer_t transfer) {
  const Fiber& self = *static_cast<Fiber*>(transfer.data)->next;
  const char* const end = static_cast<const char*>(self.stack) + self.stack_bytes;
  const Start start = *reinterpret_cast<const Start*>(end - kStartBytes);
  after_switch(nullptr, transfer);
  start.entry(start.argument);
}

void jump(Fiber& from, Fiber& to) {
  from.next = &to;
  after_switch(from.fake_stack, context::jump_fcontext(to.context, &from));
}

}  // namespace

void prepare_fiber(Fiber& fiber, FiberEntry entry, void* argument) {
  char* top = static_cast<char*>(const_cast<void*>(fiber.stack)) + fiber.stack_bytes - kStartBytes;
  const Start start{entry, argument};
  std::memcpy(top, &start, sizeof(start));
  fiber.context = context::make_fcontext(top, fiber.stack_bytes - kStartBytes, begin);
  fiber.fake_stack = nullptr;
}

void switch_fiber(Fiber& from, Fiber& to) {
  before_switch(from, to, false);
  jump(from, to);
}

void leave_fiber(Fiber& from, Fiber& to) {
  before_switch(from, to, true);
  jump(from, to);
}

Stacks::Stacks(size_t count, size_t bytes)
    : count_(count), bytes_(bytes), pitch_(bytes + page_bytes()) {
  void* memory = mmap(nullptr, count * pitch_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    fail(ErrorKind::out_of_memory, "simt: no memory for the stacks of ", count,
         " threads: ", std::strerror(errno));
  memory_ = static_cast<char*>(memory);
  for (size_t i = 0; i < count; ++i)
    if (mprotect(memory_ + i * pitch_, page_bytes(), PROT_NONE) != 0) {
      munmap(memory_, count_ * pitch_);
      fail(ErrorKind::out_of_memory,
           "simt: no guard page for the stack of a thread: ", std::strerror(errno),
           "; /proc/sys/vm/max_map_count may be too small");
    }
}

Stacks::~Stacks() {
  reset();
  munmap(memory_, count_ * pitch_);
}

char* Stacks::at(size_t i) const { return memory_ + i * pitch_ + page_bytes(); }

void Stacks::reset() {
#if defined(__SANITIZE_ADDRESS__)
  // Else the next user of these addresses would "overflow" frames that are gone.
  for (size_t i = 0; i < count_; ++i) __asan_unpoison_memory_region(at(i), bytes_);
#endif
}

namespace {
constexpr size_t kKept = 8;  // sets of stacks; a launch takes one for each OS thread
struct Kept {
  ForkSafeMutex mutex;
  std::vector<std::unique_ptr<Stacks>> all;
};
Kept& kept() {
  static constinit FirstMade<Kept> one;
  return *one;
}
}  // namespace

std::unique_ptr<Stacks> borrow_stacks(size_t count, size_t bytes) {
  {
    const std::lock_guard lock(kept().mutex);
    auto& all = kept().all;
    for (auto& stacks : all)
      if (stacks->count() >= count && stacks->bytes() == bytes) {
        std::swap(stacks, all.back());
        auto found = std::move(all.back());
        all.pop_back();
        return found;
      }
  }
  return std::make_unique<Stacks>(count, bytes);
}

void return_stacks(std::unique_ptr<Stacks> stacks) {
  stacks->reset();
  const std::lock_guard lock(kept().mutex);
  auto& all = kept().all;
  if (all.size() == kKept) all.erase(all.begin());
  all.push_back(std::move(stacks));
}

}  // namespace tensorcraft::simt
