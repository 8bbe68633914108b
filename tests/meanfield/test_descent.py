"""Optimisers of densities and tokens, step by step: what each piece computes, in plain arrays.

Beneath, `tests/data/descent.txt` keeps the first steps of the long recipes. They state no truth,
only that nothing changes unseen; `python -m tests.meanfield.test_descent` writes them anew.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tokenflock.meanfield import Goal, certificate, implicit_descent, mirror_descent, quasi_newton
from tokenflock.meanfield.implicit_descent import _damped, _log_sum, descend_implicitly, leap
from tokenflock.meanfield.mirror_descent import _divergence, _explicit, descend
from tokenflock.meanfield.potential import energy_and_gradient, potential

TABLE = Path(__file__).parents[1] / "data" / "descent.txt"
CONVEX, MIXED = np.array([[1.3, 0.2], [0.2, 0.3]]), np.array([[1.5, 0.4], [0.4, -1.0]])


def nodes(points=20):
    """(points of the circle, unequal weights of sum one, a log-density)."""
    theta = 2 * np.pi * np.arange(points) / points
    g = 1 + 0.3 * np.cos(theta - 1)
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    return x, g / g.sum(), 0.8 * np.cos(theta) - 0.5 * np.sin(2 * theta)


def tokens(n=5, d=3):
    y = np.random.default_rng(3).normal(size=(n, d))
    return y / np.linalg.norm(y, axis=1, keepdims=True)


def seen(module, name, monkeypatch):
    """What a function of a module is asked, as a list that grows."""
    asked, plain = [], getattr(module, name)

    def watched(*given, **options):
        asked.append((given, options))
        return plain(*given, **options)

    monkeypatch.setattr(module, name, watched)
    return asked


def implicit_steps(monkeypatch):
    """Energies of the first implicit steps, and how the first were damped."""
    x, g, p = nodes()
    asked = seen(implicit_descent, "_damped", monkeypatch)
    _, energies = descend_implicitly(x, g, CONVEX, p, 6, 0.0)
    first = [np.append(given[1][:4], given[2:]) for given, _ in asked if given[2] > 1e-6]
    return np.concatenate([energies, *first])


def long_step(monkeypatch):
    """A step so long that Newton's method is damped: what it asks, and where it ends."""
    x, g, p = nodes()
    asked = seen(implicit_descent, "_damped", monkeypatch)
    q = leap(implicit_descent.features(x, 8 * CONVEX), g, 3 * p, 30.0)
    falls = [given[2] for given, _ in asked if given[2] > 1e-3]
    return np.concatenate([q[:5], falls])


def explicit_steps(monkeypatch):
    """Energies of explicit steps, up and down, and where they end."""
    x, g, p = nodes()
    K = np.exp(x @ MIXED @ x.T)
    up, down = (_explicit(sign * K, g, p, 18, 0.0) for sign in (-1, 1))
    return np.concatenate([up[1], up[0][:4], down[1], down[0][:4]])


def last_digits(monkeypatch):
    """The first points that Barzilai-Borwein steps visit, uphill and downhill."""
    asked = seen(quasi_newton, "energy_and_gradient", monkeypatch)
    visited = []
    for goal in Goal:
        asked.clear()
        quasi_newton._last_digits(tokens(), np.diag([1.0, 0.5, -0.7]), goal, 1e-8)
        visited += [given[0][2] for given, _ in asked[:9]]
    return np.ravel(visited)


RECIPES = (implicit_steps, long_step, explicit_steps, last_digits)


@pytest.mark.parametrize("taken", RECIPES, ids=lambda taken: taken.__name__)
def test_the_first_steps_are_what_they_were(taken, monkeypatch):
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    kept = dict(line.split(": ") for line in lines)[taken.__name__]
    found = taken(monkeypatch)
    np.testing.assert_allclose(found, np.array(kept.split(), float), rtol=2e-6, atol=1e-9)


