/* Coefficients of polynomials on doubles that come from floats, lowest power first, for the vectors
 * of the processor (cpu/vec_math.h, which says how they were made) and for kernels on devices
 * (compile/functions.c). Initialisers, so that each function has its own array beside it. */
#ifndef BASE_POLYNOMIALS_H
#define BASE_POLYNOMIALS_H

/* (exp(r) - 1 - r) / r^2, |r| <= log(2) / 2 */
#define TK_POLY_EXP                                                                                \
    {                                                                                              \
        0x1.0000000c4592ep-1, 0x1.5555555ac911fp-3, 0x1.5554e4aacef45p-5, 0x1.1110df02bfbecp-7,    \
            0x1.6d4920bf2569bp-10, 0x1.a12a42f159d0ep-13                                           \
    }

/* (2 atanh(s) - 2 s) / s^3 in s^2 */
#define TK_POLY_LOG                                                                                \
    {                                                                                              \
        0x1.5555555565b79p-1, 0x1.999998c274ac1p-2, 0x1.24932aa973ab3p-2, 0x1.c67782e2784dbp-3,    \
            0x1.8ccca60fd05f5p-3                                                                   \
    }

/* (atan(t) - t) / t^3 in t^2, |t| <= tan(pi / 8) */
#define TK_POLY_ATAN                                                                               \
    {                                                                                              \
        -0x1.5555554bf0304p-2, 0x1.99997acb9f7aap-3, -0x1.248a0803f2240p-3, 0x1.c5797b083068dp-4,  \
            -0x1.6133ecd2c7badp-4, 0x1.9d36cc03059f8p-5                                            \
    }

/* erfinv(x) / x in w - 2.5, w = -log(1 - x^2) < 5 */
#define TK_POLY_ERFINV_CENTRAL                                                                     \
    {                                                                                              \
        0x1.805c5cfcedef5p+0, 0x1.f91e89955a57fp-3, -0x1.11c3c3612a2ccp-8, -0x1.4863d1009b540p-10, \
            0x1.c9b46cd91df7ap-13, -0x1.4f4496f9c1788p-18, -0x1.caa32f746fad4p-19,                 \
            0x1.00f8719914c4ap-21, 0x1.d66fac2d14be4p-27, -0x1.74f4495a187ccp-27,                  \
            0x1.c9c81e3c5b325p-31, 0x1.0e8b1b9516a51p-33, -0x1.75045e36fd876p-36                   \
    }

/* erfinv(x) / x in sqrt(w) - 3, w >= 5 */
#define TK_POLY_ERFINV_TAIL                                                                        \
    {                                                                                              \
        0x1.6a9efbdac2d29p+1, 0x1.006dca18a7b57p+0, 0x1.35817f0b7f889p-7, -0x1.f4e600796bf8ap-8,   \
            0x1.74b23d7d20947p-8, -0x1.d349fe59f2c06p-9, 0x1.8388c90f6c16bp-10,                    \
            -0x1.0628e52cd9714p-13, -0x1.284d5fec32f49p-12, 0x1.5d4279c5493ddp-13,                 \
            -0x1.c06c180d1a56cp-16, -0x1.7d1b2e9e2bde1p-19                                         \
    }

#endif
