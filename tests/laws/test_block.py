"""`Block`: every law of the catalogue is one, and every part does what its paper says."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.laws.specimens import LAWS, NAMES, tokens
from tokenflock.dynamics import Block
from tokenflock.errors import UserError
from tokenflock.solvers import EulerMaruyama, Layer

pytestmark = pytest.mark.usefixtures("double")
T = 0.3
NO_BLOCK = {  # laws that are made of other things, and the words that say so
    "rescaled-attention": "a frame that moves",
    "rescaled-attention-default": "a frame that moves",
    "kuramoto": "frequencies of their own",
}


@pytest.mark.parametrize(("name", "law"), list(zip(NAMES, LAWS)), ids=NAMES)
def test_every_law_of_the_catalogue_is_its_block(name, law):
    """The same force, the same flow and the same layer, noise and all."""
    x, w = tokens(law)
    if name in NO_BLOCK:
        with pytest.raises(UserError, match=NO_BLOCK[name]):
            law.as_block()
        return
    block, key = law.as_block(), jax.random.key(1)
    assert type(block) is Block and type(block.space) is type(law.space)
    assert block.noisy == law.noisy and block.smooth == law.smooth
    assert block.exchangeable == law.exchangeable and block.isotropic == law.isotropic
    assert block.dimension in (law.dimension, None)
    rounding = 1e-10 if type(law).__name__ == "Fast" else 1e-13
    for ours, theirs in (
        (block.force(T, x, w), law.force(T, x, w)),
        (block.velocity(T, x, w), law.velocity(T, x, w)),
        *(
            (s.step(block, T, x, w, key), s.step(law, T, x, w, key))
            for s in (Layer(), EulerMaruyama())
        ),
    ):
        assert np.abs(ours - theirs).max() < rounding * (1 + np.abs(theirs).max())
