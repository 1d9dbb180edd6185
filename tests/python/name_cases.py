"""What is called for each name of MLX: `names: expression`, run on both modules and compared.

`{n}` is the last part of the name. The expressions see the module `m` (tiki or mlx.core), its `nn`,
`optim`, `utils`, and the arrays and helpers of name_world.py. A name with several lines needs them all. What is drawn follows
`seed(3)`. Where MLX's CPU package does not compute something, ` || ` is followed by what it is by definition, for MLX.
Names that only raise do not count; METAL_ONLY lists those that need a GPU's own language.
"""

CORE = """
abs negative sign ceil floor round square exp expm1 sin cos tan arctan atan sinh cosh tanh arcsinh asinh erf sigmoid: m.{n}(x)
degrees radians logical_not isnan isinf isfinite isposinf isneginf positive trunc stop_gradient: m.{n}(x)
sqrt rsqrt reciprocal log log1p log2 log10 arcsin asin arccos acos arctanh atanh erfinv: m.{n}(p)
arccosh acosh: m.{n}(p + 1)
conj conjugate real imag: m.{n}(z)
add subtract multiply divide maximum minimum arctan2 atan2 logaddexp equal not_equal less less_equal greater greater_equal: m.{n}(x, y)
floor_divide remainder divmod power pow: m.{n}(p, y)
floor_divide remainder divmod: m.{n}(i, i + 3)
logical_and logical_or logical_xor: m.{n}(x > 0, y)
bitwise_and bitwise_or bitwise_xor: m.{n}(i, i + 3)
left_shift right_shift bitwise_left_shift bitwise_right_shift: m.{n}(abs(i), m.array([1, 2, 0]))
bitwise_invert: m.{n}(i)
allclose isclose: m.{n}(x, x + 1e-7), m.{n}(x, y, rtol=0.5, atol=0.5)
array_equal: m.array_equal(x, x), m.array_equal(x, y), m.array_equal(x, x[0])
where: m.where(x > 0, x, y), m.where(x > 0, 1, y)
clip: m.clip(x, -1, 1), m.clip(x, None, 0.5)
nan_to_num: m.nan_to_num(m.array([m.nan, m.inf, 1.0]), posinf=7.0)
sum prod max min mean var std logsumexp any all count_nonzero: m.{n}(x), m.{n}(x, axis=1), m.{n}(t, axis=(0, -1), keepdims=True)
minmax median argmax argmin softmax: m.{n}(x), m.{n}(x, axis=0)
cumsum cumprod cummax cummin logcumsumexp cumulative_sum cumulative_prod: m.{n}(x, axis=1), m.{n}(x, axis=0, reverse=True)
cumsum cumprod logcumsumexp: m.{n}(x)
sort argsort: m.{n}(x), m.{n}(t, axis=1), m.{n}(x, axis=None)
partition: m.partition(v, 2)[2], m.sort(m.partition(v, 2)[:2]), m.sort(m.partition(x, 1, axis=1), axis=1)
argpartition: v[m.argpartition(v, 2)[2]], m.sort(m.argpartition(v, 2))
topk: m.sort(m.topk(v, 3)), m.sort(m.topk(x, 2, axis=0), axis=0)
matrix_norm: m.matrix_norm(x), m.matrix_norm(x, 1, axis=(0, 1), keepdims=True)
searchsorted: m.searchsorted(m.sort(v), x), m.searchsorted(m.array([1, 2, 2, 3]), m.array([2, 0, 9]), side='right')
unique: m.unique(m.array([3, 1, 3, 2]), 3), m.unique(m.array([3, 1, 3, 2]), 3, return_index=True, return_inverse=True, return_counts=True)
matmul: m.matmul(x, y.T), m.matmul(w, v[:3])
addmm: m.addmm(w, x.T, y, alpha=2.0, beta=0.5)
inner outer: m.{n}(v, v)
kron: m.kron(x, w)
vecdot: m.vecdot(x, y), m.vecdot(x, y, axis=0)
tensordot: m.tensordot(x, y.T, 1), m.tensordot(x, y, [[0], [0]])
einsum: m.einsum('ij,kj->ik', x, y), m.einsum('ii->', w)
einsum_path: path_shape(m.einsum_path('ij,jk,kl->il', x, w, w)[0])
broadcast_shapes: m.broadcast_shapes((2, 1), (3,), (1, 1))
broadcast_to: m.broadcast_to(v, (2, 6))
broadcast_arrays: m.broadcast_arrays(x, v[:3], m.array(1))
reshape flatten: m.{n}(x, (3, 2)) if '{n}' == 'reshape' else m.flatten(t, 1, 2)
unflatten: m.unflatten(x, 1, (3, 1))
transpose matrix_transpose: m.{n}(x)
permute_dims: m.permute_dims(t, (3, 0, 2, 1))
swapaxes moveaxis: m.{n}(t, 0, 2)
expand_dims: m.expand_dims(x, (0, -1))
squeeze: m.squeeze(t, 0)
concatenate concat: m.{n}([x, y], axis=1), m.{n}([x, y])
stack: m.stack([x, y], axis=-1)
unstack: m.unstack(x, axis=1)
split: m.split(x, 3, axis=1), m.split(v, [1, 3])
pad: m.pad(x, [(1, 0), (0, 2)], constant_values=3), m.pad(x, 1, mode='edge')
tile repeat: m.{n}(x, 2)
roll: m.roll(x, (1, 2), (0, 1)), m.roll(x, 2)
flip: m.flip(x), m.flip(x, axis=1)
atleast_1d atleast_2d atleast_3d: m.{n}(m.array(2.0)), m.{n}(v)
meshgrid: m.meshgrid(v, x[0], indexing='ij')
diag diagonal trace tril triu: m.{n}(w), m.{n}(w, -1) if '{n}' != 'trace' else m.trace(w, 1)
diff: m.diff(v), m.diff(x, n=2, axis=1)
take: m.take(x, m.array([2, 0]), axis=1), m.take(x, 4)
take_along_axis: m.take_along_axis(x, m.array([[1], [2]]), axis=1)
put_along_axis: m.put_along_axis(x, m.array([[1], [2]]), m.array([[9.0], [8.0]]), axis=1)
slice: m.slice(v, m.array([1]), [0], [3])
slice_update: m.slice_update(v, m.array([7.0, 8.0]), m.array([1]), [0])
as_strided: m.as_strided(v, (2, 3), (1, 1), 1)
contiguous: m.contiguous(x.T)
view: m.view(x, m.int32), m.view(i, m.uint8)
astype: m.astype(x, m.int8), m.astype(i, m.bfloat16)
zeros ones empty: shape_or_values('{n}', m.{n}((2, 3), dtype=m.int16))
zeros_like ones_like empty_like: shape_or_values('{n}', m.{n}(x))
full: m.full((2, 3), 7), m.full((2,), 1.5, dtype=m.float16)
full_like: m.full_like(x, 3.0)
eye: m.eye(3, 4, 1)
identity: m.identity(3)
tri: m.tri(3, 4, k=1)
arange: m.arange(7), m.arange(1.0, 2.0, 0.25), m.arange(9, 1, -3, dtype=m.int8)
linspace: m.linspace(0, 1, 5), m.linspace(2, 9, 4, endpoint=False)
hanning hamming blackman bartlett: m.{n}(7)
array asarray: m.{n}([[1, 2], [3, 4]]), m.{n}([1.5, 2.0]), m.{n}(True)
from_dlpack: m.from_dlpack(numpy_values(2, 3))
conv1d: m.conv1d(f(2, 6, 3), f(4, 3, 3), stride=2, padding=1)
conv2d: m.conv2d(f(1, 5, 4, 2), f(3, 2, 2, 2), padding=(1, 0))
conv3d: m.conv3d(f(1, 4, 3, 3, 2), f(2, 2, 2, 2, 2))
conv_general: m.conv_general(f(1, 5, 4, 2), f(3, 2, 2, 2), padding=([1, 0], [0, 2]), input_dilation=2, flip=True)
conv_transpose1d: m.conv_transpose1d(f(2, 4, 3), f(4, 3, 3), stride=2, padding=1, output_padding=1)
conv_transpose2d: m.conv_transpose2d(f(1, 3, 4, 2), f(3, 2, 2, 2), stride=(2, 1))
conv_transpose3d: m.conv_transpose3d(f(1, 2, 3, 2, 2), f(2, 2, 2, 2, 2))
convolve: m.convolve(v, x[0]), m.convolve(v, x[0], mode='same')
hadamard_transform: m.hadamard_transform(f(2, 12))
quantize: m.quantize(f(4, 64), group_size=32, bits=4)
dequantize: m.dequantize(*m.quantize(f(4, 64), group_size=32, bits=4), group_size=32, bits=4)
quantized_matmul: m.quantized_matmul(f(3, 64), *m.quantize(f(8, 64), group_size=32, bits=8), group_size=32, bits=8)
gather_qmm: m.gather_qmm(f(2, 3, 64), *m.quantize(f(4, 8, 64), group_size=32, bits=4), rhs_indices=m.array([3, 1]), group_size=32, bits=4)
qqmm: m.qqmm(f(4, 64), f(32, 64, seed=1), mode='mxfp8') || through_codes(f(4, 64)) @ through_codes(f(32, 64, seed=1)).T ~ 1e-4
gather_qqmm: m.gather_qqmm(f(2, 4, 64), f(3, 32, 64, seed=1), lhs_indices=m.array([0, 1]), rhs_indices=m.array([2, 0]), mode='mxfp8') || through_codes(f(2, 4, 64)) @ through_codes(f(3, 32, 64, seed=1))[m.array([2, 0])].swapaxes(-1, -2) ~ 1e-4
gather_mm: m.gather_mm(f(2, 3, 4), f(5, 4, 2), rhs_indices=m.array([4, 0]))
segmented_mm: m.segmented_mm(f(3, 6), f(6, 2), m.array([[0, 2], [2, 6]]))
block_masked_mm: m.block_masked_mm(f(32, 64), f(64, 32), 32, mask_out=m.array([[True]]), mask_lhs=m.array([[True, False]]))
to_fp8: m.to_fp8(x)
from_fp8: m.from_fp8(m.to_fp8(x), dtype=m.float32)
depends: m.depends(x, y), m.depends([x, v], [y])
eval async_eval: (m.{n}(x, [y]), x)
grad: m.grad(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x, y)
value_and_grad: m.value_and_grad(lambda a: (a * m.sin(a)).sum())(x)
vjp jvp: m.{n}(lambda a, b: [a * b, m.exp(a)], [x, y], [y, x])
vmap: m.vmap(lambda a, b: m.outer(a, b), in_axes=(0, None))(x, v)
checkpoint: m.grad(m.checkpoint(lambda a: m.exp(a).sum()))(x)
compile: m.compile(lambda a, b: m.exp(a) * b + a)(x, y)
disable_compile enable_compile: compiled_after(m.{n})
custom_function: m.custom_function(lambda a: a * 2)(x)
custom_function.vjp: custom('vjp', lambda a, c, o: c * a)
custom_function.jvp: custom('jvp', lambda a, t: t * a)
custom_function.vmap: custom('vmap', lambda a, at: (a * 3, at))
export_function import_function: exported(lambda a, b: a * m.exp(b))
exporter FunctionExporter FunctionExporter.close: exported_by_steps()
export_to_dot: 'digraph' in dot_text()
save: saved('a.npy', lambda file: m.save(file, x))
savez savez_compressed: saved('a.npz', lambda file: m.{n}(file, x=x, y=i))
save_safetensors: saved('a.safetensors', lambda file: m.save_safetensors(file, {'x': x, 'y': i}))
save_gguf: saved('a.gguf', lambda file: m.save_gguf(file, {'x': x, 'y': i}))
load: saved('b.npy', lambda file: m.save(file, z))
pi e euler_gamma inf newaxis: m.{n}
nan: str(m.nan)
bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 complex64: m.array([0, 1, 2.5]).astype(m.{n}), m.zeros((2,), m.{n})
float64: m.array([0.1, 1e300], dtype=m.float64)
Dtype: isinstance(m.float32, m.Dtype), m.Dtype.__name__
Dtype.size: [getattr(m, n).size for n in 'bool_ int8 uint16 bfloat16 float32 int64 complex64'.split()]
DtypeCategory: isinstance(m.floating, m.DtypeCategory)
complexfloating floating inexact signedinteger unsignedinteger integer number generic: [m.issubdtype(d, m.{n}) for d in (m.bool_, m.int8, m.uint32, m.bfloat16, m.complex64)], m.{n} == m.DtypeCategory.{n}
DtypeCategory.complexfloating DtypeCategory.floating DtypeCategory.inexact DtypeCategory.signedinteger: m.issubdtype(m.float16, m.DtypeCategory.{n}), m.DtypeCategory.{n}.name
DtypeCategory.unsignedinteger DtypeCategory.integer DtypeCategory.number DtypeCategory.generic: m.issubdtype(m.float16, m.DtypeCategory.{n}), m.DtypeCategory.{n}.name
issubdtype: m.issubdtype(m.float32, m.floating), m.issubdtype(m.floating, m.inexact)
isdtype: m.isdtype(m.int8, ('signed integer', 'bool')), m.isdtype(m.int8, m.int16)
can_cast: m.can_cast(m.int8, m.float16), m.can_cast(m.float32, m.int8), m.can_cast(x, m.float16)
result_type: m.result_type(m.int8, m.float16), m.result_type(x, m.int64)
finfo finfo.bits finfo.min finfo.max finfo.eps finfo.smallest_normal finfo.dtype: [[m.finfo(d).{n} if '{n}' != 'finfo' else m.finfo(d).eps for d in (m.float16, m.bfloat16, m.float32)], m.finfo(m.complex64).bits]
iinfo iinfo.min iinfo.max iinfo.dtype: [m.iinfo(d).{n} if '{n}' != 'iinfo' else m.iinfo(d).max for d in (m.int8, m.uint16, m.int64, m.uint64)]
Device: m.Device(m.cpu, 0) == m.default_device(), str(m.Device(m.cpu))
Device.type: m.Device(m.cpu).type == m.cpu
DeviceType: isinstance(m.cpu, m.DeviceType), m.DeviceType.cpu == m.cpu
DeviceType.cpu DeviceType.gpu cpu gpu: str(m.DeviceType.{n}), m.{n} == m.DeviceType.{n}
default_device: str(m.default_device())
set_default_device: (m.set_default_device(m.cpu), str(m.default_device()))
default_stream: m.default_stream(m.cpu) == m.default_stream(m.cpu), isinstance(m.default_stream(m.cpu), m.Stream)
set_default_stream: default_stream_is_set()
new_stream new_thread_unsafe_stream: m.add(x, y, stream=m.{n}(m.cpu))
Stream Stream.device: str(m.new_stream(m.cpu).device), isinstance(m.new_stream(m.cpu), m.Stream)
new_thread_local_stream ThreadLocalStream ThreadLocalStream.device: str(m.new_thread_local_stream(m.cpu).device), isinstance(m.new_thread_local_stream(m.cpu), m.ThreadLocalStream), m.add(x, 1, stream=m.new_thread_local_stream(m.cpu))
stream StreamContext: added_within(m.stream(m.cpu)), isinstance(m.stream(m.cpu), m.StreamContext)
synchronize: m.synchronize(), m.synchronize(m.default_stream(m.cpu))
clear_streams: in_thread(lambda: (m.eval(m.ones((2,))), m.clear_streams())[1])
device_count: m.device_count(m.cpu), m.device_count(m.gpu)
device_info: isinstance(m.device_info(m.cpu), dict), sorted(set(m.device_info(m.cpu)) & {'architecture', 'device_name'})
is_available: m.is_available(m.cpu), m.is_available(m.gpu), m.is_available(m.Device(m.cpu))
get_active_memory get_cache_memory get_peak_memory get_memory_limit: type(m.{n}()).__name__, m.{n}() >= 0
get_active_memory: bytes_of_a_megabyte()
clear_cache: (m.clear_cache(), m.get_cache_memory())
reset_peak_memory: (m.reset_peak_memory(), m.get_peak_memory() <= m.get_active_memory() + 4096)
set_memory_limit set_cache_limit: limit_is_set(m.{n})
set_wired_limit: type(m.set_wired_limit(0)).__name__
get_array_buffer_size: m.get_array_buffer_size(x, [i]) >= 48
PrintOptions PrintOptions.precision: m.PrintOptions(3).precision
printoptions: printed(m.printoptions(precision=2))
get_printoptions set_printoptions: options_are_set()
ArrayLike: isinstance(m.ArrayLike(like), m.ArrayLike), m.array(like)
ArrayIterator: isinstance(iter(v), m.ArrayIterator), [a for a in iter(x)]
ArrayAt: isinstance(x.at[0], m.ArrayAt), x.at[0].add(1)
ArrayAt.add ArrayAt.subtract ArrayAt.multiply ArrayAt.divide ArrayAt.maximum ArrayAt.minimum: x.at[:, m.array([0, 2])].{n}(1.5), x.at[1].{n}(y[0])
"""

