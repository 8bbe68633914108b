"""The builder of the page: a block put together of pieces is the block of the library."""

from __future__ import annotations

import base64
import dataclasses
import lzma

import numpy as np
import pytest

import tokenflock as flock
from tests.page.node import NODE, said
from tokenflock import parts
from tokenflock.catalogue import find
from tokenflock.dynamics import Block
from tokenflock.laboratory import building, collection
from tokenflock.laboratory.opening import opening
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

RUN = """
const law = given.law, d = given.d;
const run = ({ choices, values, x, seed, steps, h }) => {
  const variant = Building.variant(law, choices), place = variant.programs[d].Layer;
  const made = Building.assembled(place, given.programs);
  const fields = Object.fromEntries(variant.fields.map((field) => [field.path, field.default]));
  const p = made.manifest.parameters.map(({ name }) => [values[name] ?? fields[name]]);
  const program = (0, eval)(made.source), n = x.length / d, w = new Float64Array(n).fill(1 / n);
  const s = { n, t: 0, h, x: Float64Array.from(x), w, key: Uint32Array.from(seed), index: 0 };
  for (let k = 0; k < steps; k++) {
    s.x = program.step(s, p.map((each) => Float64Array.from(each)));
    s.index += 1; s.t = s.index * h;
  }
  return Array.from(s.x);
};
console.log(JSON.stringify(given.cases.map(run)));
"""
CASES = {  # what is chosen, and numbers that are changed
    "plain": ({}, {"beta": 4.0}),
    "a feed-forward part": ({"feed_forward": "gelu"}, {"feed_forward.scale": 0.6}),
    "four heads, causal, pre-LN": (
        {"heads": "4", "mask": "causal", "norm": "pre", "feed_forward": "relu"},
        {"heads.scale": 0.8},
    ),
    "turned places": ({"positions": "rotary", "norm": "peri", "mask": "window"}, {"beta": 3.0}),
    "near places": ({"positions": "alibi", "attention": "sigmoid"}, {"positions.slope": 0.2}),
    "gains": ({"norm": "ngpt", "attention": "linear"}, {"norm.alpha": 0.5}),
    "a switch": ({"norm": "mix", "feed_forward": "tanh"}, {"norm.tau": 1.0}),
    "layers that count less": ({"norm": "square-root", "attention": "none"}, {}),
    "noise": ({"noise": "independent", "heads": "4"}, {"noise.kappa": 50.0}),
    "common noise": ({"noise": "common", "feed_forward": "gelu"}, {"noise.kappa": 50.0}),
    "noise of values": ({"noise": "value"}, {"noise.strength": 0.2}),
}
STEPS, H = 300, 0.1


@pytest.fixture(scope="module")
def shipped() -> dict:
    read = collection.fresh()
    assert read is not None, "run tools/lab_collection.py"
    return read


def block_of(choices: dict[str, str], values: dict[str, float], d: int) -> Block:
    """The block that the page calls so; its random matrices as numbers, as the page holds them."""
    made: dict = {name: words[choices.get(name, _usual(name))] for name, words in PARTS.items()}
    numbers: dict[str, dict] = {}
    for path, value in values.items():
        name, _, inner = path.partition(".")
        if inner:
            numbers.setdefault(name, {})[inner] = value
    for name, part in made.items():
        each = numbers.get(name, {})
        if isinstance(part, (parts.RandomHeads, parts.RandomFeedForward)):
            made[name] = scaled(part.draw(d), each.get("scale", 1.0))
        else:
            made[name] = dataclasses.replace(part, **each)
    return Block(**made, beta=values.get("beta", 1.0))


def scaled(part: parts.Part, scale: float) -> parts.Part:
    """A part with all its matrices larger."""
    arrays = {
        name: getattr(part, name) for name in ("Q", "K", "V", "O", "W", "A") if hasattr(part, name)
    }
    return dataclasses.replace(
        part, **{name: scale * array for name, array in arrays.items() if array is not None}
    )


PARTS = building.offered()


def _usual(name: str) -> str:
    return next(iter(PARTS[name]))


def ran(shipped: dict, cases: list[dict], d: int, folder) -> list[np.ndarray]:
    """What the page's own builder makes of cases."""
    law = next(law for law in shipped["schema"]["laws"] if law["name"] == "Block")
    given = {"law": law, "programs": shipped["programs"], "cases": cases, "d": d}
    told = said(["building"], RUN, given, folder)
    return [np.reshape(each, (-1, d)) for each in told]


