"""Cases of layers, losses, initial values, optimizers and trees: see name_cases.py."""

LAYERS = """
nn.ReLU nn.ReLU2 nn.ReLU6 nn.Sigmoid nn.SiLU nn.GELU nn.Tanh nn.Mish nn.SELU nn.Hardswish nn.HardTanh nn.LogSigmoid nn.Softplus: nn.{n}()(x)
nn.Softsign nn.Softmax nn.Softmin nn.LogSoftmax nn.LeakyReLU nn.CELU nn.ELU nn.Softshrink nn.HardShrink nn.Step nn.PReLU: nn.{n}()(x)
nn.GLU: nn.GLU()(f(2, 4))
nn.relu nn.relu2 nn.relu6 nn.sigmoid nn.silu nn.gelu nn.gelu_approx nn.gelu_fast_approx nn.tanh nn.mish nn.selu nn.hardswish nn.hard_tanh: nn.{n}(x)
nn.log_sigmoid nn.softplus nn.softsign nn.softmax nn.softmin nn.log_softmax nn.leaky_relu nn.celu nn.elu nn.softshrink nn.hard_shrink nn.step: nn.{n}(x)
nn.glu: nn.glu(f(4, 2), axis=0)
nn.prelu: nn.prelu(x, m.array(0.2))
nn.Linear: nn.Linear(3, 5)(x), nn.Linear(3, 5, bias=False)(x)
nn.Bilinear: nn.Bilinear(3, 3, 4)(x, y)
nn.Identity: nn.Identity(1, a=2)(x)
nn.Embedding: nn.Embedding(7, 4)(m.array([[1, 6], [0, 1]])) ~ 1e-4
nn.Embedding.as_linear: nn.Embedding(7, 3).as_linear(x) ~ 1e-4
nn.ALiBi: nn.ALiBi()(f(1, 6, 4, 5)), nn.ALiBi()(f(1, 2, 4, 5), offset=3)
nn.ALiBi.create_alibi_matrix: nn.ALiBi.create_alibi_matrix(4, 5, 6, 1)
nn.ALiBi.create_alibi_slope: nn.ALiBi.create_alibi_slope(6)
nn.RoPE: nn.RoPE(6)(f(1, 2, 3, 8)), nn.RoPE(8, traditional=True)(f(1, 2, 3, 8), offset=4)
nn.SinusoidalPositionalEncoding: nn.SinusoidalPositionalEncoding(8)(m.arange(5.0))
nn.AvgPool1d nn.MaxPool1d: nn.{n}(3, 2, 1)(f(2, 8, 3))
nn.AvgPool2d nn.MaxPool2d: nn.{n}(2)(f(1, 6, 4, 3))
nn.AvgPool3d nn.MaxPool3d: nn.{n}(2, 1)(f(1, 3, 4, 3, 2))
nn.Conv1d: nn.Conv1d(4, 6, 3, stride=2, padding=1)(f(2, 9, 4))
nn.Conv2d: nn.Conv2d(3, 5, 3, dilation=2)(f(1, 7, 6, 3))
nn.Conv3d: nn.Conv3d(2, 3, 2)(f(1, 3, 4, 3, 2))
nn.ConvTranspose1d: nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1)(f(2, 5, 4))
nn.ConvTranspose2d: nn.ConvTranspose2d(3, 4, 3, 2)(f(1, 4, 3, 3))
nn.ConvTranspose3d: nn.ConvTranspose3d(2, 3, 2)(f(1, 2, 3, 2, 2))
nn.Dropout: nn.Dropout(0.3)(f(5, 7)), nn.Dropout(0.3).eval()(x)
nn.Dropout2d nn.Dropout3d: nn.{n}(0.4)(f(2, 3, 4, 5) if '{n}' == 'Dropout2d' else f(2, 3, 2, 2, 5))
nn.LayerNorm nn.RMSNorm: nn.{n}(3)(x)
nn.InstanceNorm: nn.InstanceNorm(3, affine=True)(f(2, 5, 3))
nn.GroupNorm: nn.GroupNorm(2, 6)(f(2, 5, 6)), nn.GroupNorm(2, 6, pytorch_compatible=True)(f(2, 5, 6))
nn.BatchNorm: twice(nn.BatchNorm(3), f(6, 3))
nn.BatchNorm.unfreeze: names_of(after(nn.BatchNorm(3), 'unfreeze').trainable_parameters())
nn.GRU nn.RNN: nn.{n}(3, 5)(f(2, 4, 3))
nn.LSTM: nn.LSTM(3, 5)(f(2, 4, 3))
nn.Sequential: model()(x)
nn.MultiHeadAttention: nn.MultiHeadAttention(8, 2, bias=True)(f(2, 5, 8), f(2, 3, 8), f(2, 3, 8, seed=1))
nn.MultiHeadAttention.create_additive_causal_mask: nn.MultiHeadAttention.create_additive_causal_mask(4)
nn.Transformer: nn.Transformer(8, 2, 1, 1, 12)(f(2, 3, 8), f(2, 4, 8), None, None, None)
nn.TransformerEncoder: nn.TransformerEncoder(2, 8, 2)(f(2, 4, 8), None)
nn.TransformerEncoderLayer: nn.TransformerEncoderLayer(8, 2, norm_first=False)(f(2, 4, 8), None)
nn.TransformerDecoder: nn.TransformerDecoder(1, 8, 2)(f(2, 4, 8), f(2, 3, 8), None, None)
nn.TransformerDecoderLayer: nn.TransformerDecoderLayer(8, 2, 12)(f(2, 4, 8), f(2, 3, 8), None, None)
nn.Upsample: nn.Upsample(2.0)(f(1, 3, 4, 2)), nn.Upsample((1.5, 2.0), 'linear')(f(1, 3, 4, 2)), nn.Upsample(2.0, 'cubic', align_corners=True)(f(1, 3, 4, 2))
nn.QuantizedLinear: nn.QuantizedLinear(64, 8, group_size=32, bits=4)(f(3, 64)) ~ 1e-4
nn.QuantizedLinear.from_linear: nn.QuantizedLinear.from_linear(nn.Linear(64, 8), group_size=32, bits=8)(f(3, 64)) ~ 1e-4
nn.Linear.to_quantized: nn.Linear(64, 8).to_quantized(group_size=32, bits=4)(f(3, 64)) ~ 1e-4
nn.QuantizedEmbedding: nn.QuantizedEmbedding(7, 64, group_size=32, bits=8)(m.array([1, 6])).shape
nn.QuantizedEmbedding.from_embedding nn.QuantizedEmbedding.as_linear: quantized_embedding(nn.QuantizedEmbedding.from_embedding).as_linear(f(2, 64)) ~ 1e-3
nn.QuantizedEmbedding: quantized_embedding(nn.QuantizedEmbedding.from_embedding)(m.array([1, 6])) ~ 1e-3
nn.Embedding.to_quantized: quantized_embedding(lambda e, **k: e.to_quantized(**k))(m.array([1, 6])) ~ 1e-3
nn.QQLinear: type(nn.QQLinear(64, 32, mode='mxfp8')).__name__
nn.QQLinear nn.QQLinear.from_linear: nn.QQLinear.from_linear(nn.Linear(64, 32, bias=False), mode='mxfp8')(f(4, 64)) || through_codes(f(4, 64)) @ through_codes(nn.Linear(64, 32, bias=False).weight).T ~ 1e-4
nn.QQLinear.quantize nn.QQLinear.dequantize: qq_switched()
nn.quantize: quantized_model() ~ 1e-4
nn.AllToShardedLinear nn.ShardedToAllLinear: nn.{n}(3, 4)(x)
nn.AllToShardedLinear.from_linear nn.ShardedToAllLinear.from_linear: getattr(nn, '{o}').from_linear(nn.Linear(3, 4))(x)
nn.QuantizedAllToShardedLinear nn.QuantizedShardedToAllLinear: nn.{n}(64, 8, group_size=32)(f(2, 64)) ~ 1e-4
nn.QuantizedAllToShardedLinear.from_quantized_linear nn.QuantizedShardedToAllLinear.from_quantized_linear: getattr(nn, '{o}').from_quantized_linear(nn.QuantizedLinear(64, 8, group_size=32))(f(2, 64)) ~ 1e-4
nn.QuantizedAllToShardedLinear.unfreeze nn.QuantizedShardedToAllLinear.unfreeze: names_of(after(getattr(nn, '{o}')(64, 8, group_size=32), 'unfreeze').trainable_parameters())
nn.FullyShardedModule nn.fully_shard: nn.{n}(nn.Linear(3, 4))(x)
nn.FullyShardedModule.as_linear: nn.FullyShardedModule(nn.Embedding(7, 3)).as_linear(x) ~ 1e-4
nn.layers.distributed.shard_linear: m.__name__ and module('nn.layers.distributed').shard_linear(nn.Linear(3, 4), 'all-to-sharded')(x)
nn.layers.distributed.shard_inplace: sharded_in_place()
nn.layers.distributed.sum_gradients: m.grad(lambda a: (module('nn.layers.distributed').sum_gradients(m.distributed.init())(a) * y).sum())(x)
nn.value_and_grad nn.utils.value_and_grad: value_and_grad_of_a_model(nn.{n} if hasattr(nn, '{n}') else nn.utils.{n})
nn.average_gradients nn.utils.average_gradients: (nn if '{n}' in dir(nn) else nn.utils).{n}({'a': x, 'b': [y]})
nn.utils.checkpoint: nn.utils.checkpoint(model())(x)
nn.utils.clip_grad_norm_sharded: nn.utils.clip_grad_norm_sharded({'a': x, 'b': [y]}, 0.5)
nn.Module: isinstance(nn.Linear(2, 2), nn.Module)
nn.Module.training nn.Module.train nn.Module.eval: [model().eval().training, model().eval().train().training, [a.training for a in model().eval().modules()]]
nn.Module.state: sorted(nn.Linear(2, 3).state)
nn.Module.load_weights nn.Module.save_weights: weights_in_files()
nn.Module.is_module: [nn.Module.is_module(a) for a in (nn.Linear(2, 2), x, {})]
nn.Module.valid_child_filter nn.Module.valid_parameter_filter nn.Module.trainable_parameter_filter: filters('{n}')
nn.Module.filter_and_map: nn.Linear(3, 2).filter_and_map(nn.Module.valid_parameter_filter, lambda a: a * 2)
nn.Module.parameters nn.Module.trainable_parameters: model().{n}(), model().freeze(keys='bias').{n}()
nn.Module.children nn.Module.leaf_modules: utils.tree_map(lambda a: type(a).__name__, model().{n}(), is_leaf=nn.Module.is_module)
nn.Module.modules nn.Module.named_modules: sorted(str(type(a[1] if isinstance(a, tuple) else a).__name__) for a in model().{n}()), [a[0] for a in model().named_modules()]
nn.Module.update: nn.Linear(2, 2).update({'bias': v[:2]}).parameters()
nn.Module.update_modules: nn.Sequential(nn.ReLU(), nn.ReLU()).update_modules({'layers': [nn.Tanh(), nn.Identity()]})(x)
nn.Module.apply: model().apply(lambda a: a * 0 + 1).parameters()
nn.Module.apply_to_modules: applied_names()
nn.Module.freeze nn.Module.unfreeze: names_of(model().freeze(keys='bias').trainable_parameters()), names_of(model().freeze().unfreeze(recurse=False).trainable_parameters())
nn.Module.set_dtype: after(model().apply(lambda a: a * 0 + 1), 'set_dtype', m.float16)(x)
nn.init.uniform: nn.init.uniform(-0.5, 2.0)(m.zeros((4, 5)))
nn.init.glorot_uniform nn.init.he_uniform: nn.init.{n}()(m.zeros((4, 5)))
nn.init.normal nn.init.glorot_normal nn.init.he_normal: nn.init.{n}()(m.zeros((4, 5))) ~ 1e-4
nn.init.constant: nn.init.constant(3.5)(m.zeros((2, 3)))
nn.init.identity: nn.init.identity()(m.zeros((3, 3)))
nn.init.orthogonal: m.abs(nn.init.orthogonal()(m.zeros((4, 4)))) ~ 1e-4
nn.init.sparse: nn.init.sparse(0.5)(m.zeros((6, 4))) ~ 1e-4
nn.losses.binary_cross_entropy: nn.losses.binary_cross_entropy(x, p), nn.losses.binary_cross_entropy(p, p, with_logits=False, reduction='sum')
nn.losses.cross_entropy: nn.losses.cross_entropy(f(4, 5), m.array([0, 4, 2, 1])), nn.losses.cross_entropy(x, m.softmax(y, -1), label_smoothing=0.1, reduction='mean')
nn.losses.nll_loss: nn.losses.nll_loss(f(4, 5), m.array([0, 4, 2, 1]))
nn.losses.l1_loss nn.losses.mse_loss nn.losses.smooth_l1_loss nn.losses.huber_loss nn.losses.log_cosh_loss nn.losses.hinge_loss nn.losses.kl_div_loss: nn.losses.{n}(x, y), nn.losses.{n}(x, y, reduction='sum')
nn.losses.cosine_similarity_loss: nn.losses.cosine_similarity_loss(x, y)
nn.losses.gaussian_nll_loss: nn.losses.gaussian_nll_loss(x, y, p, full=True)
nn.losses.margin_ranking_loss: nn.losses.margin_ranking_loss(x, y, m.sign(p - 0.5), margin=0.2)
nn.losses.triplet_loss: nn.losses.triplet_loss(x, y, p)
nn.losses.Reduction: sorted(nn.losses.Reduction.__args__)
"""

