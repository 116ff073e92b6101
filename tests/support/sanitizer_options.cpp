// SPDX-License-Identifier: Apache-2.0
// In every test program: an allocation beyond all memory fails under a sanitizer too, as tests of
// running out of memory expect, and does not end the process.
#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#elif defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
// The standard library counts the holders of an exception in code that is not instrumented, so the
// order that the last of them keeps to is not seen.
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
