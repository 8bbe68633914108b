"""What lies on the disk is taken from there, then the hub is asked, and what fails is told."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.probing.conftest import transformers
from tokenflock.errors import UserError
from tokenflock.probing import cached, fetching, weights
from tokenflock.probing.fetching import _online, _trouble, absent, fetched, line, quiet


class Fetch:
    """Gives or raises what it was told to, one after the other, and keeps how it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, **how):
        self.asked.append(how)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


HERE, THERE = {"local_files_only": True, "trust_remote_code": False}, {"trust_remote_code": False}


def test_the_disk_comes_before_the_hub_and_no_code_is_run(monkeypatch):
    monkeypatch.setattr(fetching, "_online", lambda: True)
    fetch = Fetch("from the disk")
    assert fetched("some/model", fetch) == "from the disk" and fetch.asked == [HERE]
    fetch = Fetch(OSError("not here"), "from the hub")
    assert fetched("some/model", fetch) == "from the hub" and fetch.asked == [HERE, THERE]


def test_what_cannot_be_fetched_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(fetching, "_online", lambda: True)
    for source, answers, said in (
        ("some/model", [OSError("not here"), ValueError("gone")], "could not be loaded: gone"),
        ("some/model", [ValueError("odd")], "some/model could not be loaded: odd"),
        (str(tmp_path), [OSError("torn")], "could not be loaded: torn"),
        ("some/model", [pickle.UnpicklingError("bad")], r"pickle that would run code \(bad\)"),
    ):
        fetch = Fetch(*answers)
        with pytest.raises(UserError, match=said):
            fetched(source, fetch)
        assert not fetch.answers
    monkeypatch.setattr(fetching, "_online", lambda: False)
    with pytest.raises(UserError, match="some/model is not in the cache and there is no network"):
        fetched("some/model", Fetch(OSError("not here")))


def test_a_model_that_is_absent_is_brought_in_a_folder_of_its_name():
    assert "hf download some/model --local-dir model;" in absent("some/model")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("UnpicklingError of a file"), "a pickle that would run code"),
        (OSError("Weights_Only load failed"), "a pickle that would run code"),
        (OSError("Weights only load failed"), "a pickle that would run code"),
        (ValueError("model type x"), "does not know: model type x"),
        (ValueError("no model_type"), "does not know: no model_type"),
        (ValueError("set trust_remote_code"), "does not know: set trust_remote_code"),
        (KeyError("x"), "does not know: 'x'"),
        (ValueError("else"), "could not be loaded: else"),
    ],
)
def test_trouble_is_named(error, said):
    told = _trouble("model", error)
    assert said in told
    assert told.count("pickle") + told.count("does not know") + told.count("be loaded") == 1


def test_of_a_long_error_the_first_line_is_told():
    assert line(ValueError("\n  first \nsecond")) == "first"
    assert line(ValueError("x" * 300)) == "x" * 200 and line(ValueError()) == "ValueError"


def test_chatter_is_as_before_in_the_end():
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    try:
        for wanted, shown in ((log.INFO, True), (log.WARNING, False)):
            log.set_verbosity(wanted)
            (log.enable_progress_bar if shown else log.disable_progress_bar)()
            with warnings.catch_warnings(record=True) as heard, quiet():
                warnings.warn("of a library", UserWarning, stacklevel=1)
                assert not heard
                assert log.get_verbosity() == log.ERROR and not log.is_progress_bar_enabled()
            assert log.get_verbosity() == wanted and log.is_progress_bar_enabled() == shown
    finally:
        log.set_verbosity(level)
        (log.enable_progress_bar if bars else log.disable_progress_bar)()


PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def test_whether_there_is_a_network(monkeypatch):
    asked = []

    def connect(place, timeout):
        asked.append((place, timeout))
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(fetching.socket, "create_connection", connect)
    for name in (*PROXIES, "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for word in ("1", "true", "YES", "on"):
        monkeypatch.setenv("HF_HUB_OFFLINE", word)
        assert not _online() and not asked
    monkeypatch.delenv("HF_HUB_OFFLINE")
    for name in PROXIES:
        monkeypatch.setenv(name, "http://proxy")
        assert _online() and not asked  # a proxy is believed
        monkeypatch.delenv(name)
    assert _online() and asked == [(("huggingface.co", 443), 4)]
    monkeypatch.setenv("HF_ENDPOINT", "mirror")
    assert _online() and asked[1:] == [(("huggingface.co", 443), 4)]


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_a_model_is_in_the_cache_where_its_config_and_its_weights_are(monkeypatch, file):
    asked = []

    def config(name, **how):
        asked.append((name, how))

    fake = SimpleNamespace(
        AutoConfig=SimpleNamespace(from_pretrained=config), utils=transformers.utils
    )
    monkeypatch.setattr(fetching, "transformers", fake)
    held = {("some/model", file): "/a/path", ("empty/model", "config.json"): "/a/path"}
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache", lambda name, file: held.get((name, file))
    )
    assert cached("some/model") and not cached("empty/model")
    assert asked[0] == ("some/model", {"local_files_only": True})


