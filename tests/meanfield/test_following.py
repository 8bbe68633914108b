"""Following a curve of stationary states, on one that is known.

Two modes a, b and a number p with a (p - 1 + a^2 - a^4) = 0 and b = -a^2 / 2: the branch
p = 1 - a^2 + a^4 leaves a = 0 at p = 1, folds back at a^2 = 1/2, p = 3/4, and is at p = 1 again
where a = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.errors import SimulationError
from tokenflock.meanfield import VonMises, continuing, grid
from tokenflock.meanfield.equilibria import Curve, Point, newton

SCALE, STEP = 2.0, 0.1


@dataclass
class Known:
    """The known curve in the place of a law; it ends at a = `end`, is blurred beyond `sharp`."""

    end: float = np.inf
    sharp: float = np.inf
    value: float = 0.9
    space: object = field(default_factory=lambda: grid(3, 8))
    dynamics: object = field(default_factory=lambda: SimpleNamespace(isotropic=True))
    even = np.arange(1, 3)
    modes = np.arange(3)

    def mode(self, degree):
        return degree - 1

    def full(self, z):
        a, _ = z
        return np.array([1.0, a, 1.0 if abs(a) > self.sharp else 0.0])

    def residual(self, z, p):
        a, b = z
        F = np.array([a * (p - 1 + a**2 - a**4), b + a**2 / 2])
        D = np.array([[p - 1 + 3 * a**2 - 5 * a**4, 0.0, a], [a, 1.0, 0.0]])
        return (F, D) if a < self.end else (np.nan * F, D)

    def guess(self, start):
        return np.array([0.9, -0.5])

    def order_parameter(self, z):
        return abs(float(z[0])) / np.sqrt(3)

    def rates(self, z, p):
        """As of the first equation; the second is always stable."""
        return np.array([p - 1 + 3 * z[0] ** 2 - 5 * z[0] ** 4, -1.0])


def on(a):
    """The state of the branch with a given a, in units of the curve."""
    return np.array([a, -(a**2) / 2, (1 - a**2 + a**4) / SCALE])


def along(a):
    """The unit tangent there, towards larger a."""
    direction = np.array([1.0, -a, (4 * a**3 - 2 * a) / SCALE])
    return direction / np.linalg.norm(direction)


def followed(
    problem=None, within=(0.5, 3.0), step=STEP, most=400, a=0.0, report=lambda share: None
):
    curve = Curve(problem or Known(), SCALE)
    way = Point(on(a), np.array([1.0, 0.0, 0.0]))
    return curve, *continuing._follow(curve, way, within, step, most, report)


def lengths(points):
    """How far each point is from the last, along its tangent."""
    return np.array([before.tangent @ (z.z - before.z) for before, z in pairwise(points)])


def test_tangents_are_those_of_the_curve():
    curve = Curve(Known(), SCALE)
    for a in (0.3, 0.8, 1.3):
        np.testing.assert_allclose(curve.tangent(on(a), along(a)), along(a), atol=1e-13)
        backwards = curve.tangent(on(a), -0.3 * along(a) + [0.01, 0.02, 0.0])
        np.testing.assert_allclose(backwards, -along(a), atol=1e-13)


def test_a_step_ends_on_the_curve_at_its_length():
    curve = Curve(Known(), SCALE)
    start = Point(on(0.5), along(0.5))
    for step in (0.2, -0.1):
        end = curve.onto(start, step)
        np.testing.assert_allclose(end.z, on(end.z[0]), atol=1e-12)
        np.testing.assert_allclose(end.tangent, along(end.z[0]), atol=1e-12)
        assert start.tangent @ (end.z - start.z) == pytest.approx(step, abs=1e-12)
    assert curve.onto(start, 0.2, iterations=1) is None
    assert Curve(Known(end=0.6), SCALE).onto(start, 0.2) is None


def test_a_step_that_leaps_far_away_is_none():
    """Newton's first change would be twenty long there, in either direction."""
    for leap, reached in ((20.0, False), (-20.0, False), (-4.0, True), (4.0, True)):

        def residual(z, p, leap=leap):
            return np.array([z[0] - leap, z[1]]), np.eye(2, 3)

        curve = Curve(SimpleNamespace(residual=residual), 1.0)
        found = curve.onto(Point(np.zeros(3), np.array([0.0, 0.0, 1.0])), 0.5)
        assert (found is not None) == reached


