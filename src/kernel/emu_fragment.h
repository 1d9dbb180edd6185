/* Matrices in the registers of a warp, for mma.sync and wgmma.
 *
 * A register of 32 bits holds `per` elements that follow each other along k (along the columns of
 * an accumulator). With g = lane / 4 and t = lane % 4, register r of
 *
 *   A, 16 x k        has row g + 8 (r % 2), columns per t + 4 per (r / 2) on
 *   B, k x 8         has column g, rows per t + 4 per r on
 *   C and D, 16 x n  has, in elements of 32 or 16 bits alike, row g + 8 (e / 2 % 2) and column
 *                    2 t + e % 2 + 8 (e / 4) in element e
 *
 * (PTX manual, "Matrix fragments" of mma and of wgmma). Sums are kept in f32 and added in the order
 * of k; products of all operand types are exact in f32. */
#ifndef KERNEL_EMU_FRAGMENT_H
#define KERNEL_EMU_FRAGMENT_H

#include "kernel/emu.h"

enum { TK_EMU_MOST_K = 32, TK_EMU_MOST_N = 256 };

/* Numbers of the types that operands have, as f32; tf32 has its low bits cut off. */
void tk_emu_widen(tk_kscalar scalar, const void *from, float *to, size_t count);

/* A from `elements` on, for the 32 lanes: a[row][k]. */
void tk_emu_unpack_a(tk_kscalar scalar, const unsigned char *elements, int k,
                     float a[16][TK_EMU_MOST_K]);

/* d[row][n] += a[row][k] b[k][n], for `columns` of them, a multiple of 8. Rows of d and b have room
 * for TK_EMU_MOST_N columns. */
void tk_emu_multiply(float a[16][TK_EMU_MOST_K], float (*b)[TK_EMU_MOST_N],
                     float (*d)[TK_EMU_MOST_N], int k, int columns);

/* Accumulators of f32 or f16 between registers and rows; only the lanes of the mask are written. */
void tk_emu_unpack_d(tk_kscalar scalar, const unsigned char *elements, int columns,
                     float (*d)[TK_EMU_MOST_N]);
void tk_emu_pack_d(tk_kscalar scalar, unsigned char *elements, uint32_t mask, int columns,
                   float (*d)[TK_EMU_MOST_N]);

#endif