RANDOM = """
random.seed: (m.random.seed(9), m.random.uniform(shape=(3,)))
random.key: m.random.key(7)
random.split: m.random.split(m.random.key(7), 3)
random.state: len(m.random.state), m.random.state[0]
random.uniform: m.random.uniform(shape=(4, 5)), m.random.uniform(-1, 3, (4,), key=m.random.key(1))
random.bernoulli: m.random.bernoulli(0.3, (40,))
random.randint: m.random.randint(-5, 90, (40,)), m.random.randint(0, 200, (9,), dtype=m.uint8)
random.permutation: m.random.permutation(30), m.random.permutation(x, axis=1)
random.categorical: m.random.categorical(f(3, 5), num_samples=7)
random.normal: m.random.normal((5, 6)), m.random.normal((40,), loc=2.0, scale=3.0, dtype=m.float16) ~ 1e-2
random.truncated_normal: m.random.truncated_normal(-1.0, 2.0, (40,)) ~ 1e-4
random.laplace random.gumbel: m.random.{n}((40,)) ~ 1e-4
random.multivariate_normal: m.random.multivariate_normal(v[:3], s, [5]) ~ 1e-4
"""

LINALG = """
linalg.cholesky: m.linalg.cholesky(s), m.linalg.cholesky(s, upper=True)
linalg.cholesky_inv: m.linalg.cholesky_inv(m.linalg.cholesky(s)) ~ 1e-4
linalg.cross: m.linalg.cross(x, y)
linalg.det linalg.slogdet: m.linalg.{n}(w)
linalg.eig: eigen(*m.linalg.eig(w), w) ~ 1e-4
linalg.eigh: eigen(*m.linalg.eigh(s), s) ~ 1e-4
linalg.eigvals: m.sort(m.abs(m.linalg.eigvals(w))) ~ 1e-4
linalg.eigvalsh: m.linalg.eigvalsh(s)
linalg.inv linalg.pinv: m.linalg.{n}(w) ~ 1e-4
linalg.lu linalg.lu_factor: m.linalg.{n}(w)
linalg.norm: m.linalg.norm(x), m.linalg.norm(x, 1), m.linalg.norm(x, 'nuc'), m.linalg.norm(x, axis=1)
linalg.qr: (lambda q, r: [q @ r, m.abs(r)])(*m.linalg.qr(w)) ~ 1e-4
linalg.solve: m.linalg.solve(w, x.T) ~ 1e-4
linalg.solve_triangular linalg.tri_inv: (m.linalg.solve_triangular(w, x.T, upper=True) if '{n}' != 'tri_inv' else m.linalg.tri_inv(w)) ~ 1e-4
linalg.svd: (lambda u, e, vt: [(u[:, :2] * e) @ vt[:2], e])(*m.linalg.svd(x)), m.linalg.svd(x, compute_uv=False) ~ 1e-4
fft.fft fft.ifft fft.rfft: m.fft.{n}(x), m.fft.{n}(v, n=8), m.fft.{n}(x, axis=0, norm='ortho') ~ 1e-4
fft.irfft: m.fft.irfft(m.fft.rfft(f(3, 6)))
fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft2 fft.rfftn: m.fft.{n}(t), m.fft.{n}(t, axes=(1, 2)) ~ 1e-4
fft.irfft2 fft.irfftn: m.fft.{n}(m.fft.{n}.__name__ and m.fft.rfft2(t)) ~ 1e-4
fft.fftfreq fft.rfftfreq: m.fft.{n}(7, 0.5)
fft.fftshift fft.ifftshift: m.fft.{n}(x), m.fft.{n}(x, axes=1)
fft.stft: m.fft.stft(f(64), n_fft=16, hop_length=4) ~ 1e-4
fft.istft: m.fft.istft(m.fft.stft(f(64), n_fft=16, hop_length=4), n_fft=16, hop_length=4) ~ 1e-4
fast.cross_entropy: m.fast.cross_entropy(f(4, 5), m.array([0, 4, 2, 1]))
fast.layer_norm: m.fast.layer_norm(x, v[:3], y[0], 1e-5), m.fast.layer_norm(x, None, None, 1e-3)
fast.rms_norm: m.fast.rms_norm(x, v[:3], 1e-5), m.fast.rms_norm(x, None, 1e-3)
fast.rope: m.fast.rope(f(1, 2, 3, 8), 6, traditional=True, base=100.0, scale=0.5, offset=2)
fast.scaled_dot_product_attention: m.fast.scaled_dot_product_attention(f(1, 4, 5, 8), f(1, 2, 6, 8), f(1, 2, 6, 8, seed=1), scale=0.3, mask='causal')
fast.scaled_dot_product_attention: m.fast.scaled_dot_product_attention(f(1, 4, 5, 8), f(1, 2, 6, 8), f(1, 2, 6, 8, seed=1), scale=0.3, sinks=f(4))
fast.gated_delta_update: m.fast.gated_delta_update(f(1, 3, 2, 32), f(1, 3, 2, 32, seed=1), f(1, 3, 4, 8), m.sigmoid(f(1, 3, 4)), m.sigmoid(f(1, 3, 4, seed=2))) ~ 1e-4
distributed.init distributed.Group distributed.Group.rank distributed.Group.size: m.distributed.init().rank(), m.distributed.init().size(), isinstance(m.distributed.init(), m.distributed.Group)
distributed.is_available: type(m.distributed.is_available()).__name__
distributed.all_sum distributed.all_max distributed.all_min distributed.all_gather distributed.sum_scatter: m.distributed.{n}(x)
cuda.is_available metal.is_available: m.{w}()
metal.get_active_memory metal.get_cache_memory metal.get_peak_memory: m.metal.{n}() >= 0
metal.clear_cache metal.reset_peak_memory: (m.metal.{n}(), x)
metal.set_memory_limit metal.set_cache_limit: limit_is_set(m.metal.{n})
metal.set_wired_limit: type(m.metal.set_wired_limit(0)).__name__
metal.device_info: isinstance(m.metal.device_info(), dict)
"""

