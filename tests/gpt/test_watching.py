"""A model trained here, probed like any other; and as a flow."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import gpt, plots, probing
from tokenflock.cli import main
from tokenflock.errors import UserError
from tokenflock.gpt.checkpoint import Checkpoint, Config, fresh, load, save
from tokenflock.gpt.flowing import extend
from tokenflock.gpt.text import Characters, read
from tokenflock.observables import MeanCosine
from tokenflock.probing import Recording, Variant

pytestmark = pytest.mark.slow

SCHEDULE = gpt.Schedule(steps=6, batch=4, every=3, chunk=3, warmup=2)
TEXT = read()[:20_000]


def kept(folder, **shape):
    """A checkpoint of fresh weights, somewhat larger than usual."""
    alphabet = Characters.of(TEXT)
    config = Config(gpt.Shape(vocab=alphabet.size, **shape), SCHEDULE, alphabet, "")
    model = jax.tree.map(lambda leaf: 4 * leaf if leaf.ndim == 2 else leaf, fresh(config.shape))
    save(folder, Checkpoint(config, model, 0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("probe") / "shared"
    gpt.train(
        out,
        TEXT,
        gpt.Shape(context=40, width=16, heads=2, depth=2, shared=True),
        SCHEDULE,
        watch=[0, 6],
    )
    return out


def test_equal_checkpoints_are_equal_files(tmp_path):
    """The order of the notes in a file is ours; the library below would change it every time."""
    for name in "abcd":
        kept(tmp_path / name, context=4, width=4, heads=1, depth=1)
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in "abcd"]
    assert len(set(files)) == 1
    assert load(tmp_path / "a").step == 0


@pytest.mark.slow
def test_probe_takes_a_checkpoint_as_it_takes_any_model(folder):
    found = flock.probe(
        str(folder),
        ["The tokens move.", "They gather, and wait."],
        record=Recording(attention=True, sublayers=True, entropy=True),
    )
    assert found["x"].dims == ("prompt", "layer", "token", "coord")
    assert found["x"].shape == (2, 3, 22, 16)
    assert float(found["w"].sel(prompt=0)[16:].sum()) == 0
    assert "".join(found["word"].values[1]) == "They gather, and wait."
    rows = found["attention"].isel(prompt=1, layer=1).values
    np.testing.assert_allclose(rows.sum(-1), 1, atol=1e-5)
    assert np.triu(rows[0], 1).max() == 0
    assert (found["attention_entropy"].isel(layer=1, prompt=1) >= -1e-6).all()


@pytest.mark.slow
def test_probed_tokens_are_those_of_the_model_and_batches_change_nothing(folder):
    model = load(folder).model
    found = gpt.probe(folder)
    x = np.asarray(model.states(found["id"].values)).transpose(1, 0, 2, 3)
    np.testing.assert_allclose(found["x"], x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gpt.probe(folder, batch=1)["x"], found["x"], atol=1e-5)
    np.testing.assert_allclose(
        gpt.probe(folder, variant=Variant(dtype="float64"))["x"], found["x"], atol=1e-4
    )


@pytest.mark.slow
def test_the_watched_numbers_are_those_of_a_probe(folder):
    watched = flock.load(folder / "watch.nc")
    assert watched.step.values.tolist() == [0, 6]
    end = flock.measure(gpt.probe(folder), MeanCosine())
    np.testing.assert_allclose(watched.mean_cosine.sel(step=6), end.mean_cosine, atol=1e-4)
    start = flock.measure(gpt.probe(folder, variant=Variant(untrained=True)), MeanCosine())
    np.testing.assert_allclose(watched.mean_cosine.sel(step=0), start.mean_cosine, atol=1e-4)


def test_a_training_is_drawn(folder, tmp_path):
    figure = plots.training(flock.load(folder / "watch.nc"))
    assert [ax.get_ylabel() for ax in figure.axes] == [
        "mean cosine of tokens",
        "clusters (cosine ≥ 0.9)",
        "effective rank",
    ]
    watched = flock.load(folder / "watch.nc").mean_cosine.isel(layer=-1).mean("prompt")
    np.testing.assert_allclose(figure.axes[0].lines[-1].get_ydata(), watched, rtol=1e-6)
    with pytest.raises(SystemExit, match="0"):
        main(["plot", str(folder / "watch.nc"), "--out", str(tmp_path / "training.png")])
    assert (tmp_path / "training.png").stat().st_size > 10_000
    with pytest.raises(UserError, match="a training"):
        plots.training(gpt.probe(folder))


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_its_matrices_are_its_layers(norm, tmp_path):
    """A layer run again from the extracted matrices is the model's own, so the idealised model can
    be put beside it.
    """
    kept(tmp_path / "m", context=24, width=16, heads=2, depth=2, norm=norm)
    found = gpt.probe(tmp_path / "m", "The tokens move.")
    assert (
        float(probing.reconstruction(probing.extract(probing.load(tmp_path / "m")), found).max())
        < 1e-4
    )
    beside = probing.follow(str(tmp_path / "m"), "The tokens move.")
    assert float(beside.alignment.sel(system="everything").min()) > 1 - 1e-5
    assert probing.particle_system(str(tmp_path / "m")).sizes["head"] == 2


def test_matrices_that_do_not_tell_the_layer_are_refused(tmp_path):
    kept(tmp_path / "m", context=24, width=16, heads=2, depth=1, norm="peri")
    with pytest.raises(UserError, match="pre- or post-norm"):
        probing.follow(str(tmp_path / "m"), "The tokens move.")


@pytest.mark.slow
def test_only_a_shared_model_runs_deeper(folder, tmp_path):
    assert gpt.probe(folder, depth=5).sizes["layer"] == 6
    kept(tmp_path / "own", context=16, width=8, heads=2, depth=2)
    with pytest.raises(UserError, match="weights of their own"):
        gpt.probe(tmp_path / "own", "The tokens move.", depth=5)
    with pytest.raises(UserError, match="no flow"):
        gpt.refine(load(tmp_path / "own").model, np.zeros((1, 4), np.int32))


@pytest.mark.slow
def test_finer_steps_converge_to_the_flow_at_first_order():
    model = gpt.build(
        gpt.Shape(vocab=9, context=8, width=16, heads=2, depth=3, shared=True), jax.random.key(0)
    )
    model = jax.tree.map(lambda leaf: 4 * leaf if leaf.ndim == 2 else leaf, model)
    found = gpt.refine(
        model, np.random.default_rng(0).integers(0, 9, (2, 8)), factors=(1, 2, 4, 8, 256)
    )
    distance = found.distance.values[:-1]
    np.testing.assert_allclose(distance[1:-1] / distance[2:], 2, rtol=0.15)
    assert found.divergence.values[0] == pytest.approx(0, abs=1e-6)


def test_a_post_norm_layer_is_no_flow():
    shape = gpt.Shape(vocab=9, context=8, width=16, heads=2, depth=2, shared=True, norm="post")
    with pytest.raises(UserError, match="no small step of a flow"):
        gpt.refine(gpt.build(shape, jax.random.key(0)), np.zeros((1, 8), np.int32))


@pytest.mark.slow
def test_a_deeper_run_is_that_of_the_probe(folder):
    ids = gpt.probe(folder)["id"].values
    found = extend(load(folder).model, ids)
    assert found.depth.values.tolist() == [2, 4, 8]
    logits = load(folder).model(ids, depth=8)
    expected = -np.take_along_axis(
        np.asarray(jax.nn.log_softmax(logits))[:, :-1], ids[:, 1:, None], 2
    ).mean()
    assert float(found.loss[-1]) == pytest.approx(expected, rel=1e-4)
