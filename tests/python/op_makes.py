"""References of creation, fused layers and random arrays. See compare_ops.py."""
import math

import numpy as np

from op_values import (EPS, FLOATS, HUGE, NP, OPS, TINY, Refuse, Value, cast, cast_data, faulty, indices_of, kind, listed,
                       logsumexp_data, norm_axis, op, result_dtype, wide)

# ---- creation ----


def known(dtype):
    if dtype == "?":
        raise Refuse("dtype")


def filled(number):
    def reference(shape, dtype):
        known(dtype)
        if any(n < 0 for n in listed(shape)):
            raise Refuse("shape")
        return Value(dtype, np.full(shape, number, wide(dtype)))
    return reference


OPS["zeros"], OPS["ones"] = filled(0), filled(1)


@op("full")
def full(value, shape, dtype):
    value = cast(value, value.dtype if dtype == "?" else dtype)
    if any(n < 0 for n in listed(shape)):
        raise Refuse("shape")
    return Value(value.dtype, np.broadcast_to(value.data, shape))


OPS["zeros_like"] = lambda a: Value(a.dtype, np.zeros(a.shape, wide(a.dtype)))
OPS["ones_like"] = lambda a: Value(a.dtype, np.ones(a.shape, wide(a.dtype)))


@op("arange")
def arange(start, stop, step, dtype):
    known(dtype)
    if dtype == "bool" or step == 0 or any(map(math.isnan, (start, stop, step))):
        raise Refuse("range")
    if not all(map(math.isfinite, (start, stop, step))):
        return None
    count = max(0, math.ceil((stop - start) / step))
    if count > HUGE:
        return None
    if kind(dtype) in (1, 2):
        first, by = math.trunc(start), math.trunc(start + step) - math.trunc(start)
        values = [first + by * i for i in range(count)]
        info = np.iinfo(NP[dtype])
        if values and (min(values) < info.min or max(values) > info.max):
            raise Refuse("overflow")
        return Value(dtype, np.array(values, dtype=NP[dtype]))
    return Value(dtype, start + step * np.arange(count), magnitude=4)


@op("linspace")
def linspace(start, stop, num, endpoint, dtype):
    known(dtype)
    if num < 0:
        raise Refuse("num")
    if not (math.isfinite(start) and math.isfinite(stop)) or max(abs(start), abs(stop)) > 1e30:
        return None
    values = np.linspace(start, stop, num, endpoint=endpoint)
    if kind(dtype) < 3:
        slack = 1e-12 * (abs(start) + abs(stop))
        either = [cast_data(x, "float64", dtype) for x in (values - slack, values, values + slack)]
        return Value(dtype, either[1], magnitude=("range", np.min(either, axis=0), np.max(either, axis=0)))
    return Value(dtype, values, magnitude=("absolute", np.full(num, abs(start) + abs(stop)), 4))


def diagonal(function):
    def reference(n, m, k, dtype):
        known(dtype)
        if n < 0:
            raise Refuse("n")
        m = n if m < 0 else m
        row, column = np.indices((n, m), dtype=object) if n * m else np.zeros((2, n, m))
        return Value(dtype, np.asarray(function(row + k, column), dtype=bool).astype(wide(dtype)))
    return reference


OPS["eye"] = diagonal(lambda row, column: row == column)
OPS["tri"] = diagonal(lambda row, column: row >= column)


def triangle(function):
    def reference(a, k):
        if a.rank < 2:
            raise Refuse("rank")
        return Value(a.dtype, function(a.data, max(min(k, HUGE), -HUGE)))
    return reference


OPS["tril"], OPS["triu"] = triangle(np.tril), triangle(np.triu)


# ---- layers ----


def layer_dtype(values):
    dtype = result_dtype(values)
    if dtype == "complex64":
        raise Refuse("complex")
    return dtype if kind(dtype) == 3 else "float32"


def norm_inputs(x, weight, bias):
    if x.rank < 1:
        raise Refuse("rank")
    for v in (weight, bias):
        if v is not None and v.shape != x.shape[-1:]:
            raise Refuse("weight")
    dtype = layer_dtype([v for v in (x, weight, bias) if v is not None and (weight or v is x)])
    return dtype, [cast(v, dtype).data if v is not None else None for v in (x, weight, bias)]


