"""No plot is empty without a word: what is not finite raises, or the plot says how much is gone."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import plots
from tokenflock.cli.plot import Kind
from tokenflock.dynamics import SelfAttention
from tokenflock.meanfield import Ripple, evolve
from tokenflock.starts import Uniform


def ensemble(name: str) -> xr.Dataset:
    share = np.linspace(0.9, 0.1, 12).reshape(3, 4)
    return xr.Dataset(
        {name: (("beta", "time"), share)}, {"beta": [1.0, 2.0, 4.0], "time": np.arange(4.0)}
    )


def training() -> xr.Dataset:
    dims, values = ("step", "layer", "prompt"), np.linspace(0.1, 0.9, 24).reshape(4, 3, 2)
    names = ("mean_cosine", "cluster_count", "effective_rank")
    coords = {"step": [0, 1, 10, 100], "layer": [0, 1, 2]}
    return xr.Dataset({name: (dims, values) for name in names}, coords)


def steering() -> xr.Dataset:
    x = np.random.default_rng(0).normal(size=(2, 4, 3, 2))
    return xr.Dataset(
        {
            "x": (("cloud", "time", "particle", "coord"), x),
            "target": (("cloud", "particle", "coord"), x[:, -1]),
            "loss": ("iteration", [1.0, 0.5, 0.1]),
            "W2": ("cloud", [0.1, 0.2]),
        }
    )


def branch() -> xr.Dataset:
    return xr.Dataset(
        {
            "order_parameter": ("point", [0.0, 0.2, 0.4]),
            "stable": ("point", [1, 0, 1]),
            "fold": ("folds", [0.5]),
            "fold_order_parameter": ("folds", [0.2]),
            "kappa": ("point", [0.4, 0.5, 0.6]),
            "transition": ("transitions", [0.55]),
            "transition_order_parameter": ("transitions", [0.3]),
        }
    )


def spectrum() -> xr.Dataset:
    rates = {"rate": ("mode", [0.0, -1.0, -2.0]), "frequency": ("mode", [0.0, 0.0, 0.0])}
    return xr.Dataset(rates)


def exponents() -> xr.Dataset:
    values = np.linspace(0, 1, 6).reshape(3, 2)
    return xr.Dataset({"estimate": (("time", "mode"), values)}, {"time": [1.0, 2.0, 3.0]})


def tokens(d: int = 3) -> xr.Dataset:
    return flock.simulate(SelfAttention(4.0), Uniform(n=4, d=d), t=0.2, frames=3)


def attended() -> xr.Dataset:
    return tokens().assign(attention=(("time", "particle", "other"), np.full((3, 4, 4), 0.25)))


def measure() -> xr.Dataset:
    return evolve(SelfAttention(1.0), Ripple(2, 0.1), t=0.1, frames=3, points=16)


def surface() -> xr.Dataset:
    return flock.meanfield.optimal_density(np.eye(3), points=8)


RESULTS = {  # kind: a result, and the variable that is drawn
    **dict.fromkeys(("overview", "sphere", "plane", "trajectories"), (tokens, "x")),
    **dict.fromkeys(("histogram", "histogram-over-time", "timeline"), (tokens, "x")),
    "circle": (lambda: tokens(2), "x"),
    "attention": (attended, "attention"),
    **dict.fromkeys(("phase-diagram", "curves"), (lambda: ensemble("share"), "share")),
    "survival": (lambda: ensemble("survival"), "survival"),
    **dict.fromkeys(("density-over-time", "radial"), (measure, "density")),
    "density-surface": (surface, "density"),
    "training": (training, "mean_cosine"),
    "steering": (steering, "x"),
    "bifurcation": (branch, "order_parameter"),
    "spectrum": (spectrum, "rate"),
    "exponents": (exponents, "estimate"),
}


def gone(result: xr.Dataset, name: str, share: float) -> xr.Dataset:
    """The result without the last values of a variable, such a share of them."""
    values = result[name].values.astype(float)
    values.reshape(-1)[values.size - int(np.ceil(share * values.size)) :] = np.nan
    return result.assign({name: (result[name].dims, values)})


def flat(kinds) -> list[str]:
    return [each for kind in kinds for each in (flat(get_args(kind)) if get_args(kind) else [kind])]


@pytest.mark.parametrize("kind", [kind for kind in flat(get_args(Kind)) if kind != "auto"])
def test_a_plot_without_a_number_is_refused_and_one_with_gaps_says_so(kind):
    make, name = RESULTS[kind]
    draw, result = getattr(plots, kind.replace("-", "_")), make()
    draw(result)
    with pytest.raises(flock.UserError, match=f"{name} must be finite"):
        draw(gone(result, name, 1.0))
    part = gone(result, name, 0.3)
    if name in ("x", "density") and kind != "steering":  # of which nothing may be missing
        with pytest.raises(flock.UserError, match=f"{name} must be finite"):
            draw(part)
        return
    drawn = draw(part)
    axes = drawn.axes if isinstance(drawn.axes, list) else [drawn]
    notes = [text.get_text() for ax in axes for text in ax.texts if text.get_gid() == "missing"]
    assert notes and all(note.endswith("% missing") for note in notes)
    whole = draw(result)
    axes = whole.axes if isinstance(whole.axes, list) else [whole]
    assert not [text for ax in axes for text in ax.texts if text.get_gid() == "missing"]


def test_every_kind_of_plot_is_tried():
    assert set(flat(get_args(Kind))) - {"auto"} == set(RESULTS)


def test_attention_by_head_is_drawn_for_the_head_that_is_chosen():
    values = np.random.default_rng(0).uniform(size=(3, 2, 4, 4))
    result = tokens().assign(attention=(("time", "head", "particle", "other"), values))
    for head in (0, 1):
        drawn = plots.attention(result, head=head, reorder=False).images[0].get_array()
        np.testing.assert_allclose(drawn, values[-1, head])
    with pytest.raises(flock.UserError, match=r"head must be a head from 0 to 1, got None"):
        plots.attention(result)
    with pytest.raises(flock.UserError, match="head must be 1 or less"):
        plots.attention(result, head=2)
    with pytest.raises(flock.UserError, match="head must be left out"):
        plots.attention(tokens(), head=0)
