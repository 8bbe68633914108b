"""The page runs the library's own equations: JavaScript by node against JAX."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.page.node import NODE, answers, case, decoded, state
from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    Block,
    Burger,
    NeuralODE,
    Noisy,
    PreNorm,
    SelfAttention,
    Unnormalised,
)
from tokenflock.dynamics.dynamics import Dynamics, MeanField
from tokenflock.engines.page import program, start_program
from tokenflock.engines.page.program import _runtime
from tokenflock.errors import UserError
from tokenflock.observables.observable import Observable, on_sphere
from tokenflock.parts import CausalMask, RandomHeads
from tokenflock.precision import cast, precision
from tokenflock.shapes import Points, Time, Tokens, Weights
from tokenflock.solvers import RK4, Adaptive, Euler, EulerMaruyama, Heun, Layer
from tokenflock.solvers.solver import FixedStep
from tokenflock.spaces import Sphere
from tokenflock.starts import Clusters, Gaussian, Polygon, Uniform

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")

T, H, INDEX = 0.3, 0.05, 3
KEY = (7, 11)
LAWS = {entry.name: entry.load() for entry in entries("dynamics")}
LOOPED = ("Fast", "RescaledAttention", "Sinkhorn", "Streamed")  # quicker compiled than by hand
SOLVERS = {
    entry.name: entry.load() for entry in entries("solvers") if issubclass(entry.load(), FixedStep)
}
OBSERVABLES = [entry.load()() for entry in entries("observables")]


class OwnLaw(MeanField):
    """A law that the library does not have: tokens are drawn to where w_j^2 cos is large."""

    cites: ClassVar[tuple[str, ...]] = ()

    strength: float = 0.7
    "how strongly"

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        weight = jnp.where(w > 0.05, w, 0) ** 2 * jnp.tanh(self.strength * (q @ x.T)) ** 3
        return (1 + jnp.sin(t)) * weight @ x


def tokens(law: Dynamics, n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    n, d = law.particles or n, law.dimension or d
    x, w = random.normal(size=(n, d)), random.uniform(0.5, 1, n)
    if isinstance(law.space, Sphere):
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, w / w.sum()


def stepped(law: Dynamics, solver: FixedStep, x, w, compiled: bool) -> np.ndarray:
    """What JAX says."""
    with precision("float64"):
        law, key = cast(law, "float64"), jax.random.wrap_key_data(jnp.asarray(KEY, jnp.uint32))
        forward = partial(_step, solver, law, jax.random.fold_in(key, INDEX))
        with jax.disable_jit(not compiled):
            step = jax.jit(forward) if compiled else forward
            return np.asarray(step(jnp.asarray(x), jnp.asarray(w)))


def _step(solver, law, key, x, w):
    return solver.step(law, jnp.asarray(T), x, w, key)


def seen(law: Dynamics, observable: Observable, x, w) -> np.ndarray:
    with precision("float64"), jax.disable_jit(type(law).__name__ not in LOOPED):
        law = cast(law, "float64")
        bound = cast(observable, "float64").bind(law)
        look = on_sphere if isinstance(law.space, Sphere) else lambda o, x, w: o.measure(x, w)
        return np.asarray(look(bound, jnp.asarray(x), jnp.asarray(w)), float)


def near(got: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(1e-3, float(np.max(np.abs(wanted), initial=0)))
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=0, atol=tolerance * scale)


def compare(laws: dict[str, Dynamics], solvers, observables, folder: Path, n=7, d=3) -> None:
    """One step of each law by each solver, and observables beside the first, against JAX."""
    cases, wanted = [], []
    for name, law in laws.items():
        x, w = tokens(law, n, d)
        for k, solver in enumerate(solvers):
            looks = observables if k == 0 else ()
            made = program(law, solver, looks, d=x.shape[1])
            refused = made.manifest["refused"]
            values = {
                observable.name: seen(law, observable, x, w)
                for observable in looks
                if observable.name not in refused
            }
            cases.append(case(made, [state(x, w, t=T, h=H, key=KEY, index=INDEX)]))
            y = stepped(law, solver, x, w, type(law).__name__ in LOOPED)
            wanted.append((f"{name} by {type(solver).__name__}", y, values))
    for told, (name, y, values) in zip(answers(cases, folder), wanted, strict=True):
        assert isinstance(told, list), f"{name}: {told}"
        near(decoded(told[0]["x"]), y)
        assert told[0]["seen"].keys() == values.keys()
        for observable, value in values.items():
            near(decoded(told[0]["seen"][observable]), value)


def test_a_step_of_some_laws_and_all_observables_are_those_of_jax(tmp_path):
    names = ("SelfAttention", "Causal", "PreNorm")
    laws = {name: LAWS[name].example(7, 3, 0) for name in names}
    compare({"SelfAttention": laws.pop("SelfAttention")}, [Layer(H)], OBSERVABLES, tmp_path)
    compare(laws, [Layer(H)], (), tmp_path)


def test_every_solver_of_a_fixed_step_is_that_of_jax(tmp_path):
    solvers = [solver(h=H) for solver in SOLVERS.values()]
    compare({"SelfAttention": SelfAttention(beta=2.0)}, solvers, (), tmp_path, d=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_every_law_by_every_solver_with_every_observable_is_that_of_jax(name, tmp_path):
    law = LAWS[name].example(7, 3, 0)
    compare({name: law}, [solver(h=H) for solver in SOLVERS.values()], OBSERVABLES, tmp_path)


@pytest.mark.slow
def test_a_block_with_heads_a_mask_and_a_feed_forward_part(tmp_path):
    block = Block.random(2, 4, seed=1, mask="causal", norm="pre", beta=1.5)
    compare({"Block": block}, [Layer(H)], (), tmp_path, d=4)


def test_a_law_of_the_user(tmp_path):
    compare({"OwnLaw": OwnLaw()}, [Heun(H)], (), tmp_path, n=9, d=2)


def test_one_program_serves_all_numbers_of_tokens_and_all_parameters(tmp_path):
    law = SelfAttention(beta=3.0)
    made = program(SelfAttention(beta=1.0), Layer(0.1), d=3)
    assert made.manifest["parameters"] == [{"name": "beta", "shape": [], "default": [1.0]}]
    systems = [tokens(law, n, 3, seed=n) for n in (1, 2, 40, 5, 40)]
    job = case(made, [state(x, w, t=T, h=H) for x, w in systems])
    job["params"] = case(program(law, Layer(), d=3), [])["params"]
    (told,) = answers([job], tmp_path)
    for (x, w), result in zip(systems, told, strict=True):
        A = w * np.exp(3.0 * x @ x.T)
        y = x + H * (A / A.sum(axis=1, keepdims=True)) @ x
        near(decoded(result["x"]), y / np.linalg.norm(y, axis=1, keepdims=True), 1e-13)


@pytest.mark.parametrize("repulsive", [False, True])
def test_three_hundred_layers_end_where_the_library_ends(repulsive, tmp_path):
    import tokenflock as flock

    law = SelfAttention(beta=4.0, repulsive=repulsive)
    start = Uniform(n=24, d=3)
    run = flock.simulate(law, start, t=30.0, frames=2, solver=Layer(0.1), seed=5)
    first, last = run.x.values
    (told,) = answers(
        [case(program(law, Layer(), d=3), [state(first, run.w.values, steps=300)])], tmp_path
    )
    near(decoded(told[0]["x"]), last, 1e-9 if repulsive else 1e-12)


def test_noise_has_the_library_s_key(tmp_path):
    import tokenflock as flock

    law = Noisy(Unnormalised(beta=1.0), kappa=10.0)
    run = flock.simulate(
        law, Uniform(n=6, d=3), t=0.2, frames=2, solver=EulerMaruyama(0.01), seed=3
    )
    (drawn,) = answers(
        [{"source": start_program(Uniform(n=6, d=3), d=3).source, "draw": [[6, 0, 3]]}], tmp_path
    )
    key = decoded(drawn[0][1])
    made = program(law, EulerMaruyama(), d=3)
    assert made.manifest["noise"] and not program(law.base, Euler(), d=3).manifest["noise"]
    first, last = run.x.values
    begin = state(first, run.w.values, steps=20, h=0.01, key=key)
    (told,) = answers([case(made, [begin])], tmp_path)
    near(decoded(told[0]["x"]), last, 1e-11)


def test_a_seed_starts_from_the_library_s_tokens(tmp_path):
    """The random bits are the same, so that tokens differ by rounding of float32 alone."""
    cases, wanted, refused = [], [], []
    for entry in entries("starts"):
        start = entry.load().example()
        n, d = start.shape
        try:
            made = start_program(start, d=d)
            numbers = [parameter["default"] for parameter in made.manifest["parameters"]]
            cases.append({"source": made.source, "draw": [[n, 0, 9, numbers]]})
        except UserError:
            refused.append(entry.name)
            continue
        drawing, noise = jax.random.split(jax.random.key(9))
        x = np.asarray(start.draw(drawing))
        wanted.append((entry.name, x, np.asarray(jax.random.key_data(noise))))
    assert refused == ["Equiangular", "Given", "Orthogonal", "Polygon", "Simplex", "Sunflower"]
    for (name, x, key), told in zip(wanted, answers(cases, tmp_path), strict=True):
        assert isinstance(told, list), f"{name}: {told}"
        near(decoded(told[0][0]), x.astype(float), 1e-6)
        assert decoded(told[0][1]).tolist() == key.tolist()


def test_one_program_of_a_start_serves_all_its_numbers(tmp_path):
    cases, wanted = [], []
    for usual, other, value in (
        (Gaussian(n=8, d=3), Gaussian(n=30, d=3, scale=2.5), 2.5),
        (Clusters(n=8, d=3), Clusters(n=30, d=3, spread=0.3), 0.3),
    ):
        made = start_program(usual, d=3)
        assert len(made.manifest["parameters"]) == 1
        cases.append({"source": made.source, "draw": [[30, 0, 4, [[value]]]]})
        wanted.append(np.asarray(other.draw(jax.random.split(jax.random.key(4))[0]), float))
    for told, x in zip(answers(cases, tmp_path), wanted, strict=True):
        near(decoded(told[0][0]), x, 1e-6)


def test_what_cannot_be_translated_is_refused_in_a_line():
    class Odd(OwnLaw):
        """A law that asks how many tokens there are."""

        def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
            return x if x.shape[0] < 100 else -x

    class Deep(OwnLaw):
        """A law of a function that the page has not."""

        def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
            return jax.scipy.special.digamma(2 + x)

    for refuse, words in (
        (lambda: program(SelfAttention(), Adaptive(), d=3), "fixed step"),
        (lambda: program(Odd(), Layer(), d=3), "any number of tokens"),
        (lambda: program(Deep(), Layer(), d=3), "digamma"),
        (lambda: start_program(Polygon(n=6), d=2), "Polygon"),
        (lambda: program(Block.random(1, 4), Layer(), d=3), "d must be 4"),
    ):
        with pytest.raises(UserError, match=words) as error:
            refuse()
        assert "\n" not in str(error.value)


def test_an_observable_that_cannot_be_told_is_named():
    from tokenflock.observables import FlowEnergy, MeanCosine

    made = program(PreNorm(), Layer(), [FlowEnergy(), MeanCosine()], d=3)
    assert list(made.manifest["refused"]) == ["flow_energy"]
    assert made.manifest["observables"] == [{"name": "mean_cosine", "shape": []}]


def test_no_matrix_of_pairs_is_kept():
    """The memory of a step is that of some vectors, for SA as for its energy."""
    from tokenflock.observables import Energy

    for law in (SelfAttention(), Burger.example()):
        assert "n * n" not in program(law, RK4(), [Energy()], d=3).source


def test_a_sum_over_tokens_is_taken_once():
    """Four stages are four sums of exponentials in loops over pairs, none over triples."""
    source = program(SelfAttention(), RK4(), d=3).source
    assert source.count("exp(Math.min(") == 4
    depths = {line.index("for") for line in source.splitlines() if line.strip().startswith("for")}
    assert len(depths) == 2


def test_tokens_are_brought_to_where_they_live(tmp_path):
    x, w = 3.0 * np.random.default_rng(0).normal(size=(5, 3)), np.full(5, 0.2)
    made = program(SelfAttention(), Layer(), d=3)
    (told,) = answers([case(made, [state(x, w, steps=0)])], tmp_path)
    near(decoded(told[0]["projected"]), x / np.linalg.norm(x, axis=1, keepdims=True), 1e-15)
    assert (decoded(told[0]["x"]) == x.reshape(-1)).all()


class Functions(Observable):
    """Functions that the page computes by itself, of the coordinates of tokens in [-1, 1]."""

    def measure(self, x: Tokens, w: Weights) -> jax.Array:
        whole = [jnp.exp(700 * x), jax.scipy.special.erf(6 * x), jax.lax.erf_inv(x)]
        return jnp.stack([*whole, jnp.round(8 * x), jax.nn.sigmoid(9 * x)])


def test_functions_of_the_page_are_exact_to_rounding(tmp_path):
    from scipy import special

    x = np.linspace(-0.99999, 0.99999, 3000).reshape(-1, 3)
    x[0] = [0.0, 0.0625, 0.1875]
    made = program(NeuralODE.example(3, 3), Layer(), [Functions()], d=3)
    (told,) = answers([case(made, [state(x, np.full(1000, 1e-3), steps=0)])], tmp_path)
    wanted = [np.exp(700 * x), special.erf(6 * x), special.erfinv(x), np.round(8 * x)]
    got = decoded(told[0]["seen"]["functions"]).reshape(5, *x.shape)
    assert got[0, 0, 0] == 1
    for values, exact in zip(got, [*wanted, special.expit(9 * x)], strict=True):
        np.testing.assert_allclose(values, exact, rtol=5e-14 if exact is wanted[2] else 3e-15)


class Extremes(Observable):
    """Exponentials of numbers far beyond those of doubles, and the largest of some."""

    def measure(self, x: Tokens, w: Weights) -> jax.Array:
        far = jnp.array([-jnp.inf, -1e9, -746.0, 709.0, 710.0, 1e300, jnp.inf, jnp.nan])
        values = jnp.where(jnp.isfinite(x[:, 0]), x[:, 0], jnp.nan)
        ends = jnp.stack([jnp.max(values), jnp.min(values)])
        return jnp.concatenate([jnp.exp(far * (1 + 0 * w[0])), ends])


def test_exponentials_and_extremes_of_numbers_that_are_none(tmp_path):
    made = program(NeuralODE.example(3, 3), Layer(), [Extremes()], d=3)
    x = np.random.default_rng(0).normal(size=(5, 3))
    broken = x.copy()
    broken[1, 0] = np.nan
    states = [state(each, np.full(5, 0.2), steps=0) for each in (x, broken)]
    told, lost = (
        decoded(each["seen"]["extremes"]) for each in answers([case(made, states)], tmp_path)[0]
    )
    wanted = [0, 0, 0, np.exp(709.0), np.inf, np.inf, np.inf, np.nan]
    np.testing.assert_allclose(told[:8], wanted, rtol=1e-14, atol=1e-323)
    assert told[8:].tolist() == [x[:, 0].max(), x[:, 0].min()]
    assert np.isnan(lost[8:]).all()


def test_parts_of_a_block_are_parameters():
    block = Block(heads=RandomHeads(2).draw(4), mask=CausalMask(), beta=2.0)
    names = [parameter["name"] for parameter in program(block, Layer(), d=4).manifest["parameters"]]
    assert "beta" in names and any(name.startswith("heads.Q") for name in names)


class Folded(Observable):
    """Numbers in other shapes, and from the last to the first."""

    def measure(self, x: Tokens, w: Weights) -> jax.Array:
        grid = jnp.arange(24.0).reshape(4, 6) + 0 * w[0]
        shapes = ((2, 2, 6), (24,), (8, 3), (1, 24), (4, 1, 6))
        folded = [jnp.sin(grid.reshape(shape)).reshape(24) for shape in shapes]
        return jnp.concatenate([*folded, jnp.flip(grid, 1)[0], jnp.flip(grid, 0)[:, 1]])


def test_other_shapes_keep_the_order_of_memory(tmp_path):
    made = program(NeuralODE.example(3, 3), Layer(), [Folded()], d=3)
    (told,) = answers([case(made, [state(np.eye(3), np.full(3, 1 / 3), steps=0)])], tmp_path)
    wanted = [*np.tile(np.sin(np.arange(24.0)), 5), 5, 4, 3, 2, 1, 0, 19, 13, 7, 1]
    near(decoded(told[0]["seen"]["folded"]), np.array(wanted), 1e-15)


class Kinds(Observable):
    """Every way from number to number: whole, unsigned, of 64 bits, truths, and the functions."""

    def measure(self, x: Tokens, w: Weights) -> jax.Array:
        a, b, c = x.T
        whole, less = jnp.round(99 * a).astype(jnp.int32), jnp.round(9 * b).astype(jnp.int32)
        bits = jax.lax.bitcast_convert_type(whole, jnp.uint32)
        mantissa = (bits & jnp.uint32(0x7FFFFF)) | jnp.uint32(0x3F800000)
        long = bits.astype(jnp.uint64)
        double = ((long << 20) ^ (long << 33) | (long >> 3)) >> 12 | jnp.uint64(1023 << 52)
        words = [bits << 5, bits >> 3, bits ^ 77, bits | 6, ~bits, bits + 9, bits * 3, bits % 7]
        words += [
            jax.lax.bitcast_convert_type(bits, jnp.int32),
            (long << 40 >> 36).astype("uint32"),
        ]
        words += [jax.lax.bitcast_convert_type(mantissa, jnp.float32), a.astype(jnp.float32)]
        words += [jax.lax.bitcast_convert_type(double, jnp.float64), (30 * c).astype(jnp.int32)]
        numbers = [-whole, whole - less, whole * less, jax.lax.div(whole, 7 + 0 * less)]
        numbers += [jax.lax.rem(whole, 7 + 0 * less), jnp.maximum(whole, less)]
        numbers += [jax.lax.select_n(jnp.abs(less) % 3, a, b, c), jax.lax.clamp(-0.3, a, 0.4)]
        truths = [whole > less, whole >= less, whole == less, whole != less, a < b, a <= c]
        truths += [truths[0] & truths[4], truths[0] | truths[5], truths[0] ^ truths[4], ~truths[1]]
        truths += [jnp.isfinite(jnp.log(jnp.abs(less) + 0.0)), whole.astype(bool)]
        plain = [f(a) for f in (jnp.sin, jnp.tan, jnp.sinh, jnp.arcsin, jnp.arctan, jnp.arctanh)]
        plain += [f(1 + c**2) for f in (jnp.log, jnp.sqrt, jnp.cbrt, jnp.arccosh, jax.lax.rsqrt)]
        plain += [f(3 * b) for f in (jnp.floor, jnp.ceil, jnp.sign, jnp.abs, jnp.expm1, jnp.exp2)]
        plain += [
            jnp.arctan2(a, b),
            (1 + c**2) ** a,
            b**5,
            (2 + b) ** -3,
            jax.scipy.special.erfc(c),
        ]
        return jnp.stack([jnp.asarray(each, float) for each in words + numbers + truths + plain])


def test_every_way_from_number_to_number_is_that_of_jax(tmp_path):
    law, x = NeuralODE.example(3, 3), np.random.default_rng(2).uniform(-0.99, 0.99, (40, 3))
    x[:3] = [[0.0, 0.0, 0.0], [0.5, 0.5, -0.5], [0.02, 0.22, 0.02]]
    made = program(law, Layer(), [Kinds()], d=3)
    assert not made.manifest["refused"]
    (told,) = answers([case(made, [state(x, np.full(40, 1 / 40), steps=0)])], tmp_path)
    assert isinstance(told, list), told
    wanted = seen(law, Kinds(), x, np.full(40, 1 / 40))
    got = decoded(told[0]["seen"]["kinds"]).reshape(wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=3e-14, atol=1e-15)


def test_every_piece_of_the_runtime_is_known_by_its_name():
    """A page copies those that it calls."""
    text = (Path(program.__code__.co_filename).parent / "runtime.js").read_text(encoding="utf-8")
    heads = [line.split()[2] for line in text.splitlines() if line.startswith("// === ")]
    assert len(heads) > 10 and list(_runtime()) == heads