def test_newton_finds_the_state_near_a_guess_and_says_where_there_is_none():
    p = 0.9
    a = np.sqrt((1 + np.sqrt(1 - 4 * (1 - p))) / 2)
    np.testing.assert_allclose(newton(Known(), [0.9, 0.1], p), on(a)[:2], atol=1e-12)
    calls = []

    def nowhere(z, p):
        calls.append(z)
        return np.array([z[0] ** 2 + 1, z[1]]), np.array([[2 * z[0], 0, 0], [0, 1, 0]])

    with pytest.raises(SimulationError, match="near the guess"):
        newton(SimpleNamespace(residual=nowhere), np.array([0.3, 5.0]), 0.0)
    assert len(calls) == 30
    with pytest.raises(SimulationError, match="near the guess"):
        newton(Known(end=0.5), np.array([0.9, 0.1]), p)


def test_newton_goes_on_until_no_mode_moves():
    """The steps of a linear equation, damped tenfold: modes of either sign, one already at rest."""
    calls = []

    def slow(z, p):
        calls.append(z)
        return z - [3.0, -200.0, 7.0], 1.1 * np.eye(3, 4)

    found = newton(SimpleNamespace(residual=slow), np.array([4.0, -300.0, 7.0]), 0.0)
    np.testing.assert_allclose(found, [3, -200, 7], rtol=1e-11)
    assert len(calls) == 12


def test_steps_begin_at_a_quarter_and_grow_to_the_whole():
    curve, points, why = followed()
    expected = np.minimum(STEP / 4 * 1.3 ** np.arange(len(points) - 1), STEP)
    np.testing.assert_allclose(lengths(points)[:-1], expected[:-1], atol=1e-11)
    np.testing.assert_allclose([z.z for z in points], [on(z.z[0]) for z in points], atol=1e-11)
    for point in points[1:]:
        np.testing.assert_allclose(point.tangent, along(point.z[0]), atol=1e-11)
    np.testing.assert_array_equal(points[0].tangent, [1, 0, 0])
    assert why == "" and points[-1].z[2] * SCALE == pytest.approx(3, abs=1e-12)
    # p = 3: a^4 - a^2 = 2
    assert points[-1].z[0] == pytest.approx(np.sqrt(2), abs=1e-11)
    assert curve.problem.value == 0.9


def test_a_range_ends_a_branch_on_either_side():
    _, points, why = followed(within=(0.8, 1.2))
    assert why == "" and points[-1].z[2] * SCALE == pytest.approx(0.8, abs=1e-12)
    first = np.sqrt((1 - np.sqrt(0.2)) / 2)  # on the way to the fold, not back from it
    assert points[-1].z[0] == pytest.approx(first, abs=1e-10)
    np.testing.assert_allclose(points[-1].tangent, along(first), atol=1e-9)
    _, points, _ = followed(within=(0.9999, 1.2))  # the first step leaves it
    assert len(points) == 2 and points[1].z[2] * SCALE == pytest.approx(0.9999, abs=1e-12)
    near = np.sqrt((1 - np.sqrt(1 - 4e-4)) / 2)  # on the branch, not back in the uniform measure
    assert points[1].z[0] == pytest.approx(near, rel=1e-9)
    _, points, _ = followed(a=0.8, within=(0.75, 1.5))  # a start that is not the uniform one
    np.testing.assert_allclose(points[0].tangent, along(0.8), atol=1e-12)
    _, points, _ = followed(a=-0.8, within=(0.75, 1.5))  # all modes are negative
    np.testing.assert_allclose(points[0].tangent, along(-0.8), atol=1e-12)


