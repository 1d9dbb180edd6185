/* Templates of PTX instructions, the strings PTX("...") of tiki/kernel_ops.def:
 *
 *     $d            the result's element
 *     $a $b $c      elements of operands 0, 1, 2
 *     $s $u $b $r $m  type suffixes of operand 0, directly behind the instruction's name: natural
 * (.s32, .f32), unsigned, bits (.pred for i1), natural with rounding (.rn.f32), and that of mul
 *                   (.lo.s32, .rn.f32)
 *     $[name]       an attribute: a number, or the word
 *
 * A suffix $b is told from operand $b by what is before it: a letter or digit before a suffix, a
 * blank before an operand. The template is written once for each element of the result. */
#ifndef TARGET_PTX_TEMPLATE_H
#define TARGET_PTX_TEMPLATE_H

#include "target/ptx/ptx.h"

#endif