def test_an_implicit_descent_takes_longer_and_longer_steps(monkeypatch):
    """Eight times as long after each that was solved; after one that was not an eighth, and twice
    as long from there.
    """
    x, g, p = nodes()
    K, plain, asked, found = np.exp(x @ CONVEX @ x.T), leap, [], []

    def failing(F, g, p, step):
        asked.append(step)
        if len(asked) == 5:
            return (found[-1] + found[-2]) / 2  # a little higher than the last
        found.append(None if len(asked) == 3 else plain(F, g, p, step))
        return found[-1] if found[-1] is not None else found.pop()

    monkeypatch.setattr(implicit_descent, "leap", failing)
    w, energies = descend_implicitly(x, g, CONVEX, p, 6, 0.0)
    expected = np.array([1, 8, 64, 8, 16, 2, 4]) / np.ptp(K)
    np.testing.assert_allclose(asked, expected, rtol=1e-12)
    assert len(energies) == 6 and (np.diff(energies) < 0).all()
    first = g * np.exp(p) / np.sum(g * np.exp(p))
    assert energies[0] == pytest.approx(first @ K @ first, rel=1e-12)
    assert energies[-1] == pytest.approx(w @ K @ w, rel=1e-12)


def test_an_implicit_descent_ends_where_it_may(monkeypatch):
    """At the tolerance, or after twelve steps that do not make the gap smaller; with the best."""
    x, g, p = nodes()
    K = np.exp(x @ CONVEX @ x.T)
    w, energies = descend_implicitly(x, g, CONVEX, p, 500, 1e-3)
    gaps = w @ K @ w - (K @ w).min()
    assert gaps < 1e-3 and len(energies) < 10
    asked = []
    monkeypatch.setattr(implicit_descent, "leap", lambda *given: asked.append(given))
    w, energies = descend_implicitly(x, g, CONVEX, np.append(p[:-1], -100.0), 500, 1e-3)
    assert len(asked) == 12 and len(energies) == 1
    assert min(given[2].min() for given in asked) == -30  # who is nothing could never come back
    assert w.sum() == pytest.approx(1)


def test_patience_begins_anew_with_every_smaller_gap_and_equal_energies_are_no_rise(monkeypatch):
    x, g, p = nodes()
    plain, asked = leap, []

    def stuck(F, g, p, step):
        asked.append(step)
        if len(asked) == 1:
            return plain(F, g, p, step)
        return p if len(asked) <= 4 else None  # where it is: the energy is the same

    monkeypatch.setattr(implicit_descent, "leap", stuck)
    _, energies = descend_implicitly(x, g, CONVEX, p, 500, 1e-3)
    assert len(asked) == 13 and len(energies) == 5
    np.testing.assert_allclose(np.divide(asked[:6], asked[0]), [1, 8, 64, 512, 4096, 512])
    np.testing.assert_allclose(energies[2:], energies[1], rtol=1e-13)


def test_a_move_is_halved_until_the_function_falls_as_it_should():
    """log sum e^(logs - s along) - log sum e^logs - s fall + s^2 bend / 2 <= -s fall / 100."""
    logs, along = np.array([0.3, -0.5, 1.0]), np.array([5.0, -7.0, 2.0])

    def change(s, fall, bend):
        moved = np.log(np.exp(logs - s * along).sum()) - np.log(np.exp(logs).sum())
        return moved - s * fall + s**2 * bend / 2 + 0.01 * s * fall

    shares = set()
    for fall, bend in np.random.default_rng(0).lognormal(0.0, 2.0, size=(300, 2)):
        share = _damped(logs, along, fall, bend)
        shares.add(share)
        expected = next((s for s in 0.5 ** np.arange(40) if change(s, fall, bend) <= 0), 0.0)
        assert share == expected or share < 1e-9 > expected
    assert len(shares) >= 5
    assert _damped(logs, along, 1e-7, 1e9) == 1  # so near that the whole move is right
    assert 4e-10 < _damped(logs, -along, 1e-5, 1e30) < 1e-9
    assert _log_sum(logs + 1000) == pytest.approx(1000 + np.log(np.exp(logs).sum()), rel=1e-14)


