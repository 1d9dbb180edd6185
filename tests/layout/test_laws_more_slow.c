/* The laws of all other operations, on 200,000 random cases each; a twentieth of them under
 * AddressSanitizer, as test_laws_slow.c. */
#include "support/sanitizer.h"
#define LAW_CASES (SUPPORT_ASAN ? 10000 : 200000)
#include "layout/layout_laws.h"

int main(void) { return run_laws(2); }
