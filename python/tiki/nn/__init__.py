"""Neural networks: modules, layers, activations, losses and initial values, by MLX's names."""

from tiki.nn import init, losses
from tiki.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    HardShrink,
    Hardswish,
    HardTanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU2,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Step,
    Tanh,
    celu,
    elu,
    gelu,
    gelu_approx,
    gelu_fast_approx,
    glu,
    hard_shrink,
    hard_tanh,
    hardswish,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    prelu,
    relu,
    relu2,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    step,
    tanh,
)
from tiki.nn.containers import Sequential
from tiki.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tiki.nn.dropout import Dropout, Dropout2d, Dropout3d
from tiki.nn.linear import Bilinear, Embedding, Identity, Linear
from tiki.nn.module import Module
from tiki.nn.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from tiki.nn.pooling import AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d
from tiki.nn.positional import ALiBi, RoPE, SinusoidalPositionalEncoding
from tiki.nn.quantized import QQLinear, QuantizedEmbedding, QuantizedLinear, quantize
from tiki.nn.recurrent import GRU, LSTM, RNN
from tiki.nn.transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from tiki.nn.upsample import Upsample
from tiki.nn.utils import average_gradients, value_and_grad
