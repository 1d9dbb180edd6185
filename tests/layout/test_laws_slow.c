/* The laws of operations that make layouts from layouts, on 200,000 random cases each. */
#define LAW_CASES 200000
#include "layout/layout_laws.h"

int main(void) { return run_laws(1); }