def test_a_step_that_is_not_solved_is_none(monkeypatch):
    x, g, p = nodes()
    F = implicit_descent.features(x, CONVEX)
    assert leap(F, g, np.full(20, np.nan), 1.0) is None
    assert leap(np.nan * F, g, p, 1.0) is None
    q = leap(F, g, p, 2.0)
    assert q.max() == 0
    monkeypatch.setattr(implicit_descent, "NEWTON", 1)  # too few for a long step
    assert leap(F, g, p, 2.0) is None


def test_divergences_are_sums_over_what_both_have():
    v, u = np.array([0.2, 0.5, 0.3, 0.0]), np.array([0.4, 0.1, 0.0, 0.5])
    expected = 0.2 * np.log(0.5) + 0.5 * np.log(5)
    assert _divergence(v, u) == pytest.approx(expected, rel=1e-13)


def test_a_descent_is_implicit_where_the_energy_is_convex_only(monkeypatch):
    """And gives a density relative to the uniform one, with energies of the sign that they have."""
    x, g, p = nodes()
    implicit = seen(mirror_descent, "descend_implicitly", monkeypatch)
    flat = np.diag([1.0, 0.0])
    wanted = [(CONVEX, Goal.MINIMISE, 1), (CONVEX, Goal.MAXIMISE, 0), (MIXED, Goal.MINIMISE, 0)]
    for D, goal, count in [*wanted, (flat, Goal.MINIMISE, 1)]:
        implicit.clear()
        rho, energies = descend(x, g, D, goal, p + 7, 8, 1e-9)
        assert len(implicit) == count and rho @ g == pytest.approx(1)
        first = g * np.exp(p) / np.sum(g * np.exp(p))
        assert energies[0] == pytest.approx(first @ potential(x, x, first, D), rel=1e-12)
        assert (goal.sign * np.diff(energies) <= 0).all()
        last = rho * g @ potential(x, x, rho * g, D)
        assert (rho >= 0).all() and goal.sign * (last - energies[-1]) <= 1e-12


def test_explicit_steps_end_at_the_tolerance_and_climb_to_the_top():
    x, g, p = nodes()
    K = -np.exp(x @ MIXED @ x.T)
    q, energies = _explicit(K, g, p - p.max(), 2000, 1e-9)
    w = implicit_descent.masses(q, g)
    assert w @ K @ w - (K @ w).min() < 1e-9 and len(energies) < 300
    assert energies[-1] == pytest.approx(w @ K @ w, rel=1e-12)
    early, few = _explicit(K, g, p, 4, 1e-9)
    assert len(few) == 4 and early.shape == (20,)


def captured(module, monkeypatch, call):
    """(function, start, options) that a minimiser is given."""
    given = {}

    def minimize(function, start, **options):
        given.update(function=function, start=start, options=options)
        return SimpleNamespace(x=start, fun=function(start)[0])

    monkeypatch.setattr(module, "minimize", minimize)
    answer = call()
    return given["function"], given["start"], given["options"], answer


@pytest.mark.parametrize("goal", Goal)
def test_free_tokens_have_the_energy_of_their_directions(goal, monkeypatch):
    """sign n E(y / |y|) and its gradient; the limits are those that were asked for."""
    x, D = tokens(), np.diag([1.0, 0.5, -0.7])
    clock = iter(100 + 1.5 * np.arange(100))
    monkeypatch.setattr(quasi_newton, "perf_counter", lambda: next(clock))
    function, start, options, found = captured(
        quasi_newton, monkeypatch, lambda: quasi_newton.optimise(x, D, goal, 7, 1e-3)
    )
    assert options["jac"] is True and options["method"] == "L-BFGS-B"
    limits = {"maxiter": 7, "maxfun": 14, "maxcor": 20, "ftol": 0.0, "gtol": 1e-3}
    assert options["options"] == limits
    np.testing.assert_array_equal(start, x.ravel())
    assert found.energies[0] == pytest.approx(energy_and_gradient(x, D)[0])
    assert len(found.energies) == 1 and found.seconds.tolist() == [1.5]
    _, G = energy_and_gradient(found.x, D)
    assert found.residual == pytest.approx(np.sqrt(np.mean(np.sum(G * G, axis=1))), rel=1e-6)
    assert found.residual < 1e-4
    y = (x * [[0.5], [2.0], [1.0], [3.0], [0.7]]).ravel()
    value, gradient = function(y)
    u = y.reshape(x.shape) / np.linalg.norm(y.reshape(x.shape), axis=1, keepdims=True)
    assert value == pytest.approx(goal.sign * np.exp(u @ D @ u.T).mean() * 5, rel=1e-12)
    h = 1e-6
    steps = h * np.eye(15)
    slopes = [(function(y + s)[0] - function(y - s)[0]) / (2 * h) for s in steps]
    np.testing.assert_allclose(gradient, slopes, atol=1e-8)


