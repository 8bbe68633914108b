"""Every pair of options of `Block`, as flow and as layer map, or refused in one line that says
why.
"""

from __future__ import annotations

from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group

import tokenflock as flock
from tests.laws.test_block import HEADS, RANDOM, D, G, N, T, W, X
from tokenflock import recipe
from tokenflock.catalogue import PARTS, entries, family
from tokenflock.dynamics import Block, Switching
from tokenflock.errors import UserError
from tokenflock.parts import (
    Alibi,
    Gated,
    GivenHeads,
    GivenMask,
    LayerNorm,
    Mix,
    NoWeighing,
    Peri,
    Post,
    Pre,
    RandomFeedForward,
    RandomHeads,
    RelativeBias,
    TwoLayers,
    ValueNoise,
    WindowMask,
)
from tokenflock.solvers import EulerMaruyama, Layer
from tokenflock.starts import Uniform

pytestmark = [pytest.mark.usefixtures("double"), pytest.mark.slow]

GAIN = LayerNorm(gain=RANDOM.uniform(0.5, 1.5, size=D), shift=RANDOM.normal(size=D))
RMS = LayerNorm(gain=RANDOM.uniform(0.5, 1.5, size=D), centred=False)
MLP = TwoLayers.example(N, D)
OPTIONS = {
    "heads": [
        HEADS,
        GivenHeads(),
        GivenHeads(V=-0.5, relative=True),
        GivenHeads(Q=Switching(G, 0.2), V=Switching(G[::-1], 0.2)),
        RandomHeads(2, period=0.1),
        "none",
    ],
    "mask": ["none", "causal", WindowMask(2), WindowMask(2, past=False), GivenMask.example(N, D)],
    "positions": ["none", "rotary", Alibi(), RelativeBias([1.0, 0.0, 2.0])],
    "attention": [
        "softmax",
        "none",
        NoWeighing("peak", shares=True),
        "sinkhorn",
        "hardmax",
        "sigmoid",
        "linear",
    ],
    "feed_forward": [
        "none",
        "gelu",
        MLP,
        Gated.example(N, D),
        RandomFeedForward("silu", period=0.1),
        TwoLayers(Switching(np.stack([MLP.W, 2 * MLP.W]), 0.2), MLP.A, activation="exact-gelu"),
    ],
    "norm": [
        "post",
        "pre",
        "mix",
        "peri",
        "ngpt",
        "square-root",
        "none",
        Post(GAIN, GAIN),
        Pre(GAIN, RMS),
        Peri(RMS, RMS, GAIN, GAIN),
    ],
    "noise": ["none", "independent", "common", ValueNoise(), ValueNoise(alone=True)],
    "beta": [1.5, Switching([0.5, 2.0], 0.2)],
}
DEFAULTS = dict.fromkeys(OPTIONS, 0)


def built(row):
    """The block of a row of numbers of options, or the line that refuses it."""
    try:
        return Block(**{name: OPTIONS[name][k] for name, k in row.items()})
    except UserError as refusal:
        return str(refusal)


def pairs_of(row):
    return set(combinations(sorted(row.items()), 2))


def covering():
    """Rows such that every pair of options is in one, and the pairs that are refused by
    themselves.
    """
    wanted = {
        ((a, i), (b, j))
        for a, b in combinations(sorted(OPTIONS), 2)
        for i, j in product(range(len(OPTIONS[a])), range(len(OPTIONS[b])))
    }
    random, rows, refused = np.random.default_rng(0), [], {}
    while wanted:
        pair = min(wanted)
        alone = DEFAULTS | dict(pair)
        if isinstance(built(alone), str):
            refused[pair] = built(alone)
            wanted.discard(pair)
            continue
        row = _filled(alone, dict(pair), wanted, random)
        rows.append(row)
        wanted -= pairs_of(row)
    return rows, refused


def _filled(row, fixed, wanted, random):
    """A row with the options, one after the other, that bring the most pairs and are not
    refused.
    """
    for name in random.permutation([name for name in OPTIONS if name not in fixed]):
        choices = [row | {name: k} for k in range(len(OPTIONS[name]))]
        fine = [choice for choice in choices if not isinstance(built(choice), str)]
        row = max(fine or [row], key=lambda choice: len(pairs_of(choice) & wanted))
    return row


ROWS, REFUSED = covering()


def test_pairs_are_refused_for_a_reason_and_not_more_than_these():
    told = {tuple(sorted(name for name, _ in pair)) for pair in REFUSED}
    assert told == {("attention", "mask"), ("noise", "norm"), ("heads", "noise")}
    assert all("\n" not in line and "must be" in line for line in REFUSED.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row.values())))
