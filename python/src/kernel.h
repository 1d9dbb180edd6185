/* What the files about kernels share. */
#ifndef TKPY_KERNEL_H
#define TKPY_KERNEL_H

#include "module.h"
#include "tiki/kernel_op.h"

/* The kernel behind an object of the type tiki._core.Kernel; borrowed. */
tk_kernel *tkpy_kernel_of(PyObject *object);

/* A new object around a kernel, whose reference it takes. */
PyObject *tkpy_kernel_wrap(tkpy_state *state, tk_kernel *kernel);

/* The bits of a tuple of integers; false with an exception. */
bool tkpy_kernel_arguments(PyObject *tuple, tk_kargument *out_arguments);

/* The method `emulate(arguments, seed, resident)` of a kernel. */
PyObject *tkpy_kernel_emulate(PyObject *self, PyObject *args);

/* The method `build(target, arch=None, binary=False, lines=False, stages=False)` of a kernel. */
PyObject *tkpy_kernel_build(PyObject *self, PyObject *args);

/* target(name) -> the target in use before; None changes nothing. */
PyObject *tkpy_target(PyObject *module, PyObject *args);

/* What a tiki.output describes; NULL when the object is none. Borrowed. */
const tk_launch_output *tkpy_output_type(tkpy_state *state, PyObject *object);

/* foreign(function, name, inputs, outputs, site) -> tuple of arrays; when they are evaluated the
 * function is called with the stream and the addresses of inputs and outputs. */
PyObject *tkpy_foreign(PyObject *module, PyObject *args);

extern PyType_Spec tkpy_kernel_spec, tkpy_kernel_builder_spec;
extern PyMethodDef tkpy_kernel_functions[], tkpy_device_functions[], tkpy_plan_functions[];

#endif
