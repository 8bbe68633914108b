"""Figure 1 runs on the ALBERT that is given, says which one that is, and on none else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.probing.conftest import CONFIGS, ids, small, torch, transformers
from tokenflock.papers.perspective import fig1
from tokenflock.reproduction.claim import NOT_RUN, NotRun
from tokenflock.reproduction.scale import Scale


def computed(folder, model):
    """Figure 1 of a model, with prompts beside it."""
    model.save_pretrained(folder)
    items = [{"text": one.text, "ids": list(one.ids)} for one in ids(310, 20, 320, 305)]
    (folder / "prompts.json").write_text(json.dumps(items))
    return fig1.compute(Scale(model=str(folder)))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return computed(tmp_path_factory.mktemp("models") / "little-albert", small("albert"))


def fresh(depth: int = 4, seed: int = 0):
    """An ALBERT that nobody has trained."""
    torch.manual_seed(seed)
    name, options = CONFIGS["albert"]
    config = getattr(transformers, name)(**options | {"num_hidden_layers": depth})
    return transformers.AutoModel.from_config(config).eval()


def gathering(pull: float):
    """An ALBERT that clusters: x <- norm(x + pull times the mean of all tokens)."""
    model = fresh()
    part = model.encoder.albert_layer_groups[0].albert_layers[0]
    d = model.config.hidden_size
    with torch.no_grad():
        for linear in (part.attention.query, part.attention.key, part.ffn_output):
            linear.weight.zero_()  # all tokens listen to all alike, and nothing is fed forward
        part.attention.value.weight.copy_(pull * torch.eye(d))
        part.attention.dense.weight.copy_(torch.eye(d))
        for name, parameter in model.named_parameters():
            if "word_embeddings" in name or "mapping_in.weight" in name:
                parameter.copy_(torch.randn_like(parameter))
    return model


def verdicts(data) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in fig1.claims(data)}


GROWTH = ("mean", "near-one", "mean-on", "near-one-on")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_whose_tokens_hardly_move_is_no_figure_1(tmp_path, seed):
    """Fresh weights of this size move the cosines by thousandths: none of the claims on growth
    holds, whichever way they move.
    """
    found = verdicts(computed(tmp_path / "fresh", fresh(seed=seed)))
    assert found == dict.fromkeys(GROWTH, "fails") | {"diagonal": "holds"}


def test_a_model_that_clusters_is_figure_1(tmp_path):
    assert set(verdicts(computed(tmp_path / "gathering", gathering(1.0))).values()) == {"holds"}


@pytest.mark.slow
@pytest.mark.parametrize("lost", GROWTH)
def test_each_growth_can_fail_alone(data, lost):
    """Clustering that ends halfway, or whose mass at one stays, is seen by its own claim."""
    depth = data.attrs["depth"]
    name = "mean_cosine" if lost.startswith("mean") else "pair_density"
    levels = {
        "mean_cosine": [0.2, 0.5, 0.7],
        "pair_density": [0.0, 0.1, 0.2],
    }
    flat = {"mean": [0.45, 0.5, 0.7], "mean-on": [0.2, 0.5, 0.53]} | {
        "near-one": [0.095, 0.1, 0.2],
        "near-one-on": [0.0, 0.1, 0.105],
    }
    levels[name] = flat[lost]
    layers = np.interp(data.layer, [0, depth, 2 * depth], [0, 1, 2])
    changed = {
        key: (data[key].dims, np.broadcast_to(np.interp(layers, [0, 1, 2], row), data[key].shape))
        for key, row in levels.items()
    }
    assert data.mean_cosine.dims[-1] == data.pair_density.dims[-1] == "layer"
    found = verdicts(data.assign(changed))
    assert [one for one in GROWTH if found[one] == "fails"] == [lost]


def test_its_numbers(data):
    assert (
        data.sizes["prompt"] == 3
        and data.sizes["layer"] == 7
        and list(data.variant.values) == list(fig1.VARIANTS)
    )
    assert (
        float(abs(data.histogram.sum("bin") - 1).max()) < 1e-3
    )  # single precision: a bin is a sum of 100,000 pairs
    assert len(fig1.draw(data)) == 2


def test_its_claims_name_the_model_that_ran(data):
    claims, absent = fig1.claims(data), fig1.claims(None)
    assert all(
        "of little-albert" in claim.statement and claim.measured is not None for claim in claims
    )
    assert [claim.id for claim in claims] == [claim.id for claim in absent]
    assert all(
        claim.verdict == NOT_RUN and "of albert-xlarge-v2" in claim.statement for claim in absent
    )
    diagonal = next(claim for claim in claims if claim.id == "diagonal")
    assert diagonal.verdict == "holds"


def test_without_the_model_it_does_not_run(tmp_path):
    with pytest.raises(
        NotRun, match="needs albert-xlarge-v2; where there is a network, run: hf download"
    ):
        fig1.compute(Scale())
    small("bert").save_pretrained(tmp_path / "bert")
    (tmp_path / "bert" / "prompts.json").write_text(
        json.dumps([{"text": "", "ids": list(ids(310)[0].ids)}])
    )
    with pytest.raises(NotRun, match="weights of their own"):
        fig1.compute(Scale(model=str(tmp_path / "bert")))