def test_sharp_bends_are_taken_in_shorter_steps():
    """Where the tangents of two points would have a cosine below 0.85 the step is halved."""
    _, points, _ = followed(step=1.6, within=(0.0, 20.0))
    tangents = np.array([point.tangent for point in points])
    cosines = np.sum(tangents[1:] * tangents[:-1], axis=1)
    assert cosines.min() >= 0.85
    size, expected = 0.4, []
    for before, after in pairwise(points[:-1]):
        while (end := Curve(Known(), SCALE).onto(before, size)) is None or (
            end.tangent @ before.tangent < 0.85
        ):
            size /= 2
        expected.append(size)
        np.testing.assert_allclose(end.z, after.z, atol=1e-10)
        size = min(1.3 * size, 1.6)
    np.testing.assert_allclose(lengths(points)[:-1], expected, atol=1e-10)
    assert min(expected[1:]) < 0.4


def test_a_branch_says_why_it_ended():
    shares = []
    _, points, why = followed(most=7, report=shares.append)
    assert len(points) == 7 and "7 points; raise most" in why
    np.testing.assert_allclose(shares, np.arange(2, 8) / 7)
    _, points, why = followed(Known(end=0.6))
    assert "no point of the branch" in why
    assert 0.6 - 1e-5 * STEP < points[-1].z[0] < 0.6
    _, points, why = followed(Known(sharp=0.6))
    assert "narrower than the grid" in why and 0.5 < points[-1].z[0] <= 0.6


@pytest.fixture
def energies(monkeypatch):
    """A free energy whose gain over the uniform measure vanishes at a = 0.85."""

    def free_energy(problem, z, p):
        return 5 * p + (z[0] ** 2 - 0.85**2 if np.any(z) else 0.0)

    monkeypatch.setattr(continuing, "free_energy", free_energy)


@pytest.mark.usefixtures("energies")
def test_folds_and_transitions_are_located(monkeypatch):
    curve, points, _ = followed()
    told = continuing._told(curve, [points[1:]])
    assert told["fold"][0] == ("folds",) and told["transition"][0] == ("transitions",)
    np.testing.assert_allclose(told["fold"][1], [0.75], atol=1e-10)
    order = np.sqrt([0.5, 0.85**2]) / np.sqrt(3)
    np.testing.assert_allclose(told["fold_order_parameter"][1], order[:1], atol=1e-9)
    np.testing.assert_allclose(told["transition"][1], [1 - 0.85**2 + 0.85**4], atol=1e-10)
    np.testing.assert_allclose(told["transition_order_parameter"][1], order[1:], atol=1e-9)
    monkeypatch.setattr(continuing, "free_energy", lambda problem, z, p: None)
    told = continuing._told(curve, [points, points[:3]])
    assert len(told["fold"][1]) == 1 and told["transition"][1] == []


@pytest.mark.usefixtures("energies")
def test_what_is_told_of_every_point(monkeypatch):
    curve, points, _ = followed(within=(0.7, 1.1))
    table = continuing._table(curve, [points])
    a = np.array([point.z[0] for point in points])
    np.testing.assert_allclose(table["p"], 1 - a**2 + a**4, atol=1e-11)
    np.testing.assert_allclose(table["order"], a / np.sqrt(3))
    np.testing.assert_allclose(table["gain"][1:], a[1:] ** 2 - 0.85**2)
    assert table["gain"][0] == 0
    np.testing.assert_allclose(table["rate"][:, 0], 2 * a**2 - 4 * a**4, atol=1e-10)
    monkeypatch.setattr(continuing, "free_energy", lambda problem, z, p: None)
    assert continuing._table(curve, [points])["gain"] is None


@pytest.fixture(autouse=True)
def densities(monkeypatch):
    monkeypatch.setattr(continuing, "relative", lambda problem, z: np.array([1.0, z[0], z[1]]))


