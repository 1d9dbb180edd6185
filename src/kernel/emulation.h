/* What an emulation leaves behind. */
#ifndef KERNEL_EMULATION_H
#define KERNEL_EMULATION_H

#include "kernel/emu.h"

struct tk_emulation {
    tk_kernel *kernel;
    tk_emu_program program;
    tk_emu_launch launch;
};

#endif
