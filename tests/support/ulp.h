/* How far a float is from a value that is known better. */
#ifndef SUPPORT_ULP_H
#define SUPPORT_ULP_H

#include <math.h>

/* Units in the last place of f32 at the exact value. */
static inline double error_of(double exact, float value) {
    if (isnan(exact)) return isnan(value) ? 0 : INFINITY;
    if (isinf((float)exact) && isinf(value))
        return !signbit(exact) == !signbit(value) ? 0 : INFINITY;
    if (exact == 0) return value == 0 && !signbit(exact) == !signbit(value) ? 0 : INFINITY;
    int exponent;
    frexp(exact, &exponent);
    return fabs(exact - (double)value) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

#endif
