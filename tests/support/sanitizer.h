/* Which sanitizer a test runs under, for the few tests that must know.
 *
 * TSan of GCC 12 stops a forked child that starts a thread ("dup thread with used id"), so children
 * stay single-threaded there; the other builds test the rest. */
#ifndef SUPPORT_SANITIZER_H
#define SUPPORT_SANITIZER_H

#include <stdbool.h>

#ifdef __has_feature
#define SUPPORT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define SUPPORT_HAS_FEATURE(feature) 0
#endif

static const bool under_tsan =
#if defined(__SANITIZE_THREAD__) || SUPPORT_HAS_FEATURE(thread_sanitizer)
    true;
#else
    false;
#endif

#if defined(__SANITIZE_ADDRESS__) || SUPPORT_HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define SUPPORT_IS_HIDDEN(address) __asan_address_is_poisoned(address)
#define SUPPORT_HIDES_MEMORY 1
#else
#define SUPPORT_IS_HIDDEN(address) 0
#define SUPPORT_HIDES_MEMORY 0
#endif

#endif