OPTIMIZERS = """
optimizers.SGD: trained(optim.SGD(0.1)), trained(optim.SGD(0.1, momentum=0.9, nesterov=True))
optimizers.Adam optimizers.AdamW optimizers.Adamax optimizers.Adagrad optimizers.RMSprop optimizers.Lion optimizers.AdaDelta: trained(optim.{n}(0.05))
optimizers.Adafactor: trained(optim.Adafactor())
optimizers.Muon: trained(optim.Muon(0.02)) ~ 1e-4
optimizers.MultiOptimizer optimizers.MultiOptimizer.init optimizers.MultiOptimizer.apply_gradients: trained(two_optimizers())
optimizers.MultiOptimizer.state optimizers.MultiOptimizer.learning_rate: in_two_optimizers('{n}')
optimizers.Optimizer: isinstance(optim.SGD(0.1), optim.Optimizer), own_optimizer().apply_gradients({'a': y}, {'a': x})
optimizers.Optimizer.update: updated_model()
optimizers.Optimizer.init optimizers.Optimizer.state: after_init(optim.Adam(0.1)).state
optimizers.Optimizer.init_single optimizers.Optimizer.apply_single optimizers.Optimizer.apply_gradients: own_optimizer().apply_gradients({'a': y}, {'a': x})
optimizers.Optimizer.step optimizers.Optimizer.learning_rate: after_init(optim.SGD(0.25)).{n}
optimizers.SGD.init_single optimizers.Adam.init_single optimizers.Adamax.init_single optimizers.Adagrad.init_single optimizers.Lion.init_single: single(optim.{o}(0.1), False) if '{o}' != 'SGD' else single(optim.SGD(0.1, momentum=0.5), False)
optimizers.AdaDelta.init_single optimizers.RMSprop.init_single optimizers.Muon.init_single optimizers.Adafactor.init_single: single(optim.{o}(learning_rate=0.1), False)
optimizers.SGD.apply_single optimizers.Adam.apply_single optimizers.AdamW.apply_single optimizers.Adamax.apply_single optimizers.Adagrad.apply_single: single(optim.{o}(0.1))
optimizers.Lion.apply_single optimizers.AdaDelta.apply_single optimizers.RMSprop.apply_single optimizers.Muon.apply_single: single(optim.{o}(0.1)) ~ 1e-4
optimizers.Adafactor.apply_single: single(optim.Adafactor())
optimizers.clip_grad_norm: optim.clip_grad_norm({'a': x, 'b': [y]}, 0.5)
optimizers.cosine_decay: [optim.cosine_decay(0.1, 5, 0.01)(m.array(k)) for k in (0, 3, 9)]
optimizers.exponential_decay: [optim.exponential_decay(0.1, 0.9)(m.array(k)) for k in (0, 3, 9)]
optimizers.step_decay: [optim.step_decay(0.1, 0.5, 3)(m.array(k)) for k in (0, 3, 9)]
optimizers.linear_schedule: [optim.linear_schedule(0.0, 0.1, 4)(m.array(k)) for k in (0, 3, 9)]
optimizers.join_schedules: [optim.join_schedules([optim.linear_schedule(0.0, 0.1, 4), optim.step_decay(0.1, 0.5, 3)], [4])(m.array(k)) for k in (0, 3, 9)]
optimizers.Module: issubclass(nn.Linear, optim.Module)
"""

TREES = """
utils.tree_flatten nn.utils.tree_flatten optimizers.tree_flatten: {p}.tree_flatten({'a': [1, (2, 3)], 'b': {'c': 4}}), {p}.tree_flatten([x, {'y': y}], destination={})
utils.tree_unflatten nn.utils.tree_unflatten optimizers.tree_unflatten: {p}.tree_unflatten([('a.0', 1), ('a.1', 2), ('b.c', x)])
utils.tree_map nn.utils.tree_map optimizers.tree_map: {p}.tree_map(lambda a, b: a + b, {'a': [1, (2,)], 'b': x}, {'a': [1, (2,)], 'b': y})
utils.tree_map_with_path: utils.tree_map_with_path(lambda path, a: path + str(a), {'a': [1, 2], 'b': {'c': 3}})
utils.tree_merge optimizers.tree_merge: {p}.tree_merge({'a': x, 'c': [1]}, {'b': y, 'c': [None, 2]}), {p}.tree_merge({'a': 1}, {'a': 2}, lambda a, b: a + b)
utils.tree_reduce nn.utils.tree_reduce optimizers.tree_reduce: {p}.tree_reduce(lambda a, b: a + b, {'a': [1, 2], 'b': 3}, 10)
"""