def test_the_last_digits_are_the_best_point_met():
    """Also where the way there is not straight: no later one is told in its place."""
    for seed in range(4):
        y = np.random.default_rng(seed).normal(size=(6, 3))
        x = y / np.linalg.norm(y, axis=1, keepdims=True)
        D = np.diag([1.0, 0.5, -0.7])
        best, least = quasi_newton._last_digits(x, D, Goal.MINIMISE, 1e-10)
        G = energy_and_gradient(best, D)[1]
        assert least == pytest.approx(quasi_newton._size(G), rel=1e-12)
        assert least < 1e-11 and quasi_newton._size(energy_and_gradient(x, D)[1]) > 0.1
    still, least = quasi_newton._last_digits(x, D, Goal.MINIMISE, 1e6)
    np.testing.assert_array_equal(still, x)


@pytest.mark.parametrize(
    ("sizes", "calls"),
    [
        ([1.0], 26),  # 25 steps without a smaller gradient
        ([1.0, 0.5, 2.0], 27),  # which count anew after each that has one
        ([1.0, 0.095], 2),  # a tenth of the tolerance is enough
        ([1.0, 0.105, 0.05], 3),
    ],
)
def test_the_last_digits_end_at_a_tenth_of_the_tolerance_or_by_patience(sizes, calls, monkeypatch):
    """Where the gradient is always the same there is no curvature, and steps are 0.1 long."""
    x, visited = np.tile([1.0, 0.0], (4, 1)), []

    def slope(x, D):
        size = sizes[min(len(visited), len(sizes) - 1)]
        visited.append(x)
        return 0.0, np.tile([0.0, size], (4, 1))

    monkeypatch.setattr(quasi_newton, "energy_and_gradient", slope)
    best, least = quasi_newton._last_digits(x, np.eye(2), Goal.MINIMISE, 1.0)
    assert len(visited) == calls and least == min(sizes)
    np.testing.assert_array_equal(best, visited[int(np.argmin(sizes))])
    assert np.isfinite(visited).all()
    expected = np.array([1.0, -0.1]) / np.hypot(1.0, 0.1)
    np.testing.assert_allclose(visited[1][0], expected)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_potential_is_polished_along_its_gradient(sign, monkeypatch):
    x, w, D = tokens(), np.array([0.1, 0.3, 0.2, 0.15, 0.25]), np.diag([1.0, 0.5, -0.7])
    q = np.array([0.6, 0.0, 0.8])
    function, start, options, value = captured(
        certificate, monkeypatch, lambda: certificate._polish(q, x, w, D, sign)
    )
    np.testing.assert_array_equal(start, q)
    assert options["jac"] is True and options["options"] == {"ftol": 0, "gtol": 1e-13}
    assert value == pytest.approx(sign * w @ np.exp(x @ D @ q), rel=1e-13)
    y, h = np.array([1.0, -2.0, 0.5]), 1e-6
    slopes = [(function(y + s)[0] - function(y - s)[0]) / (2 * h) for s in h * np.eye(3)]
    np.testing.assert_allclose(function(y)[1], slopes, atol=1e-8)


def write() -> None:
    """The kept numbers, anew."""
    lines = []
    for taken in RECIPES:
        with pytest.MonkeyPatch.context() as patch:
            lines.append(f"{taken.__name__}: " + " ".join(f"{v:.10g}" for v in taken(patch)))
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