def norm(x, weight, bias, eps, center):
    dtype, (data, scale, shift) = norm_inputs(x, weight, bias)
    with np.errstate(all="ignore"):
        middle = np.mean(data, axis=-1, keepdims=True) if center and data.size else 0
        spread = np.mean((data - middle)**2, axis=-1, keepdims=True) if data.size else 0
        value = (data - middle) / np.sqrt(spread + eps)
        condition = 1 + (np.abs(data) + np.abs(middle)) / np.sqrt(spread + eps) \
            + np.abs(value) * (np.mean(data**2, axis=-1, keepdims=True) if data.size else 0) / (spread + eps)
        far = np.max(np.abs(data), axis=-1, keepdims=True, initial=0)
        unsure = np.logical_not((far < 1e15) & (spread + eps > 0.1 * spread) & (spread + eps > 1e-30))
        if scale is not None:
            value, condition = value * scale, condition * np.abs(scale)
        if shift is not None:
            value, condition = value + shift, condition + np.abs(shift)
    return Value(dtype, value, magnitude=("absolute", condition, 16 + data.shape[-1]), unsure=unsure)


@op("rms_norm")
def rms_norm(x, weight, eps):
    return norm(x, weight, None, eps, False)


@op("layer_norm")
def layer_norm(x, weight, bias, eps):
    return norm(x, weight, bias, eps, True)


