"""References of quantisation and of products of picked pairs. See compare_ops.py."""
import numpy as np

import op_moves
from op_values import NP, OPS, Refuse, Value, cast, indices_of, kind, op, promote, promote_dtypes, refuse, round_bfloat16

MODES = {"affine": (64, 4), "mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FP8 = np.array([(m & 7) * 2.0**-9 if m < 8 else (8 + (m & 7)) * 2.0 ** ((m >> 3) - 10) for m in range(127)])


def format_of(mode, group_size, bits):
    if mode not in MODES:
        raise Refuse("mode")
    size, width = MODES[mode]
    size, width = group_size or size, bits or width
    if mode == "affine":
        if size not in (32, 64, 128) or width not in (1, 2, 3, 4, 5, 6, 8):
            raise Refuse("format")
    elif (size, width) != MODES[mode]:
        raise Refuse("format")
    return size, width


def narrow(x, dtype):
    with np.errstate(all="ignore"):
        if dtype == "float16":
            return x.astype(np.float16).astype(np.float32)
        if dtype == "bfloat16":
            return round_bfloat16(x.astype(np.float64)).astype(np.float32)
        return x


def fp8_encode(x):
    size = np.abs(x.astype(np.float64))
    code = np.searchsorted(FP8, size)
    high, low = FP8[np.minimum(code, 126)], FP8[np.maximum(code - 1, 0)]
    lower = np.maximum(code - 1, 0)
    code = np.where(size - low < high - size, lower, np.minimum(code, 126))
    code = np.where((size - low == high - size) & (size < 448), np.where(lower % 2 == 0, lower, lower + 1), code)
    code = np.where(np.isnan(x), 127, np.where(size >= 448, 126, code))
    return (code + 128 * np.signbit(x)).astype(np.uint8)


def fp8_decode(codes):
    size = np.where((codes & 127) == 127, np.nan, FP8[np.minimum(codes & 127, 126)])
    return np.where(codes & 128, -size, size)


@op("to_fp8")
def to_fp8(a):
    if kind(a.dtype) != 3:
        raise Refuse("dtype")
    return Value("uint8", fp8_encode(a.data))


@op("from_fp8")
def from_fp8(a, dtype):
    if a.dtype != "uint8" or dtype not in NP or kind(dtype) != 3:
        raise Refuse("dtype")
    return Value(dtype, fp8_decode(a.data))


# ---- codes ----


def pack(codes, bits):
    rows = codes.reshape(-1, codes.shape[-1]).astype(np.uint8)
    spread = ((rows[..., None] >> np.arange(bits, dtype=np.uint8)) & 1).reshape(rows.shape[0], -1)
    return np.packbits(spread, axis=-1, bitorder="little").view("<u4").reshape(codes.shape[:-1] + (-1,))


def unpack(words, bits):
    if words.size == 0:
        return np.zeros(words.shape[:-1] + (words.shape[-1] * 32 // bits,), int)
    rows = np.ascontiguousarray(words.reshape(-1, words.shape[-1]).astype("<u4")).view(np.uint8)
    spread = np.unpackbits(rows, axis=-1, bitorder="little").reshape(rows.shape[0], -1, bits)
    codes = (spread * (1 << np.arange(bits))).sum(-1)
    return codes.reshape(words.shape[:-1] + (codes.shape[-1],))


def affine_line(groups, bits, real):
    low, high, most = groups.min(-1), groups.max(-1), real(2**bits - 1)
    is_low = (np.abs(low) > np.abs(high)) | (bits == 1)
    edge = np.where(is_low, low, high)
    step = np.maximum((high - low) / most, real(np.float32(1e-7)))
    step = np.where(is_low, step, -step)
    if bits == 1:
        return step, low
    count = np.rint(edge / step)
    return np.where(count != 0, edge / np.where(count != 0, count, 1), step), np.where(count != 0, edge, 0).astype(real)


@op("quantize")
def quantize(w, group_size, bits, mode, global_scale):
    size, width = format_of(mode, group_size, bits)
    if kind(w.dtype) != 3 or w.rank < 2 or w.shape[-1] % size:
        raise Refuse("w")
    if global_scale is not None and (mode != "nvfp4" or global_scale.data.size != 1):
        raise Refuse("global scale")
    if not np.all(np.isfinite(w.data)):
        return None
    real = np.float64 if w.dtype == "float64" else np.float32
    shape = w.shape[:-1] + (w.shape[-1] // size,)
    if w.data.size == 0:
        scale = w.dtype if mode == "affine" else "uint8"
        rest = [Value(scale, np.zeros(shape))] * (2 if mode == "affine" else 1)
        return [Value("uint32", np.zeros(w.shape[:-1] + (w.shape[-1] * width // 32,), np.uint32))] + rest
    groups = w.data.astype(real).reshape(shape + (size,))
    with np.errstate(all="ignore"):
        if mode == "affine":
            step, bias = affine_line(groups, width, real)
            codes = np.clip(np.rint((groups - bias[..., None]) / step[..., None]), 0, 2**width - 1)
            if not np.all(np.isfinite(step)):
                return None
            words = Value("uint32", pack(codes.reshape(w.shape), width))
            wide = "float64" if real is np.float64 else "float32"
            return [words, cast(Value(wide, step.astype(np.float64)), w.dtype),
                    cast(Value(wide, bias.astype(np.float64)), w.dtype)]
        return scaled(w, groups, shape, mode, global_scale)


def scaled(w, groups, shape, mode, global_scale):
    per_unit = np.float32(1) if global_scale is None else np.float32(2688) / np.float32(global_scale.data.item())
    if not np.isfinite(per_unit):
        return None
    real = groups.dtype.type
    scale = narrow(np.abs(groups).max(-1) / real(448 if mode == "mxfp8" else 6), w.dtype)
    if mode == "nvfp4":
        byte = fp8_encode(scale * real(per_unit))
        scale = fp8_decode(byte).astype(real)
    else:
        exponent = np.where(scale == 0, 0, np.ceil(np.log2(np.where(scale == 0, 1, scale)).astype(np.float32)))
        exponent = np.clip(exponent, -127, 127)
        byte = (exponent + 127).astype(np.uint8)
        scale = np.ldexp(real(1), exponent.astype(int)).astype(real)
    values = narrow(groups / scale[..., None], w.dtype) * real(per_unit)
    if mode == "mxfp8":
        codes, width = fp8_encode(values), 8
    else:
        size = np.where(np.isfinite(values), np.abs(values), 0)
        codes, width = np.searchsorted((FP4[1:] + FP4[:-1]) / 2, size), 4
        codes = codes + 8 * ((codes > 0) & (values < 0))
    return [Value("uint32", pack(codes.reshape(w.shape), width)), Value("uint8", byte.reshape(shape))]


def codes_of(w, scales, biases, size, width, mode):
    if w.dtype != "uint32":
        raise Refuse("w")
    if mode == "affine":
        if biases is None or kind(scales.dtype) != 3 or kind(biases.dtype) != 3 or scales.shape != biases.shape:
            raise Refuse("scales")
    elif biases is not None or scales.dtype != "uint8":
        raise Refuse("scales")
    if w.rank < 1 or scales.rank != w.rank or w.shape[:-1] != scales.shape[:-1] \
            or w.shape[-1] != scales.shape[-1] * size * width // 32:
        raise Refuse("shapes")


def decoded(w, scales, biases, size, width, mode, unit=np.float32(1)):
    """Values and the magnitudes that their rounding is measured by."""
    codes = unpack(w.data, width).reshape(scales.shape + (size,))
    shape = w.shape[:-1] + (scales.shape[-1] * size,)
    with np.errstate(all="ignore"):
        if mode == "affine":
            step, bias = scales.data[..., None], biases.data[..., None]
            return (codes * step + bias).reshape(shape), (np.abs(codes * step) + np.abs(bias)).reshape(shape)
        if mode == "mxfp8":
            values = fp8_decode(codes)
        else:
            values = np.where(codes & 8, -1.0, 1.0) * FP4[codes & 7]
        power = np.where(scales.data == 255, np.inf, 2.0 ** (scales.data.astype(int) - 127))  # infinite in float32
        factor = fp8_decode(scales.data) * np.float64(unit) if mode == "nvfp4" else power
        with np.errstate(invalid="ignore"):
            values = (values * factor[..., None]).reshape(shape)
        return values, np.abs(values)


@op("dequantize")
def dequantize(w, scales, biases, group_size, bits, mode, global_scale, dtype):
    size, width = format_of(mode, group_size, bits)
    codes_of(w, scales, biases, size, width, mode)
    if global_scale is not None and (mode != "nvfp4" or global_scale.data.size != 1):
        raise Refuse("global scale")
    unit = np.float32(1)
    if global_scale is not None:
        unit = np.float32(global_scale.data.item()) / np.float32(2688)
    if mode == "affine":
        scales, biases = promote([scales, biases])
    if dtype not in NP:
        dtype = scales.dtype if mode == "affine" else "bfloat16" if global_scale is None else "float32"
    if kind(dtype) != 3:
        raise Refuse("dtype")
    values, size = decoded(w, scales, biases, size, width, mode, unit)
    if w.data.size == 0:
        return Value(dtype, values)
    rounding = max(1, 2.0**-23 / 2.0**-52 if dtype == "float64" and scales.dtype != "float64" else 1)
    return Value(dtype, values, magnitude=("sum", size, 4 * rounding))


# ---- products ----


def picked(what, a, b, lhs, rhs):
    """Flat indices of one shape, and which were bad."""
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    count_a, count_b = int(np.prod(lead_a, dtype=int)), int(np.prod(lead_b, dtype=int))
    left = (np.arange(count_a).reshape(lead_a), False) if lhs is None else indices_of(lhs, count_a)
    right = (np.arange(count_b).reshape(lead_b), False) if rhs is None else indices_of(rhs, count_b)
    shape = np.broadcast_shapes(left[0].shape, right[0].shape)
    bad = np.broadcast_to(left[1] | right[1], shape) if lhs is not None or rhs is not None else np.zeros(shape, bool)
    return np.broadcast_to(left[0], shape), np.broadcast_to(right[0], shape), bad


def pick(data, index):
    if data.shape[0] == 0:
        return np.zeros(index.shape + data.shape[1:], data.dtype)
    return data[index]


def pairs_product(what, a, b, lhs, rhs, count):
    left, right, bad = picked(what, a, b, lhs, rhs)
    if len(left.shape) + 2 > 16:
        raise Refuse("rank")
    flat_a = Value(a.dtype, pick(a.data.reshape((-1,) + a.shape[-2:]) if a.data.size else
                                 np.zeros((int(np.prod(a.shape[:-2], dtype=int)),) + a.shape[-2:], a.data.dtype), left))
    flat_b = Value(b.dtype, pick(b.data.reshape((-1,) + b.shape[-2:]) if b.data.size else
                                 np.zeros((int(np.prod(b.shape[:-2], dtype=int)),) + b.shape[-2:], b.data.dtype), right))
    result = op_moves.product(op_moves.matmul_data, [flat_a, flat_b], count)
    if np.any(bad):
        result.data = np.where(bad[..., None, None], 0, result.data)
        result.fault = True
    return result


@op("gather_mm")
def gather_mm(a, b, lhs_indices, rhs_indices):
    a, b = promote([a, b])
    if a.rank < 2 or b.rank < 2 or a.shape[-1] != b.shape[-2]:
        raise Refuse("shapes")
    return pairs_product("gather_mm", a, b, lhs_indices, rhs_indices, 2 * a.shape[-1] + 8)


@op("segmented_mm")
def segmented_mm(a, b, segments):
    a, b = promote([a, b])
    refuse([a, b], (0,))
    if a.rank != 2 or b.rank != 2 or a.shape[1] != b.shape[0] or kind(segments.dtype) not in (1, 2) \
            or segments.rank < 1 or segments.shape[-1] != 2:
        raise Refuse("shapes")
    length = a.shape[1]
    bounds = np.array([int(i) for i in segments.data.ravel()], dtype=object).reshape(-1, 2)
    if bounds.size and np.max(np.abs(bounds)) >= 2**63:
        return None
    bad = np.any((bounds < 0) | (bounds > length)) if bounds.size else False
    parts = []
    for first, last in np.clip(bounds, 0, length).astype(int) if bounds.size else []:
        inside = slice(first, max(last, first))
        parts.append(op_moves.product(op_moves.matmul_data, [Value(a.dtype, a.data[:, inside]),
                                                             Value(b.dtype, b.data[inside])], 1))
    shape = segments.shape[:-1] + (a.shape[0], b.shape[1])
    if not parts:
        return Value(a.dtype, np.zeros(shape, a.data.dtype))
    result = Value(a.dtype, np.stack([p.data for p in parts]).reshape(shape))
    if kind(a.dtype) >= 3:
        result.magnitude = ("sum", np.stack([p.magnitude[1] for p in parts]).reshape(shape), 2 * length + 8)
    result.fault = bool(bad)
    return result


@op("block_masked_mm")
def block_masked_mm(a, b, block_size, mask_out, mask_lhs, mask_rhs):
    if not 1 <= block_size <= 1 << 20:
        raise Refuse("block_size")
    a, b = promote([a, b])
    moderate = is_moderate(a, b, mask_out, mask_lhs, mask_rhs)

    def masked(v, mask):
        if mask is None:
            return v
        if v.rank < 2:
            raise Refuse("rank")
        rows, columns = v.shape[-2:]
        high, wide = -(-rows // block_size), -(-columns // block_size)
        if mask.rank < 2 or mask.shape[-2:] != (high, wide):
            raise Refuse("mask")
        if v.rank > 16 or mask.rank > 2 or block_size > 4096:
            return None
        spread = mask.data.repeat(block_size, -1).repeat(block_size, -2)[..., :rows, :columns]
        if mask.dtype == "bool":
            return Value(v.dtype, np.where(spread, v.data, 0), magnitude=v.magnitude)
        return OPS["multiply"](v, cast(Value(mask.dtype, spread), v.dtype))

    a, b = masked(a, mask_lhs), masked(b, mask_rhs)
    if a is None or b is None:
        return None
    if not moderate:
        OPS["matmul"](a, b)
        return None
    if kind(a.dtype) < 3:
        return masked(OPS["matmul"](a, b), mask_out)
    result = OPS["matmul"](a, b)
    size = result.magnitude[1]
    out = masked(result, mask_out)
    if out is None:
        return None
    if mask_out is not None and mask_out.dtype != "bool":
        spread = mask_out.data.repeat(block_size, -1).repeat(block_size, -2)[..., : out.shape[-2], : out.shape[-1]]
        with np.errstate(all="ignore"):
            size = size * np.maximum(np.abs(cast(Value(mask_out.dtype, spread), result.dtype).data), 1)
    return Value(out.dtype, out.data, magnitude=("sum", size, 4 * a.shape[-1] + 16))


def is_moderate(*values):
    """No product of these leaves the range in which every dtype rounds alike."""
    sizes = [np.abs(v.data[v.data != 0]) for v in values if v is not None and v.dtype != "bool"]
    return all(np.all((size > 1e-2) & (size < 1e4)) for size in sizes)


def quantised(x, w, scales, biases, transpose, format, mode):
    """Operands as x and the values of w, which contract."""
    size, width = format
    codes_of(w, scales, biases, size, width, mode)
    if mode == "affine":
        x, scales, biases = promote([x, scales, biases])
    if kind(x.dtype) != 3:
        raise Refuse("dtype")
    if w.rank < 2 or x.rank < 1:
        raise Refuse("rank")
    values, sizes = decoded(w, scales, biases, size, width, mode)
    if transpose:
        values, sizes = np.swapaxes(values, -1, -2), np.swapaxes(sizes, -1, -2)
    if x.shape[-1] != values.shape[-2]:
        raise Refuse("shapes")
    with np.errstate(all="ignore"):
        fits = np.all(np.abs(values) < 1e30) and np.all(np.abs(x.data) < 1e6)
    return x, Value(x.dtype, values), Value(x.dtype, sizes) if fits else None


def with_rounding(result, sizes):
    """Values that nearly cancel their bias are rounded as what they are made of."""
    result.magnitude = ("sum", sizes.magnitude[1], result.magnitude[2])
    return result


@op("quantized_matmul")
def quantized_matmul(x, w, scales, biases, transpose, group_size, bits, mode):
    format = format_of(mode, group_size, bits)
    x, values, sizes = quantised(x, w, scales, biases, transpose, format, mode)
    multiply = lambda b: op_moves.product(op_moves.matmul_data, [x, b], 2 * x.shape[-1] + 32)
    result = multiply(values)
    return with_rounding(result, multiply(sizes)) if sizes else None


@op("gather_qmm")
def gather_qmm(x, w, scales, biases, lhs_indices, rhs_indices, transpose, group_size, bits, mode, global_scale):
    format = format_of(mode, group_size, bits)
    x, values, sizes = quantised(x, w, scales, biases, transpose, format, mode)
    if x.rank < 2:
        raise Refuse("rank")
    if global_scale is not None:
        if mode != "nvfp4" or global_scale.data.size != 1:
            raise Refuse("global scale")
        return None
    multiply = lambda b: pairs_product("gather_qmm", x, b, lhs_indices, rhs_indices, 2 * x.shape[-1] + 32)
    result = multiply(values)
    return with_rounding(result, multiply(sizes)) if sizes else None


def through_codes(v, mode, format):
    words, scales = quantize(v, *format, mode, None) or (None, None)
    if words is None:
        return None
    values, _ = decoded(words, scales, None, *format, mode)
    return cast(Value("float64", values), v.dtype)


def both(x, w, scales, group_size, bits, mode, global_x, global_w):
    format = format_of(mode, group_size, bits)
    if mode == "affine" or kind(x.dtype) != 3 or (global_x is None) != (global_w is None):
        raise Refuse("arguments")
    if global_x is not None or scales is not None or x.rank < 2:
        return None
    a, b = through_codes(x, mode, format), through_codes(w, mode, format)
    if a is None or b is None:
        return None
    return a, Value(b.dtype, np.swapaxes(b.data, -1, -2))


@op("qqmm")
def qqmm(x, w, scales, group_size, bits, mode, global_scale_x, global_scale_w):
    operands = both(x, w, scales, group_size, bits, mode, global_scale_x, global_scale_w)
    return None if operands is None else OPS["matmul"](*operands)


@op("gather_qqmm")
def gather_qqmm(x, w, scales, lhs_indices, rhs_indices, group_size, bits, mode, global_scale_x, global_scale_w):
    operands = both(x, w, scales, group_size, bits, mode, global_scale_x, global_scale_w)
    return None if operands is None else gather_mm(*operands, lhs_indices, rhs_indices)
