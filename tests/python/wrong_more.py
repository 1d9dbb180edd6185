"""Valid calls of functions that draw_ops.py does not draw, for make_wrong_calls.py: those that give no arrays, the
functions and losses of nn."""

import numpy as np

from draw_calls import Operand
from draw_ops import DtypeName

MORE = {}


def calls(names):
    def register(function):
        MORE.update(dict.fromkeys(names.split(), function))
        return function

    return register


@calls("broadcast_shapes")
def shapes(d, name):
    shape = d.shape()
    return [d.narrower(shape), shape], {}


@calls("einsum_path")
def paths(d, name):
    return [d.pick("ij,jk->ik", "ij,jk"), d.array((2, 3), "F"), d.array((3, 2), "F")], {}


@calls("result_type")
def results(d, name):
    return [d.array((2,)), DtypeName(d.dtype("buif"))], {}


@calls("can_cast")
def casts(d, name):
    return [DtypeName(d.dtype("buif")), DtypeName(d.dtype("buif"))], {}


@calls("issubdtype isdtype")
def kinds(d, name):
    return [DtypeName(d.dtype("buif")), DtypeName(d.dtype("buif"))], {}


@calls("random.seed")
def seeds(d, name):
    return [d.whole(0, 9)], {}


@calls("nn.celu nn.elu nn.gelu nn.gelu_approx nn.gelu_fast_approx nn.hard_shrink nn.hard_tanh nn.hardswish nn.leaky_relu "
       "nn.log_sigmoid nn.mish nn.relu nn.relu2 nn.relu6 nn.selu nn.sigmoid nn.silu nn.softplus nn.softshrink nn.softsign "
       "nn.step nn.tanh")  # fmt: skip
def activations(d, name):
    return [d.array(kinds="f")], {}


@calls("nn.glu nn.softmax nn.log_softmax nn.softmin")
def along_an_axis(d, name):
    a = d.array((*d.shape(0, 2, 1), 4), "f")
    return [a], {"axis": -1}


@calls("nn.prelu")
def learnt_slope(d, name):
    return [d.array(d.shape(1, 2), "F"), Operand("float32", np.array([0.25], np.float32))], {}


REDUCTIONS = ("none", "mean", "sum")


@calls("nn.losses.l1_loss nn.losses.mse_loss nn.losses.smooth_l1_loss nn.losses.huber_loss nn.losses.log_cosh_loss "
       "nn.losses.hinge_loss nn.losses.kl_div_loss nn.losses.binary_cross_entropy")  # fmt: skip
def of_pairs(d, name):
    shape = d.shape(1, 2, 1)
    return [d.array(shape, "F", 0, 1), d.array(shape, "F", 0, 1)], {"reduction": d.pick(*REDUCTIONS)}


@calls("nn.losses.cross_entropy nn.losses.nll_loss")
def of_classes(d, name):
    shape = d.shape(0, 2, 1)
    keywords = {"label_smoothing": 0.25} if name.endswith("cross_entropy") and d.flag() else {}
    return [d.array((*shape, 3), "F"), d.array(shape, "int32", 0, 2)], {"axis": -1, "reduction": d.pick(*REDUCTIONS), **keywords}


@calls("nn.losses.gaussian_nll_loss")
def of_spread(d, name):
    shape = d.shape(1, 2, 1)
    return [d.array(shape, "F"), d.array(shape, "F"), d.array(shape, "F", 1, 2)], {"full": d.flag(), "reduction": d.pick(*REDUCTIONS)}


@calls("nn.losses.cosine_similarity_loss")
def of_directions(d, name):
    return [d.array((2, 3), "F", 1, 2), d.array((2, 3), "F", 1, 2)], {"axis": 1, "reduction": d.pick(*REDUCTIONS)}


@calls("nn.losses.margin_ranking_loss")
def of_order(d, name):
    a, b = d.array((3,), "F"), d.array((3,), "F")
    return [a, b, Operand("float32", np.array([1, -1, 1], np.float32))], {"margin": 0.5, "reduction": d.pick(*REDUCTIONS)}


@calls("nn.losses.triplet_loss")
def of_triples(d, name):
    return [d.array((2, 3), "F") for _ in range(3)], {"axis": -1, "margin": 1.0, "reduction": d.pick(*REDUCTIONS)}
