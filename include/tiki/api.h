/* Symbol visibility and C++ linkage for every public header, and the rule that holds for all their
 * functions:
 *
 * NULL. A pointer argument must not be NULL unless the function's comment says what NULL means; a
 * list may be NULL when its count is 0. A function with a status then gives TK_INVALID_ARGUMENT
 * with "argument `name` is NULL", one that returns an array gives an array with that error (or
 * TK_NO_ARRAY and the message, where there is no context), and any other gives 0, false, NULL or
 * does nothing. A void pointer handed through to a callback may be anything. Functions whose
 * comment says "unchecked" check nothing.
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
