/* What makes the text of targets out of kernels, and kernels out of calls of the library: the
 * digest of its sources, from tools/generator.sh. Whatever is found without making that text must
 * have been made by the same. */
#ifndef TARGET_GENERATOR_H
#define TARGET_GENERATOR_H

extern const char tk_generator[];

#endif
