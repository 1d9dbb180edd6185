"""Fused layers: one pass over memory instead of several."""

from tiki import _core as _core

rms_norm = _core._fast["rms_norm"]
layer_norm = _core._fast["layer_norm"]
rope = _core._fast["rope"]
scaled_dot_product_attention = _core._fast["scaled_dot_product_attention"]
cross_entropy = _core._fast["cross_entropy"]
