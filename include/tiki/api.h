/* Symbol visibility and C++ linkage for every public header.
 *
 * Each public header includes this one and nothing internal, so that every header compiles alone as
 * C17 and as C++17. */
#ifndef TIKI_API_H
#define TIKI_API_H

#if defined(__GNUC__) || defined(__clang__)
#define TK_API __attribute__((visibility("default")))
#define TK_MUST_USE __attribute__((warn_unused_result))
#define TK_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define TK_API
#define TK_MUST_USE
#define TK_PRINTF(format_index, first)
#endif

#ifdef __cplusplus
#define TK_BEGIN_DECLS extern "C" {
#define TK_END_DECLS }
#else
#define TK_BEGIN_DECLS
#define TK_END_DECLS
#endif

#endif
