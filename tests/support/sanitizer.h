/* What a test must know of the sanitizer it runs under.
 *
 * The sanitizers of GCC 12 do not take their own locks before a fork: in a child of a process with
 * threads TSan stops the first new thread, and a thread that ends under ASan may wait for a lock
 * that nobody holds any more. So children start no threads there; plain builds test that they can.
 */
#ifndef SUPPORT_SANITIZER_H
#define SUPPORT_SANITIZER_H

#include <stdbool.h>

#ifdef __has_feature
#define SUPPORT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define SUPPORT_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SUPPORT_HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define SUPPORT_IS_HIDDEN(address) __asan_address_is_poisoned(address)
#define SUPPORT_ASAN 1
#else
#define SUPPORT_IS_HIDDEN(address) 0
#define SUPPORT_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || SUPPORT_HAS_FEATURE(thread_sanitizer)
#define SUPPORT_TSAN 1
#else
#define SUPPORT_TSAN 0
#endif

static const bool support_children_start_threads = !SUPPORT_ASAN && !SUPPORT_TSAN;

#endif