@op("rope")
def rope(x, dims, traditional, base, scale, offset, freqs):
    dtype = layer_dtype([x])
    if kind(offset.dtype) not in (1, 2) or x.rank < 2 or dims < 2 or dims % 2 or dims > x.shape[-1]:
        raise Refuse("rope")
    if offset.data.size != 1 and (offset.rank != 1 or x.rank < 3 or offset.shape[0] != x.shape[0]):
        raise Refuse("offset")
    if freqs is not None and freqs.shape != (dims // 2,):
        raise Refuse("freqs")
    data = cast(x, dtype).data
    if freqs is None:
        inverse = np.exp(-np.arange(dims // 2) * (2 * math.log(base) / dims)) if base > 0 else None
        if inverse is None:
            return None
    else:
        with np.errstate(all="ignore"):
            inverse = 1 / cast(freqs, "float32").data
    if x.data.size == 0:
        return Value(dtype, np.zeros(x.shape))
    first = offset.data.astype(np.float64).reshape(-1)
    first = first.reshape((-1,) + (1,) * (x.rank - 1)) if first.size > 1 else first.reshape(())
    with np.errstate(all="ignore"):
        angle = (first + np.arange(x.shape[-2])[:, None]) * scale * inverse
    part = data[..., :dims]
    one, two = (part[..., 0::2], part[..., 1::2]) if traditional else np.split(part, 2, axis=-1)
    with np.errstate(all="ignore"):
        cos, sin = np.cos(angle), np.sin(angle)
        out = (one * cos - two * sin, one * sin + two * cos)
        turned = np.stack(out, axis=-1).reshape(part.shape) if traditional else np.concatenate(out, axis=-1)
        size = (np.abs(one) + np.abs(two)) * (1 + np.abs(angle))
        size = np.repeat(size, 2, axis=-1) if traditional else np.concatenate([size, size], axis=-1)
    full_size = np.concatenate([size, np.zeros_like(data[..., dims:])], axis=-1)
    slack = 2.0**-23 / EPS[dtype] if dtype == "float64" else 1
    return Value(dtype, np.concatenate([turned, data[..., dims:]], axis=-1),
                 magnitude=("absolute", full_size, 8 * slack), unsure=~np.isfinite(full_size))


@op("scaled_dot_product_attention")
def attention(q, k, v, scale, mask, causal, sinks=None):
    if any(x.rank != 4 for x in (q, k, v)):
        raise Refuse("rank")
    dtype = layer_dtype([q, k, v])
    (b, heads, lq, width), (bk, kv, lk, wk), (bv, hv, lv, _) = q.shape, k.shape, v.shape
    if b != bk or b != bv or kv != hv or lk != lv or width != wk or kv == 0 or heads % kv:
        raise Refuse("shape")
    if sinks is not None:
        if sinks.dtype == "complex64" or sinks.shape != (heads,):
            raise Refuse("sinks")
        sinks = cast(sinks, dtype).data.reshape(heads, 1, 1)
    qd, kd, vd = (cast(x, dtype).data for x in (q, k, v))
    kd, vd = (np.repeat(x, heads // kv, axis=1) for x in (kd, vd))
    with np.errstate(all="ignore"):
        score = scale * np.einsum("bhqd,bhkd->bhqk", qd, kd)
        size = abs(scale) * np.einsum("bhqd,bhkd->bhqk", np.abs(qd), np.abs(kd))
    unsure = ~np.isfinite(np.sum(np.abs(vd), axis=(2, 3), keepdims=True))
    if mask is not None:
        shape = np.broadcast_to(mask.data, score.shape)
        if mask.dtype == "bool":
            score = np.where(shape, score, -np.inf)
        else:
            if mask.dtype == "complex64":
                raise Refuse("mask")
            added = np.broadcast_to(cast(mask, dtype).data, score.shape)
            with np.errstate(all="ignore"):
                score = score + added
            size = size + np.where(added == -np.inf, 0, np.abs(added))
    if causal:
        rows, columns = np.indices((lq, lk))
        score = np.where(columns <= rows + (lk - lq), score, -np.inf)
    with np.errstate(all="ignore"):
        spread = np.max(size, axis=-1, keepdims=True, initial=0)
        unsure = unsure | ~(spread < 1e4)
        high = np.max(score, axis=-1, keepdims=True, initial=-np.inf)
        if sinks is not None:
            high, unsure = np.maximum(high, sinks), unsure | ~(np.abs(sinks) < 1e4)
        dead = ~np.isfinite(high)
        weight = np.where(dead, 0, np.exp(score - np.where(dead, 0, high)))
        total = np.sum(weight, axis=-1, keepdims=True)
        if sinks is not None:
            total = total + np.where(dead, 0, np.exp(sinks - np.where(dead, 0, high)))
        weight = weight / np.where(total == 0, 1, total)
        largest = np.max(np.abs(vd), axis=2, initial=0, keepdims=True)
        bound = (weight @ np.abs(vd) + largest) * (1 + spread)
        return Value(dtype, weight @ vd, magnitude=("absolute", bound, 32), unsure=unsure)


@op("attention_with_sinks")
def attention_with_sinks(q, k, v, sinks, scale, mask, causal):
    return attention(q, k, v, scale, mask, causal, sinks)


@op("gated_delta_update")
def gated_delta_update(q, k, v, gamma, beta, initial_state, mask):
    if any(x.rank != 4 for x in (q, k, v)) or any(x.rank != 3 for x in (gamma, beta)):
        raise Refuse("rank")
    (b, steps, key_heads, width), (_, _, heads, values) = q.shape, v.shape
    state = (b, heads, values, width)
    if q.shape != k.shape or v.shape[:2] != (b, steps) or key_heads == 0 or heads % key_heads or any(
            x.shape != (b, steps, heads) for x in (gamma, beta)) or (
            initial_state is not None and initial_state.shape != state) or (
            mask is not None and mask.shape != (b, steps)):
        raise Refuse("shape")
    dtype = layer_dtype([q, k, v])
    wide = "float64" if dtype == "float64" else "float32"
    given = [cast(x, wide).data for x in (q, k, v, gamma, beta)]
    last = np.zeros(state) if initial_state is None else cast(initial_state, wide).data
    size, y, bound = np.abs(last), np.zeros((b, steps, heads, values)), np.zeros((b, steps, heads, values))
    with np.errstate(all="ignore"):
        for t in range(steps):
            qt, kt = (np.repeat(x[:, t], heads // key_heads, axis=1)[:, :, None, :] for x in given[:2])
            vt, gt, bt = given[2][:, t][..., None], given[3][:, t][..., None, None], given[4][:, t][..., None, None]
            faded, grown = last * gt, size * np.abs(gt)
            kept = np.ones((b, 1, 1, 1), bool) if mask is None else mask.data[:, t].reshape(b, 1, 1, 1) != 0
            error = vt - np.sum(faded * kt, axis=-1, keepdims=True)
            wrong = np.abs(vt) + np.sum(grown * np.abs(kt), axis=-1, keepdims=True)
            last = np.where(kept, faded + bt * error * kt, last)
            size = np.where(kept, grown + np.abs(bt) * wrong * np.abs(kt), size)
            size = np.where(wrong < 1e30, size, np.inf)  # infinite in the dtype: by 0 it is NaN
            y[:, t] = np.where(kept, np.sum(last * qt, axis=-1, keepdims=True), 0)[..., 0]
            bound[:, t] = np.sum(size * np.abs(qt), axis=-1)
    lost = 16 * (steps + width) * TINY[wide] / EPS[wide]  # each product may round away what is subnormal
    return [Value(dtype, y, magnitude=("absolute", bound + lost, 16 * (steps + width)), unsure=~(bound < 1e30)),
            Value(wide, last, magnitude=("absolute", size + lost, 16 * (steps + width)), unsure=~(size < 1e30))]


@op("cross_entropy")
def cross_entropy(logits, targets):
    dtype = layer_dtype([logits])
    if kind(targets.dtype) not in (1, 2) or logits.rank < 1 or targets.shape != logits.shape[:-1]:
        raise Refuse("targets")
    data = cast(logits, dtype).data
    index, bad = indices_of(targets, data.shape[-1])
    bad = bad | (targets.data < 0)  # a class does not count from the end
    with np.errstate(all="ignore"):
        total = logsumexp_data(data, (data.ndim - 1,), False)
        picked = np.take_along_axis(data, index[..., None], axis=-1)[..., 0] if data.size else total
        value = np.where(bad, total, total - picked)
        size = np.abs(total) + np.abs(picked) + 1
    return faulty(Value(dtype, value, magnitude=("absolute", size, 16 + data.shape[-1])), bad)


# ---- random: dtype, shape and range; the bits are compared with MLX elsewhere ----


def check_key(key):
    if key is not None and (key.dtype != "uint32" or key.shape != (2,)):
        raise Refuse("key")


def sized(shape):
    if any(n < 0 for n in listed(shape)):
        raise Refuse("shape")
    return tuple(shape)


def drawn(dtype, shape, low=-np.inf, high=np.inf):
    return Value(dtype, np.zeros(shape, wide(dtype)), magnitude=("range", low, high))


def float_dtype(dtype):
    if dtype not in FLOATS:
        raise Refuse("dtype")


OPS["random_key"] = lambda seed: Value("uint32", np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF],
                                                          dtype=np.uint32))


@op("random_bits")
def random_bits(key, shape, width):
    if width not in (1, 2, 4) or key.dtype != "uint32" or key.rank < 1 or key.shape[-1] != 2:
        raise Refuse("width")
    return drawn(f"uint{8 * width}", key.shape[:-1] + sized(shape))


@op("random_split")
def random_split(key, num):
    check_key(key)
    if num < 0:
        raise Refuse("num")
    return drawn("uint32", (num, 2))


@op("random_uniform")
def random_uniform(low, high, shape, dtype, key):
    check_key(key)
    float_dtype(dtype)
    return drawn(dtype, sized(shape))


def random_of(shape, dtype, key, **_):
    check_key(key)
    float_dtype(dtype)
    return drawn(dtype, sized(shape))


OPS["random_normal"] = OPS["random_laplace"] = OPS["random_gumbel"] = random_of


@op("random_truncated_normal")
def random_truncated_normal(lower, upper, shape, dtype, key):
    check_key(key)
    float_dtype(dtype)
    shape = sized(shape)
    if not lower <= upper:
        raise Refuse("bounds")
    return drawn(dtype, shape)


@op("random_bernoulli")
def random_bernoulli(p, shape, key):
    check_key(key)
    if p.dtype not in FLOATS:
        raise Refuse("dtype")
    shape = p.shape if shape is None else sized(shape)
    np.broadcast_to(p.data, shape)
    return drawn("bool", shape)


@op("random_randint")
def random_randint(low, high, shape, dtype, key):
    check_key(key)
    shape = sized(shape)
    if kind(dtype if dtype != "?" else "float32") > 2 or low >= high:
        raise Refuse("range")
    least_, most_ = (0, 1) if dtype == "bool" else (np.iinfo(NP[dtype]).min, np.iinfo(NP[dtype]).max)
    if low < least_ or high - 1 > most_:
        raise Refuse("overflow")
    return drawn(dtype, shape, low, high - 1)


@op("random_categorical")
def random_categorical(logits, axis, num_samples, key):
    check_key(key)
    axis = norm_axis(axis, logits.rank)
    shape = tuple(n for i, n in enumerate(logits.shape) if i != axis)
    if logits.shape[axis] == 0:
        raise Refuse("empty")
    shape += (num_samples,) if num_samples >= 0 else ()
    return drawn("uint32", shape, 0, logits.shape[axis] - 1)


@op("random_permutation")
def random_permutation(a, axis, key):
    check_key(key)
    return Value(a.dtype, a.data, magnitude=("rearranged", norm_axis(axis, a.rank)))
