/* The laws of operations that make layouts from layouts, on 200,000 random cases each; a twentieth
 * of them under AddressSanitizer, which finds in the first what it finds at all. */
#include "support/sanitizer.h"
#define LAW_CASES (SUPPORT_ASAN ? 10000 : 200000)
#include "layout/layout_laws.h"

int main(void) { return run_laws(1); }
