/* What the files about kernels share. */
#ifndef TKPY_KERNEL_H
#define TKPY_KERNEL_H

#include "module.h"
#include "tiki/kernel.h"

/* The kernel behind an object of the type tiki._core.Kernel; borrowed. */
tk_kernel *tkpy_kernel_of(PyObject *object);

/* A new object around a kernel, whose reference it takes. */
PyObject *tkpy_kernel_wrap(tkpy_state *state, tk_kernel *kernel);

/* The bits of a tuple of integers; false with an exception. */
bool tkpy_kernel_arguments(PyObject *tuple, tk_kargument *out_arguments);

/* The method `emulate(arguments, seed, resident)` of a kernel. */
PyObject *tkpy_kernel_emulate(PyObject *self, PyObject *args);

/* The method `build(target, arch=None, binary=False, lines=False)` of a kernel. */
PyObject *tkpy_kernel_build(PyObject *self, PyObject *args);

extern PyType_Spec tkpy_kernel_spec, tkpy_kernel_builder_spec;
extern PyMethodDef tkpy_kernel_functions[], tkpy_device_functions[], tkpy_plan_functions[];

#endif