def compared(shipped: dict, names, d: int, folder, steps: int = STEPS) -> None:
    """Blocks put together by the page against `simulate`."""
    import jax

    from tokenflock.precision import precision
    from tokenflock.verbs.prepare import prepare

    cases, wanted = [], []
    for name in names:
        choices, values = CASES[name]
        block = block_of(choices, values, d)
        start = Uniform(n=12, d=d)
        run = flock.simulate(block, start, t=steps * H, solver=Layer(h=H), frames=2, seed=3)
        with precision("float64"):
            key = jax.random.key_data(prepare(block, start, 3, "float64")[3])
        x = run.x.values[0].ravel().tolist()
        seed = [int(word) for word in np.asarray(key)]
        cases.append(
            {"choices": choices, "values": values, "x": x, "seed": seed, "steps": steps, "h": H}
        )
        wanted.append((name, run.x.values[-1], 1e-9 if "noise" in choices else 1e-12))
    for got, (name, x, tolerance) in zip(ran(shipped, cases, d, folder), wanted, strict=True):
        scale = max(1.0, float(np.abs(x).max()))
        assert np.abs(got - x).max() < tolerance * scale, name


@pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")
def test_a_block_that_the_page_puts_together_is_that_of_simulate(shipped, tmp_path):
    names = ["four heads, causal, pre-LN", "near places", "common noise"]
    compared(shipped, names, 3, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")
@pytest.mark.parametrize("d", [2, 3, 8])
def test_every_part_of_the_builder_is_that_of_simulate(shipped, d, tmp_path):
    compared(shipped, CASES, d, tmp_path)


def test_every_part_is_written_as_python_writes_it():
    scope = {name: getattr(parts, name) for name in parts.__all__}
    for name, words in building.WRITTEN.items():
        for word, text in words.items():
            assert eval(text, scope) == PARTS[name][word], (name, word)


def test_every_part_of_the_library_is_offered_or_said_to_be_elsewhere():
    for choice in building.choices(find("dynamics", "block")):
        offered = {type(part).__name__ for part in PARTS[choice.name].values()}
        from tokenflock.catalogue import family

        kind = str(Block.__dataclass_fields__[choice.name].type)
        for entry in family(kind).values():
            assert entry.name in offered or entry.name in choice.doc


def test_parts_that_do_not_go_together_are_refused_in_the_words_of_the_library(shipped):
    law = next(law for law in shipped["schema"]["laws"] if law["name"] == "Block")
    refused = law["built"]["refused"]
    with pytest.raises(flock.UserError) as error:
        Block(mask="causal", attention="sinkhorn")
    assert refused["mask,attention"]["causal,sinkhorn"] == str(error.value)
    assert "mix,value" in refused["norm,noise"] and "post,value" not in refused["norm,noise"]


def test_a_block_of_python_opens_in_the_builder_where_that_has_its_parts(shipped):
    start = Uniform(n=8, d=3)
    block = Block(heads=parts.RandomHeads(4, scale=0.5), feed_forward="gelu", noise="common")
    same, state = opening(shipped, block, start, None, 0)
    assert same is shipped and state["law"] == "Block"
    assert state["choices"]["heads"] == "4" and state["choices"]["feed_forward"] == "gelu"
    assert state["values"]["heads.scale"] == 0.5
    for other in (Block(heads=3), Block(mask=parts.WindowMask(width=2))):
        _, state = opening(shipped, other, start, None, 0)
        assert state["law"] == "Block (given)"


@pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")
def test_what_python_squeezes_the_page_loosens(tmp_path):
    random = np.random.default_rng(0)
    noise = bytes(random.integers(0, 256, 5000, dtype=np.uint8))
    words = [bytes(random.integers(97, 100, 40, dtype=np.uint8)) for _ in range(6)]
    texts = [noise + noise[::-1] + noise, b"".join(words[k] for k in random.integers(0, 6, 900))]
    texts += [b"x" * 70_000 + noise, b"", b"a"]
    given = [
        [base64.b64encode(lzma.compress(text, format=lzma.FORMAT_ALONE)).decode(), len(text)]
        for text in texts
    ]
    script = "const told = given.map(([text, size]) => unlzma(Buffer.from(text, 'base64'), size));"
    script += (
        "console.log(JSON.stringify(told.map((bytes) => Buffer.from(bytes).toString('hex'))));"
    )
    told = said(["lzma"], script, given, tmp_path)
    assert [bytes.fromhex(each) for each in told] == texts
