"""Whoever implements `Model` is probed; what is special to an architecture stands in its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.probing.conftest import CONFIGS, EXTRACTED, ids, small
from tokenflock.errors import UserError
from tokenflock.probing import (
    Facts,
    Model,
    Recording,
    Selection,
    Variant,
    architectures,
    follow,
    half_layers,
    halves,
    huggingface,
    load,
    particle_system,
    probe,
)
from tokenflock.probing.model import Prompt, Trace


class Echo:
    """A model of somebody else's: each layer turns every token by a right angle."""

    facts = Facts("echo", None, "echo", 2, 1, 3, 3, 8, "float64")

    def digest(self):
        return "0" * 64

    def encode(self, text, length):
        tokens = np.arange(len(text.text))[:length]
        return Prompt(text.text, tokens, np.zeros(len(tokens), bool), tuple(text.text[:length]))

    def record(self, prompts, size, recording):
        x = np.zeros((len(prompts), 4, size, 2))
        for p, prompt in enumerate(prompts):
            angles = prompt.ids[None, :] + np.arange(4)[:, None] * np.pi / 2
            x[p, :, : len(prompt)] = np.stack([np.cos(angles), np.sin(angles)], -1)
        return Trace(x[:, list(recording.places(3))])

    def blocks(self):
        raise UserError("an echo has no matrices")


def test_a_model_of_ones_own_is_probed_like_any_other():
    model = Echo()
    assert isinstance(model, Model)
    result = probe(model, ["flock", "of tokens beyond its room"], record=Recording(layers=[0, -1]))
    assert result.x.shape == (2, 2, 8, 2) and result.layer.values.tolist() == [0, 3]
    np.testing.assert_allclose(result.x[0, 1, :5, 0], np.sin(np.arange(5)), atol=1e-12)
    assert float(result.w[0, 5:].sum()) == 0
    with pytest.raises(UserError, match="no matrices"):
        follow(model, "flock")


@pytest.mark.parametrize("kind", ["albert", "gpt2"])
def test_models_of_transformers_are_models(kind):
    loaded = load(small(kind))
    assert isinstance(loaded, Model)
    facts = loaded.facts
    assert (facts.architecture, facts.width, facts.heads, facts.depth) == (kind, 16, 2, 3)


@pytest.mark.slow
def test_a_loaded_model_is_not_loaded_again(monkeypatch):
    model, loads = small("albert"), []
    monkeypatch.setattr(
        huggingface, "_with_heads", lambda network, heads: loads.append(heads) or network
    )
    follow(model, ids(6), depth=4)
    assert len(loads) == 1
    loaded = load(model, Variant(depth=5))
    assert probe(loaded, ids(6)).sizes["layer"] == 6 and len(loads) == 2
    assert particle_system(loaded).sizes["block"] == 1 and len(loads) == 2


def test_a_variant_that_comes_too_late_or_twice_is_refused():
    loaded = load(small("albert"))
    with pytest.raises(UserError, match="left out for a model that is loaded already"):
        probe(loaded, ids(6), variant=Variant(untrained=True))
    with pytest.raises(UserError, match="depth must be that of the variant, 4, got 5"):
        probe(small("albert"), ids(6), 5, variant=Variant(depth=4))
    assert probe(small("albert"), ids(6), variant=Variant(depth=4)).sizes["layer"] == 5


def test_every_file_of_the_folder_is_an_architecture():
    home = Path(architectures.__file__).parent
    files = {path.stem for path in home.glob("[!_]*.py")} - {"architecture"}
    known = architectures.known()
    assert len({id(member) for member in known.values()}) == len(files)
    assert sum(len(member.names) for member in set(known.values())) == len(known)
    assert set(CONFIGS) <= set(known)
    assert {kind for kind in CONFIGS if known[kind].block} == set(EXTRACTED)


def test_an_unknown_architecture_is_recorded_but_not_cut():
    known = architectures.architecture("never-heard-of")
    assert known.tap is None and known.block is None and not known.plain_heads


def test_the_former_name_of_half_layers_still_works():
    result = probe(small("bert"), ids(6), record=Recording(sublayers=True))
    with pytest.warns(DeprecationWarning, match="half_layers"):
        former = halves(result)
    np.testing.assert_array_equal(former.x, half_layers(result).x)


def test_a_selection_is_of_tokens_that_are_there():
    marks = np.array([True, False, False, True])
    assert Selection(special=False, first=False).counted(marks).tolist() == [0, 1, 1, 0]
    assert Selection(first=False).counted(marks).tolist() == [0, 1, 1, 1]
