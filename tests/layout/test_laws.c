/* The laws on few cases: what every test run pays. The slow ones begin with the same cases, so
 * under AddressSanitizer, where they run beside this, it would find nothing more. */
#include "support/sanitizer.h"
#define LAW_CASES (SUPPORT_ASAN ? 500 : 5000)
#include "layout/layout_laws.h"

int main(void) { return run_laws(0); }
