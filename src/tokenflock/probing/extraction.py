"""The matrices of a trained model, layer by layer: one adapter for each architecture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tokenflock.errors import UserError
from tokenflock.probing.adapters import blocks
from tokenflock.probing.blocks import ACTIVATIONS, Block, Norm
from tokenflock.probing.loading import Loaded


def extract(loaded: Loaded) -> list[Block]:
    """The layers of a model as matrices, in order; for a model that shares its layer, that one."""
    if hasattr(loaded, "blocks"):  # a model that was trained here
        return loaded.blocks()
    config = loaded.model.config
    adapter = _ADAPTERS.get(config.model_type)
    if adapter is None:
        raise UserError(
            f"the matrices of {config.model_type} are not known to tokenflock (positions enter its"
            f" attention, or it has another feed-forward part); known are {', '.join(_ADAPTERS)}"
        )
    found = [adapter(layer, config) for layer in blocks(loaded.model)]
    unknown = found[0].activation not in ACTIVATIONS
    if unknown:
        raise UserError(
            f"the activation {found[0].activation!r} is not known to tokenflock; known are"
            f" {', '.join(ACTIVATIONS)}"
        )
    return found


def _albert(layer: Any, config: Any) -> Block:
    part = layer.attention
    return _block(
        (part.query, part.key, part.value),
        part.dense,
        layer.ffn,
        layer.ffn_output,
        part.LayerNorm,
        layer.full_layer_layer_norm,
        config.num_attention_heads,
        config.hidden_act,
    )


def _bert(layer: Any, config: Any) -> Block:
    own, out = layer.attention.self, layer.attention.output
    return _block(
        (own.query, own.key, own.value),
        out.dense,
        layer.intermediate.dense,
        layer.output.dense,
        out.LayerNorm,
        layer.output.LayerNorm,
        config.num_attention_heads,
        config.hidden_act,
        causal=config.is_decoder,
    )


def _distilbert(layer: Any, config: Any) -> Block:
    part = layer.attention
    return _block(
        (part.q_lin, part.k_lin, part.v_lin),
        part.out_lin,
        layer.ffn.lin1,
        layer.ffn.lin2,
        layer.sa_layer_norm,
        layer.output_layer_norm,
        config.num_attention_heads,
        config.activation,
    )


def _gpt2(layer: Any, config: Any) -> Block:
    def turned(part: Any, place: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """GPT-2 keeps its matrices transposed, and Q, K, V in one."""
        return _array(part.weight)[:, place].T, _array(part.bias)[place]

    d = config.hidden_size
    three = tuple(turned(layer.attn.c_attn, slice(k * d, (k + 1) * d)) for k in range(3))
    return _block(
        three,
        turned(layer.attn.c_proj),
        turned(layer.mlp.c_fc),
        turned(layer.mlp.c_proj),
        layer.ln_1,
        layer.ln_2,
        config.num_attention_heads,
        config.activation_function,
        scale=float(layer.attn.scaling),
        pre=True,
        causal=True,
    )


_ADAPTERS: dict[str, Callable[[Any, Any], Block]] = {
    "albert": _albert,
    "bert": _bert,
    "roberta": _bert,
    "xlm-roberta": _bert,
    "electra": _bert,
    "distilbert": _distilbert,
    "gpt2": _gpt2,
}


def _block(
    three,
    out,
    inner,
    outer,
    first,
    second,
    heads: int,
    activation: Any,
    scale=None,
    pre=False,
    causal=False,
) -> Block:
    (Q, q), (K, k), (V, v) = (_cut(*_affine(one), heads) for one in three)
    (O, o), (A, a), (W, b) = (_affine(one) for one in (out, inner, outer))
    O = np.moveaxis(O.reshape(O.shape[0], heads, -1), 1, 0)  # (heads, d, m)
    scale = Q.shape[1] ** -0.5 if scale is None else scale
    return Block(
        Q,
        K,
        V,
        O,
        q,
        k,
        v,
        o,
        A,
        a,
        W,
        b,
        _norm(first),
        _norm(second),
        scale,
        str(activation),
        pre,
        causal,
    )


def _affine(part: Any) -> tuple[np.ndarray, np.ndarray]:
    return part if isinstance(part, tuple) else (_array(part.weight), _array(part.bias))


def _cut(weight: np.ndarray, bias: np.ndarray, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix (heads m, d) as (heads, m, d)."""
    return weight.reshape(heads, -1, weight.shape[1]), bias.reshape(heads, -1)


def _norm(part: Any) -> Norm:
    return Norm(_array(part.weight), _array(part.bias), float(part.eps))


def _array(tensor: Any) -> np.ndarray:
    return tensor.detach().double().cpu().numpy()
