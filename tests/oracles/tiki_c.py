"""The few calls of libtiki that the oracle tests need, through ctypes: logits of a model folder."""
import ctypes
import os

import numpy as np


class Axes(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int64), ("items", ctypes.c_int64 * 16)]


class Array(ctypes.Structure):
    _fields_ = [("node", ctypes.c_void_p)]


library = ctypes.CDLL(os.path.join(os.environ["TIKI_BUILD"], "lib", "libtiki.so"))
library.tk_error_message.restype = ctypes.c_char_p
library.tk_tree_new.restype = ctypes.c_void_p
library.tk_from_data.restype = Array
library.tk_from_data.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Axes, ctypes.c_int]
library.tk_model_forward.restype = Array
library.tk_model_forward.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Array, ctypes.c_void_p]
library.tk_array_size.restype = ctypes.c_int64
library.tk_array_size.argtypes = [Array]
library.tk_copy_out.argtypes = [Array, ctypes.c_void_p, ctypes.c_size_t]
library.tk_context_create.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
library.tk_model_load.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p,
                                  ctypes.c_void_p]
library.tk_release.argtypes = [Array]
library.tk_tree_free.argtypes = [ctypes.c_void_p]
library.tk_context_release.argtypes = [ctypes.c_void_p]
library.tk_dtype_parse.argtypes = [ctypes.c_char_p, ctypes.c_void_p]


def check(status):
    if status != 0:
        raise RuntimeError(library.tk_error_message().decode())


def dtype(name):
    value = ctypes.c_int()
    check(library.tk_dtype_parse(name.encode(), ctypes.byref(value)))
    return value.value


def logits(folder, tokens):
    """Logits [batch, length, 256] of the model in a folder for int32 tokens [batch, length]."""
    tokens = np.ascontiguousarray(tokens, dtype=np.int32)
    context, config = ctypes.c_void_p(), ctypes.create_string_buffer(1024)
    check(library.tk_context_create(None, ctypes.byref(context)))
    tree = library.tk_tree_new()
    check(library.tk_model_load(context, str(folder).encode(), config, tree))
    shape = Axes(2, (ctypes.c_int64 * 16)(*tokens.shape))
    given = library.tk_from_data(context, tokens.ctypes.data, shape, dtype("int32"))
    result = library.tk_model_forward(ctypes.cast(config, ctypes.c_void_p), tree, given, None)
    out = np.empty(tokens.shape + (256,), dtype=np.float32)
    check(library.tk_copy_out(result, out.ctypes.data, out.nbytes))
    library.tk_release(result)
    library.tk_release(given)
    library.tk_tree_free(tree)
    library.tk_context_release(context)
    return out