@pytest.mark.usefixtures("energies")
def test_densities_are_told_by_area():
    curve, points, _ = followed(most=5)
    told = continuing._table(curve, [points])["density"]
    a = np.array([point.z[0] for point in points])
    expected = np.stack([np.ones(5), a, -(a**2) / 2], axis=1) / (4 * np.pi)
    np.testing.assert_allclose(told, expected, atol=1e-12)


def test_two_ways_from_one_start_make_one_line():
    assert continuing._joined([[1, 2, 3]]) == [1, 2, 3]
    assert continuing._joined([[1, 2, 3], [1, -2, -3]]) == [-3, -2, 1, 2, 3]


def test_a_vanishing_rate_is_as_stable_as_the_next_point():
    rates = np.array([0.0, -1.0, 9e-10, 1.0, -1e-10, 1.1e-9, -1.1e-9, 5e-10])
    assert continuing._stable(rates).tolist() == [1, 1, 0, 0, 0, 0, 1, 1]
    assert continuing._stable(np.array([1e-12, 1e-12, 0.2])).tolist() == [0, 0, 0]


def test_the_uniform_measure_is_looked_at_over_the_whole_range():
    told = continuing._uniform(Known(), (0.5, 2.5))
    np.testing.assert_allclose(told["level"][1], np.linspace(0.5, 2.5, 41))
    np.testing.assert_allclose(told["uniform_rate"][1], np.linspace(-0.5, 1.5, 41))
    aside = Known(dynamics=SimpleNamespace(isotropic=False))
    assert continuing._uniform(aside, (0.5, 2.5)) == {}


def test_ways_leave_the_uniform_measure_along_one_mode():
    """Up, and for even degrees on spheres, where the two are different states, also down."""
    ways, leaves = continuing._ways(Known(), 1, (0.6, 2.0))
    assert leaves == pytest.approx(1, abs=1e-12) and len(ways) == 1
    np.testing.assert_allclose(ways[0].z, [0, 0, 1], atol=1e-12)
    np.testing.assert_array_equal(ways[0].tangent, [1, 0, 0])

    class Wide(Known):
        even, modes = np.arange(1, 5), np.arange(5)

        def residual(self, z, p):
            return None, np.diag(p - np.array([1.0, 1.25, 1.5, 1.75]))

    for degree, d, count in ((2, 3, 2), (3, 3, 1), (2, 2, 1), (np.int64(2), 4, 2)):
        ways, leaves = continuing._ways(Wide(space=grid(d, 8)), degree, (0.6, 2.0))
        assert leaves == pytest.approx(0.75 + degree / 4, abs=1e-12) and len(ways) == count
        mode = np.eye(5)[degree - 1]
        for way, sign in zip(ways, (1, -1)):
            np.testing.assert_array_equal(way.tangent, sign * mode)
            np.testing.assert_allclose(way.z, np.append(np.zeros(4), leaves))
    for wrong in (0, -1, 5, 9):
        with pytest.raises(flock.UserError, match="1 or more that the grid has"):
            continuing._ways(Wide(), wrong, (0.6, 2.0))
    for within in ((1.1, 2.0), (0.2, 0.9)):
        with pytest.raises(flock.UserError, match="begins to grow"):
            continuing._ways(Known(), 1, within)
    aside = Known(dynamics=SimpleNamespace(isotropic=False))
    with pytest.raises(flock.UserError, match="not isotropic"):
        continuing._ways(aside, 1, (0.6, 2.0))


def test_ways_from_a_state_go_up_and_down_in_the_parameter():
    a = np.sqrt((1 + np.sqrt(0.6)) / 2)
    for within in ((0.5, 2.0), (0.9, 1.0), (0.8, 0.9)):  # the ends belong to the range
        ways, leaves = continuing._ways(Known(), VonMises(2.0), within)
        assert leaves is None
        for way, sign in zip(ways, (1, -1), strict=True):
            np.testing.assert_allclose(way.z, [a, -(a**2) / 2, 0.9], atol=1e-11)
            np.testing.assert_array_equal(way.tangent, [0, 0, sign])
    for within in ((0.95, 2.0), (0.1, 0.85)):
        with pytest.raises(flock.UserError, match="around the parameter"):
            continuing._ways(Known(), VonMises(2.0), within)


