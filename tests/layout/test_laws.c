/* The laws on few cases: what every test run pays. */
#define LAW_CASES 5000
#include "layout/layout_laws.h"

int main(void) { return run_laws(0); }