# Operators and methods of the array type.
ARRAY = """
array.__init__: m.array([[1, 2]]), m.array(2.5, m.float16), m.array(x)
array.__add__ array.__sub__ array.__mul__ array.__truediv__ array.__div__ array.__eq__ array.__ne__ array.__lt__ array.__le__ array.__gt__ array.__ge__: x.{n}(y), x.{n}(2)
array.__radd__ array.__rsub__ array.__rmul__ array.__rtruediv__ array.__rdiv__: x.{n}(2), x.{n}(1.5)
array.__floordiv__ array.__rfloordiv__ array.__mod__ array.__rmod__ array.__pow__: (i + 9).{n}(3), p.{n}(2.0)
array.__rpow__: x.__rpow__(2.0)
array.__iadd__ array.__isub__ array.__imul__ array.__itruediv__ array.__ipow__: p.{n}(y)
array.__ifloordiv__ array.__imod__ array.__iand__ array.__ior__ array.__ixor__: i.{n}(i + 3)
array.__and__ array.__or__ array.__xor__: i.{n}(i + 3), (x > 0).{n}(y > 0)
array.__lshift__ array.__rshift__ array.__ilshift__ array.__irshift__: abs(i).{n}(2)
array.__matmul__: x.__matmul__(y.T)
array.__imatmul__: w.__imatmul__(s)
array.__neg__ array.__pos__ array.__abs__: x.{n}()
array.__invert__: i.__invert__(), (x > 0).__invert__()
array.__bool__ array.__int__ array.__float__ array.__complex__ array.__index__: m.array(3).{n}()
array.__bytes__: bytes(m.array([1, 2, 3], dtype=m.uint8))
array.__format__: format(m.array(1.5), '.3f'), format(m.array(7), '4d')
array.__repr__: repr(m.array([1, 2])), repr(m.array([[1.5, 2.5]])).split(', dtype')[0]
array.__len__: len(x), len(v)
array.__iter__: [a for a in x]
array.__getitem__: x[1], x[:, ::-1], x[m.array([1, 0])], x[..., None], x[1, 2], v[-2:]
array.__setitem__: set_item(x, (1, slice(None, 2)), 7), set_item(v, m.array([0, 3]), v[:2] * 2)
array.__copy__ array.__deepcopy__: x.{n}() if '{n}' == '__copy__' else x.__deepcopy__({})
array.__getstate__ array.__setstate__: pickled(x), pickled(m.array([1, 2], dtype=m.int8))
array.__array__: x.__array__()
array.__array_namespace__: x.__array_namespace__().matmul is m.matmul
array.__dlpack__: np.from_dlpack(x)
array.__dlpack_device__: x.__dlpack_device__()
array.size array.ndim array.itemsize array.nbytes array.shape array.dtype array.T array.mT: t.{n}, x.astype(m.int8).{n}
array.real array.imag: z.{n}
array.item: m.array(2.5).item(), m.array(True).item(), m.array([[7]]).item(), z[0].item()
array.tolist: x.tolist(), m.array(1).tolist(), (x > 0).tolist(), z.tolist()
array.astype array.view: x.{n}(m.int32)
array.at: x.at[1].add(y[0])
array.flatten: t.flatten(), t.flatten(1, 2)
array.reshape: x.reshape(3, 2), x.reshape((-1,))
array.squeeze: t.squeeze(), t.squeeze(0)
array.abs array.square array.exp array.sin array.cos array.round: x.{n}()
array.sqrt array.rsqrt array.reciprocal array.log array.log2 array.log10 array.log1p: p.{n}()
array.conj: z.conj()
array.all array.any array.sum array.prod array.min array.max array.mean array.std array.var array.logsumexp: x.{n}(), x.{n}(axis=1, keepdims=True)
array.argmin array.argmax: x.{n}(), x.{n}(axis=0)
array.cumsum array.cumprod array.cummax array.cummin array.logcumsumexp: x.{n}(axis=1), x.{n}(axis=0, reverse=True, inclusive=False)
array.moveaxis array.swapaxes: t.{n}(0, 2)
array.transpose: t.transpose(), t.transpose(3, 0, 2, 1)
array.split: x.split(3, axis=1)
array.diagonal array.diag: w.{n}(), w.{n}(1)
"""

# A GPU's own language: the name is there, a call raises a typed error.
METAL_ONLY = {
    "metal.start_capture": "m.metal.start_capture('trace')",
    "metal.stop_capture": "m.metal.stop_capture()",
    "fast.metal_kernel": "m.fast.metal_kernel('f', ['x'], ['y'], 'y[0] = x[0];')",
    "fast.cuda_kernel": "m.fast.cuda_kernel('f', ['x'], ['y'], 'y[0] = x[0];')",
    "fast.precompiled_cuda_kernel": (
        "m.fast.precompiled_cuda_kernel(name='f', compiled_source=b'', inputs=[x], output_shapes=[(1,)], "
        "output_dtypes=[m.float32], scalars=[], grid=(1, 1, 1), threadgroup=(1, 1, 1))"
    ),
}

# What needs more than one process: MLX refuses it in a group of one, and so does Tiki.
NEEDS_PROCESSES = {
    "distributed.Group.split": "m.distributed.init().split(0)",
    "distributed.send": "m.eval(m.distributed.send(x, 0))",
    "distributed.recv": "m.eval(m.distributed.recv((2,), m.float32, 0))",
    "distributed.recv_like": "m.eval(m.distributed.recv_like(x, 0))",
}