def test_both_ways_share_the_points_and_are_measured_in_units_of_the_start():
    shares = []
    ways, _ = continuing._ways(Known(), VonMises(2.0), (0.5, 1.2))
    given = Known(), ways, (0.5, 1.2), STEP, 31, shares.append
    curve, (up, down), why = continuing._sides(*given)
    assert curve.scale == pytest.approx(0.9) and len(down) == 15
    assert why == "it has 15 points; raise most"
    for side in (up, down):
        np.testing.assert_allclose(side[0].z[2], 1)
        a = np.array([point.z[0] for point in side])
        p = np.array([point.z[2] for point in side]) * curve.scale
        np.testing.assert_allclose(p, 1 - a**2 + a**4, atol=1e-10)
    assert up[-1].z[2] * curve.scale == pytest.approx(1.2)
    assert down[3].z[0] < down[0].z[0] < up[3].z[0]
    expected = [(np.arange(2, len(up)) / 15) / 2, 0.5 + (np.arange(2, 16) / 15) / 2]
    np.testing.assert_allclose(shares, np.concatenate(expected))


def test_a_parameter_of_zero_or_below_has_a_scale_too():
    for p, scale in ((0.0, 1.0), (-0.4, 0.4)):
        flat = Point(np.array([0.0, 0.0, p]), np.array([0.0, 0.0, 1.0]))
        curve, sides, why = continuing._sides(Known(), [flat], (-1, 0.5), STEP, 4, None)
        assert curve.scale == scale and len(sides[0]) == 4 and "raise most" in why
        assert sides[0][-1].z[2] > sides[0][0].z[2] == pytest.approx(p / scale)


def test_progress_is_a_share_of_all_ways():
    told = []
    report = continuing._reporter(told.append, 1, 4)
    for share in (-0.5, 0.0, 0.5, 1.0, 1.5):
        report(share)
    assert told == [0.25, 0.25, 0.375, 0.5, 0.5]
    continuing._reporter(None, 1, 4)(0.5)


def test_the_end_of_the_range_may_have_no_point():
    curve = Curve(Known(), SCALE)
    before, after = (Point(on(a), along(a)) for a in (0.4, 0.5))
    end = continuing._last(curve, before, after, 0.85)
    a = np.sqrt((1 - np.sqrt(0.4)) / 2)
    np.testing.assert_allclose(end.z, on(a), atol=1e-12)
    np.testing.assert_allclose(end.tangent, along(a), atol=1e-10)
    lost = Curve(Known(end=0.41), SCALE)
    assert continuing._last(lost, before, after, 0.85) is None


def test_a_mark_is_sought_between_two_points_whose_values_are_known(monkeypatch):
    """From one to the other along the tangent of the first; neither of them is sought again."""
    ranges, reached = [], []

    def root(function, low, high):
        ranges.append((low, high, function(low), function(high)))
        return 0.05

    monkeypatch.setattr(continuing, "_root", root)
    before, after = (Point(on(a), along(a)) for a in (0.6, 0.75))

    def wanted(point):
        reached.append(point)
        return 10 * point.z[0]

    found = continuing._between(Curve(Known(), SCALE), before, after, wanted)
    length = before.tangent @ (after.z - before.z)
    assert ranges == [(0.0, pytest.approx(length, rel=1e-12), 6.0, 7.5)]
    assert reached[0] is before and reached[1] is after and len(reached) == 2
    assert before.tangent @ (found.z - before.z) == pytest.approx(0.05, abs=1e-12)
    with pytest.raises(SimulationError, match="smaller step"):
        continuing._between(Curve(Known(end=0.61), SCALE), before, after, wanted)
