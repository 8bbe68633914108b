"""Figure 1 runs on the ALBERT that is given, says which one that is, and on none else."""

from __future__ import annotations

import json

import pytest

from tests.probing.conftest import ids, small
from tokenflock.papers.perspective import fig1
from tokenflock.reproduction.claim import NOT_RUN, NotRun
from tokenflock.reproduction.scale import Scale


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "little-albert"
    small("albert").save_pretrained(folder)
    items = [{"text": one.text, "ids": list(one.ids)} for one in ids(310, 20, 320, 305)]
    (folder / "prompts.json").write_text(json.dumps(items))
    return fig1.compute(Scale(model=str(folder)))


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