def test_a_model_without_a_config_in_the_cache_is_not_there(monkeypatch):
    def config(name, **how):
        raise OSError

    fake = SimpleNamespace(
        AutoConfig=SimpleNamespace(from_pretrained=config), utils=transformers.utils
    )
    monkeypatch.setattr(fetching, "transformers", fake)
    assert cached("some/model") is False


def test_a_model_is_a_folder_with_a_config_or_a_name_of_the_hub(tmp_path):
    for name in ("albert-base-v2", "albert/albert-base-v2", "a_b/c.d-e"):
        assert weights.source_of(name) == name
    (tmp_path / "config.json").write_text("{}")
    assert weights.source_of(tmp_path) == weights.source_of(str(tmp_path)) == str(tmp_path)
    with pytest.raises(UserError, match="is a file; give the folder"):
        weights.source_of(tmp_path / "config.json")
    for wrong in ("a/b/c", "../a", "a b", Path("albert-base-v2")):
        with pytest.raises(UserError, match="there is no folder"):
            weights.source_of(wrong)
    (tmp_path / "bare").mkdir()
    with pytest.raises(UserError, match=r"no config\.json"):
        weights.source_of(tmp_path / "bare")


def test_a_folder_that_says_nothing_is_called_with_the_one_above(tmp_path, monkeypatch):
    commit = "0123456789abcdef" * 2 + "01234567"
    for name, called in (
        ("albert", "albert"),
        ("model", "above/model"),
        ("checkpoint", "above/checkpoint"),
        ("weights", "above/weights"),
        (commit, f"above/{commit}"),
    ):
        (tmp_path / "above" / name).mkdir(parents=True)
        assert weights.name_of(tmp_path / "above" / name) == called
    monkeypatch.chdir(tmp_path / "above" / "albert")
    assert weights.name_of(Path()) == "albert"
    assert weights.name_of(Path("hub/albert-base-v2")) == "albert-base-v2"


def report(missing=(), mismatched=()):
    network = SimpleNamespace(base_model="the network", named_parameters=list)
    return network, {"missing_keys": list(missing), "mismatched_keys": list(mismatched)}


def test_weights_are_all_there_but_those_that_nothing_depends_on(monkeypatch):
    asked = {}

    def given(answer):
        def from_pretrained(source, **how):
            asked.update(how)
            return answer

        fake = SimpleNamespace(AutoModel=SimpleNamespace(from_pretrained=from_pretrained))
        monkeypatch.setattr(weights, "transformers", fake)
        monkeypatch.setattr(weights, "_config", lambda source: "a config")
        return weights.trained("some/model")

    assert given(report()) == "the network"
    assert asked["output_loading_info"] and asked["ignore_mismatched_sizes"]
    assert asked["config"] == "a config"
    assert given(report(["pooler.dense.weight", "embeddings.position_ids"])) == "the network"
    with pytest.raises(UserError, match=r"1 missing \(e.g. layer.weight\), 0 of another shape"):
        given(report(["layer.weight", "pooler.dense.bias"]))
    with pytest.raises(UserError, match=r"0 missing .* 1 of another shape"):
        given(report([], ["layer.weight"]))


@pytest.mark.parametrize(
    "file", ["x.safetensors", "pytorch_model-1.bin", "x.safetensors.index.json"]
)
def test_a_folder_has_weights_in_any_of_three_forms(tmp_path, monkeypatch, file):
    monkeypatch.setattr(weights, "fetched", lambda source, fetch: report())
    monkeypatch.setattr(weights, "_config", lambda source: None)
    monkeypatch.setattr(weights, "no_larger", lambda config, folder: None)
    with pytest.raises(UserError, match="but no weights"):
        weights.trained(str(tmp_path))
    (tmp_path / file).write_text("")
    assert weights.trained(str(tmp_path)) == "the network"