def test_every_pair_of_options_runs_as_flow_and_as_layer(row):
    """Finite, different from tokens at rest, the same when built again from its recipe, a batch as
    one by one; and the symmetries that it declares hold.
    """
    block, key = built(row), jax.random.key(2)
    x, w = block.space.project(jnp.asarray(X + 0.1)), jnp.asarray(W)
    moving = block.heads.number > 0 and not block.noise.replaces_drift
    moving = moving or block.feed_forward.there
    layer = Layer(h=0.1).step(block, T, x, w, key)
    assert bool(jnp.isfinite(layer).all())
    assert (np.abs(layer - x).max() > 1e-6) == (moving or block.noisy or not block.norm.flows)
    again = recipe.rebuild(recipe.describe(block))
    assert np.array_equal(Layer(h=0.1).step(again, T, x, w, key), layer)
    if not block.norm.flows:
        with pytest.raises(UserError, match="is no flow"):
            block.velocity(T, x, w)
        return
    v = block.velocity(T, x, w)
    assert bool(jnp.isfinite(v).all()) and (np.abs(v).max() > 1e-6) == moving
    assert np.abs(block.space.tangent(x, v) - v).max() < 1e-13
    step = EulerMaruyama(h=0.1).step(block, T, x, w, key)
    assert bool(jnp.isfinite(step).all())
    order = np.array([3, 0, 4, 1, 2])
    if block.exchangeable:
        assert np.abs(block.velocity(T, x[order], w[order]) - v[order]).max() < 1e-11
    if block.isotropic:
        U = ortho_group.rvs(D, random_state=1)
        assert np.abs(block.velocity(T, x @ U.T, w) - v @ U.T).max() < 1e-11
    if block.particles is None:
        more, none = jnp.concatenate([x, x[:1]]), jnp.append(w, 0.0)
        assert np.abs(block.velocity(T, more, none)[:N] - v).max() < 1e-11


def test_symmetries_that_are_not_declared_are_not_there():
    for row in ROWS:
        block = built(row)
        if not block.norm.flows or block.heads.number == 0 or block.noise.replaces_drift:
            continue
        x, w = block.space.project(jnp.asarray(X + 0.1)), jnp.asarray(W)
        v, order = block.velocity(T, x, w), np.array([3, 0, 4, 1, 2])
        if not block.exchangeable and block.attention.smooth:
            apart = np.abs(block.velocity(T, x[order], w[order]) - v[order]).max()
            assert apart > 1e-9, block
        if not block.isotropic:
            U = ortho_group.rvs(D, random_state=1)
            assert np.abs(block.velocity(T, x @ U.T, w) - v @ U.T).max() > 1e-9, block


def test_a_batch_of_blocks_moves_as_each_alone():
    block = Block(HEADS, "causal", "rotary", feed_forward=MLP, norm="pre")
    xs = jnp.asarray(RANDOM.normal(size=(3, N, D)))
    batched = jax.vmap(lambda x: block.velocity(T, x, jnp.asarray(W)))(xs)
    assert (
        np.abs(batched - jnp.stack([block.velocity(T, x, jnp.asarray(W)) for x in xs])).max()
        < 1e-13
    )


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"attention": "sinkhorn", "mask": "causal"}, "the only doubly stochastic matrix"),
        ({"noise": "common", "norm": Mix()}, "holds the radius"),
        ({"heads": "none", "noise": ValueNoise(alone=True)}, "there are no heads"),
        ({"heads": HEADS, "feed_forward": TwoLayers.example(N, 7)}, r"parts on one R\^d"),
        ({"heads": HEADS, "positions": Alibi(slope=[1.0, 2.0, 3.0])}, "for 2 heads"),
        ({"beta": Switching(np.ones((2, 3, 3)))}, "numbers in time"),
        (
            {"mask": "casual"},
            r"Block.mask must be one of causal, given, none, window, got 'casual'",
        ),
        ({"mask": "given"}, "a part with its numbers"),
        ({"heads": -1}, "Block.heads must be one of"),
        ({"feed_forward": "cosine"}, "must be one of"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(parts, words):
    with pytest.raises(UserError, match=words) as told:
        Block(**parts)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("matrices", [{"V": G[0, :, :3]}, {"O": G[0, :, :3]}, {"Q": G[0, :, :2]}])
def test_matrices_of_heads_that_do_not_fit_are_refused(matrices):
    with pytest.raises(UserError, match="heads: "):
        GivenHeads(**matrices)


def test_every_part_belongs_to_one_family_and_every_family_has_a_default():
    named = [entry.name for of in PARTS for entry in family(of).values()]
    assert sorted(named) == sorted(entry.name for entry in entries("parts"))


@pytest.mark.slow
def test_an_ensemble_of_blocks_sweeps_their_numbers():
    law = Block(heads=2, mask="causal", norm="pre", feed_forward="tanh")
    told = flock.ensemble(
        law,
        Uniform(n=4, d=4),
        over={"beta": [0.5, 4.0]},
        repeats=2,
        t=1,
        frames=2,
        solver=Layer(h=0.5),
        observe=[flock.observables.MeanCosine()],
    )
    assert told.sizes["beta"] == 2 and np.isfinite(told.mean_cosine).all()
