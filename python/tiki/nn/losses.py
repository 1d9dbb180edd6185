"""Losses. All are functions of the C library; `reduction` is 'none', 'mean' or 'sum'."""

from typing import Literal, get_args

from tiki import _core

Reduction = Literal["none", "mean", "sum"]

cross_entropy = _core._nn.cross_entropy
binary_cross_entropy = _core._nn.binary_cross_entropy
l1_loss = _core._nn.l1_loss
mse_loss = _core._nn.mse_loss
nll_loss = _core._nn.nll_loss
gaussian_nll_loss = _core._nn.gaussian_nll_loss
kl_div_loss = _core._nn.kl_div_loss
smooth_l1_loss = _core._nn.smooth_l1_loss
triplet_loss = _core._nn.triplet_loss
hinge_loss = _core._nn.hinge_loss
huber_loss = _core._nn.huber_loss
log_cosh_loss = _core._nn.log_cosh_loss
cosine_similarity_loss = _core._nn.cosine_similarity_loss
margin_ranking_loss = _core._nn.margin_ranking_loss
