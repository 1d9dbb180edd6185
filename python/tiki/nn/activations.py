"""Activations: functions of the C library, and modules that call them."""

from collections.abc import Callable

import tiki as tk
from tiki import _core
from tiki.nn.module import Module

sigmoid = _core._nn.sigmoid
relu = _core._nn.relu
relu2 = _core._nn.relu2
relu6 = _core._nn.relu6
leaky_relu = _core._nn.leaky_relu
log_softmax = _core._nn.log_softmax
elu = _core._nn.elu
softmax = _core._nn.softmax
softplus = _core._nn.softplus
softsign = _core._nn.softsign
softshrink = _core._nn.softshrink
celu = _core._nn.celu
silu = _core._nn.silu
log_sigmoid = _core._nn.log_sigmoid
gelu = _core._nn.gelu
gelu_approx = _core._nn.gelu_approx
gelu_fast_approx = _core._nn.gelu_fast_approx
glu = _core._nn.glu
step = _core._nn.step
selu = _core._nn.selu
prelu = _core._nn.prelu
mish = _core._nn.mish
hardswish = _core._nn.hardswish
hard_tanh = _core._nn.hard_tanh
hard_shrink = _core._nn.hard_shrink
softmin = _core._nn.softmin
tanh = _core._nn.tanh


class _Activation(Module):
    """A module without parameters: `_function` of its input."""

    _function: Callable[..., tk.array]

    def __call__(self, x: tk.array) -> tk.array:
        return type(self)._function(x)


class Sigmoid(_Activation):
    """See `sigmoid`."""

    _function = sigmoid


class Mish(_Activation):
    """See `mish`."""

    _function = mish


class ReLU(_Activation):
    """See `relu`."""

    _function = relu


class ReLU2(_Activation):
    """See `relu2`."""

    _function = relu2


class ReLU6(_Activation):
    """See `relu6`."""

    _function = relu6


class Softmax(_Activation):
    """See `softmax`."""

    _function = softmax


class Softmin(_Activation):
    """See `softmin`."""

    _function = softmin


class LogSoftmax(_Activation):
    """See `log_softmax`."""

    _function = log_softmax


class Softplus(_Activation):
    """See `softplus`."""

    _function = softplus


class Softsign(_Activation):
    """See `softsign`."""

    _function = softsign


class SiLU(_Activation):
    """See `silu`."""

    _function = silu


class LogSigmoid(_Activation):
    """See `log_sigmoid`."""

    _function = log_sigmoid


class Tanh(_Activation):
    """See `tanh`."""

    _function = tanh


class Hardswish(_Activation):
    """See `hardswish`."""

    _function = hardswish


class SELU(_Activation):
    """See `selu`."""

    _function = selu


class HardTanh(_Activation):
    """See `hard_tanh`."""

    _function = hard_tanh


class GLU(Module):
    """See `glu`."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: tk.array) -> tk.array:
        return glu(x, self.axis)


class LeakyReLU(Module):
    """See `leaky_relu`."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def __call__(self, x: tk.array) -> tk.array:
        return leaky_relu(x, self._negative_slope)


class ELU(Module):
    """See `elu`."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: tk.array) -> tk.array:
        return elu(x, self._alpha)


class CELU(Module):
    """See `celu`."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: tk.array) -> tk.array:
        return celu(x, self._alpha)


class Softshrink(Module):
    """See `softshrink`."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: tk.array) -> tk.array:
        return softshrink(x, self.lambd)


class HardShrink(Module):
    """See `hard_shrink`."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: tk.array) -> tk.array:
        return hard_shrink(x, self.lambd)


class Step(Module):
    """See `step`."""

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def __call__(self, x: tk.array) -> tk.array:
        return step(x, self.threshold)


class PReLU(Module):
    """See `prelu`; the slopes are parameters."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.weight = tk.full((num_parameters,), init)

    def __call__(self, x: tk.array) -> tk.array:
        return prelu(x, self.weight)


class GELU(Module):
    """See `gelu`; approx is 'none', 'precise' or 'tanh' (gelu_approx), or 'fast' (gelu_fast_approx)."""

    _functions = {"none": gelu, "precise": gelu_approx, "tanh": gelu_approx, "fast": gelu_fast_approx}

    def __init__(self, approx: str = "none") -> None:
        super().__init__()
        if approx not in self._functions:
            raise ValueError(f"approx is '{approx}', expected one of {', '.join(self._functions)}")
        self._approx = approx

    def __call__(self, x: tk.array) -> tk.array:
        return self._functions[self._approx](x)
