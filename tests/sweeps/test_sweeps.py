"""A sweep is the ensemble that it asks for, whoever computes it and in whatever order."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.errors import UserError
from tokenflock.observables import Histogram, MeanCosine
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.sweeps import Refine, Spec, check, forecast, planning, repair, status, sweep
from tokenflock.sweeps.crews import Processes, crew
from tokenflock.sweeps.cut import Cut, rectangle
from tokenflock.sweeps.log import LONGEST, Log
from tokenflock.sweeps.pooling import between, pool
from tokenflock.sweeps.reading import drawable, lazily
from tokenflock.sweeps.store import Store
from tokenflock.sweeps.worker import compute, order
from tokenflock.verbs import filling
from tokenflock.verbs.filling import Desk, costs

SMALL = Spec(
    SelfAttention(),
    Uniform(n=5, d=3),
    {"beta": [1.0, 2.0, 4.0], "n": [4, 5]},
    Layer(h=0.1),
    [MeanCosine()],
    repeats=6,
    t=1.0,
    frames=3,
    engine="batch",
)


def same(first, second) -> None:
    """The same numbers, bit for bit, under the same names."""
    assert set(first.variables) == set(second.variables)
    for name in first.variables:
        np.testing.assert_array_equal(first[name].values, second[name].values)


def whole(spec=SMALL):
    """The ensemble of a spec, in memory."""
    return flock.ensemble(
        spec.dynamics,
        spec.start,
        over=spec.over,
        repeats=spec.repeats,
        t=spec.t,
        frames=spec.frames,
        solver=spec.solver,
        observe=spec.observe,
        engine=spec.engine,
        seed=spec.seed,
        dtype=spec.precision,
    )


def test_a_sweep_is_the_ensemble_and_any_xarray_user_opens_it(tmp_path):
    path = tmp_path / "a.zarr"
    views = []
    result = sweep(SMALL, path, watch=lambda view: views.append((view.done, view.share)))
    same(result, whole())
    plain = xr.open_zarr(path)
    assert plain.done.values.all()
    same(plain.drop_vars("done"), whole())
    same(flock.load(path), whole())
    assert views[-1][0] == 6 and views[-1][1] == pytest.approx(1)
    assert status(path).complete and not status(path).running and check(path) == []
    assert result.attrs["recipe"] and "versions" in result.attrs["recipe"]
    told = (path / ".tokenflock" / "log.txt").read_text()
    assert told.count("is done") == 6 and "ends" in told


def test_workers_that_know_only_the_recipe_compute_the_same(tmp_path):
    wanted = SMALL.asked()
    told = order(wanted)
    for cells in ([(0, 1)], [(2, 0)]):
        there, here = compute(told, cells), Desk(wanted).run(cells)[0]
        for name in here:
            np.testing.assert_array_equal(there.values[name], here[name])


def test_what_is_there_is_not_computed_again_and_another_spec_is_refused(tmp_path, monkeypatch):
    path, ran = tmp_path / "a.zarr", []
    run = Desk.run
    monkeypatch.setattr(
        Desk, "run", lambda self, cells, *a: ran.append(cells) or run(self, cells, *a)
    )
    sweep(SMALL, path)
    assert len(ran) == 6
    sweep(SMALL, path)
    assert len(ran) == 6
    with pytest.raises(UserError, match="another run"):
        sweep(replace(SMALL, seed=1), path)
    chunk = path / "mean_cosine" / "c" / "1" / "1" / "0"
    data = bytearray(chunk.read_bytes())
    data[5] ^= 1
    chunk.write_bytes(bytes(data))
    assert check(path) == [3] and repair(path) == [3]
    assert status(path).done == 5
    same(sweep(SMALL, path), whole())
    assert ran[6:] == [[(1, 1)]]


def test_a_block_that_fails_three_times_is_noted_and_the_rest_goes_on(tmp_path, monkeypatch):
    path, tries, run = tmp_path / "a.zarr", [], Desk.run

    def broken(self, cells, *rest):
        if cells == [(1, 0)]:
            tries.append(1)
            raise ZeroDivisionError("no luck\nat all")
        return run(self, cells, *rest)

    monkeypatch.setattr(Desk, "run", broken)
    result = sweep(SMALL, path)
    now = status(path)
    assert len(tries) == 3 and now.failed == {2: "ZeroDivisionError: no luck at all"}
    assert now.done == 5 and result.done.values.tolist() == [[1, 1], [0, 1], [1, 1]]
    assert np.isnan(result.mean_cosine.values[1, 0]).all()
    same(result.drop_vars("done").isel(n=1), whole().isel(n=1))
    monkeypatch.setattr(Desk, "run", run)
    same(sweep(SMALL, path), whole())  # the same call tries it again
    assert status(path).failed == {}


def test_a_sweep_that_runs_can_be_watched_and_drawn(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.zarr", []

    def look(view):
        if view.done == 3 and not seen:
            now = status(path)
            seen.append((now.done, now.running, now.complete))
            seen.append(flock.load(path))

    sweep(replace(SMALL, over={"beta": [1.0, 2.0, 3.0, 4.0]}), path, watch=look)
    assert seen[0] == (3, True, False)
    assert seen[1].done.values.sum() == 3
    figure = flock.plots.phase_diagram(seen[1])
    assert figure is not None


def test_repeats_are_added_where_the_error_is_large_and_count_once(tmp_path):
    """Batches are further repeats of the same cells: all of them are the larger ensemble."""
    path = tmp_path / "r.zarr"
    spec = replace(
        SMALL, over={"beta": [1.0, 4.0]}, precision="float64"
    )  # programs of other shapes
    spec = replace(spec, refine=Refine(error=1e-9, most=3))  # may round float32 differently
    result = sweep(spec, path)
    assert result.repeats.values.tolist() == [18, 18]
    more = whole(replace(spec, repeats=18))
    np.testing.assert_allclose(result.mean_cosine, more.mean_cosine, rtol=1e-12)
    np.testing.assert_allclose(result.mean_cosine_error, more.mean_cosine_error, rtol=1e-9)
    few = sweep(replace(spec, refine=Refine(error=10.0, most=3)), tmp_path / "f.zarr")
    assert few.repeats.values.tolist() == [6, 6]


def test_grid_points_are_added_where_the_field_bends(tmp_path, monkeypatch):
    """Of a step on a line only the neighbours of the step are computed."""
    spec = replace(SMALL, over={"beta": np.arange(33.0)}, refine=Refine(bend=0.5, every=8))

    def step(self, cells, *rest):
        values = np.full((1, 3), float(cells[0][0] >= 19))
        return {"mean_cosine": values, "mean_cosine_error": 0 * values}, {"engine": "", "why": ""}

    monkeypatch.setattr(Desk, "run", step)
    result = sweep(spec, tmp_path / "r.zarr")
    assert np.flatnonzero(result.done).tolist() == [0, 8, 16, 18, 19, 20, 24, 32]
    filled = between(result, ["beta"])
    np.testing.assert_array_equal(filled.mean_cosine[:, -1], np.arange(33) >= 19)
    same(sweep(spec, tmp_path / "r.zarr"), result)  # nothing more to do
    square = replace(spec, over={"beta": np.arange(33.0), "dynamics.beta": [0.0]})
    with pytest.raises(UserError):
        square.asked({"beta": [1.0], "nothing": [1.0]})


def test_two_axes_bend_along_a_line(tmp_path, monkeypatch):
    spec = replace(
        SMALL, over={"beta": np.arange(17.0), "n": np.arange(2, 19)}, refine=Refine(bend=0.5)
    )

    def front(self, cells, *rest):
        values = np.full((1, 3), float(cells[0][0] > cells[0][1]))
        return {"mean_cosine": values, "mean_cosine_error": 0 * values}, {"engine": "", "why": ""}

    monkeypatch.setattr(Desk, "run", front)
    result = sweep(spec, tmp_path / "r.zarr")
    done = result.done.values
    near = np.abs(np.subtract.outer(np.arange(17), np.arange(17))) <= 1
    assert done[near].all() and done.sum() < 0.5 * done.size
    filled = between(result, ["beta", "n"]).mean_cosine.values[..., 0]
    assert np.isfinite(filled).all()


@pytest.mark.slow
def test_a_result_larger_than_the_memory_is_written_opened_and_drawn(tmp_path, monkeypatch):
    """Sixteen cells of 2 MB each pass through a memory that never holds four of them."""
    spec = replace(
        SMALL,
        over={"beta": np.linspace(0.5, 4, 16)},
        observe=[Histogram(bins=100)],
        keep=True,
        repeats=256,
        frames=21,
        t=2.0,
        cells=1,
    )
    size = 16 * 256 * 21 * 100 * 4
    path = tmp_path / "big.zarr"
    sweep(replace(spec, over={"beta": [1.0]}), tmp_path / "warm.zarr")  # compiles
    monkeypatch.setattr(filling, "free", lambda: size / 4)
    tracemalloc.start()
    large = sweep(spec, path)
    small = drawable(Store(path).look())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert large.nbytes >= size and peak < size / 2
    one = large.histogram.isel(beta=3).mean("repeat")
    np.testing.assert_allclose(one, small.histogram.isel(beta=3), atol=1e-6)
    assert lazily(Store(path).look()).sizes == large.sizes
    kept = whole(replace(spec, over={"beta": [float(spec.over["beta"][0])]}))
    np.testing.assert_allclose(small.histogram[0], kept.histogram[0], atol=1e-6)


def test_pooling_is_exact_and_skips_what_is_not_there():
    numbers = np.random.default_rng(0).normal(size=(4, 6, 5))
    means, errors = numbers.mean(1), numbers.std(1, ddof=1) / 6**0.5
    mean, error = pool(means, errors, 6)
    flat = numbers.reshape(24, 5)
    np.testing.assert_allclose(mean, flat.mean(0))
    np.testing.assert_allclose(error, flat.std(0, ddof=1) / 24**0.5)
    means[2:], errors[2:] = np.nan, np.nan
    np.testing.assert_allclose(pool(means, errors, 6)[0], flat[:12].mean(0))


def test_blocks_cover_the_grid_once():
    for shape, single, cells in [((3, 10, 4), (1, 0, 0), 20), ((7,), (0,), 3), ((), (), 5)]:
        cut = Cut(tuple("abc"[: len(shape)]), shape, rectangle(shape, single, cells))
        all_cells = [cell for block in range(len(cut)) for cell in cut.cells(block)]
        assert sorted(all_cells) == list(np.ndindex(*shape))
        assert cut.sizes().tolist() == [len(cut.cells(k)) for k in range(len(cut))]
        assert all(cut.block(cell) == k for k in range(len(cut)) for cell in cut.cells(k))


def test_costly_blocks_come_first():
    wanted = replace(SMALL, over={"n": [4, 64, 8], "beta": [1.0, 2.0]}).asked()
    work = costs(wanted, filling.cut(wanted, 2)).tolist()
    assert np.argsort(work).tolist() == [0, 2, 1] and work[0] * 90 < work[1]


def test_a_million_cells_are_planned_at_once():
    over = {"beta": np.linspace(0.1, 9, 1000), "n": np.arange(2, 1002)}
    told = forecast(replace(SMALL, over=over), calibrate=False)
    assert told.cells == 10**6 and told.blocks >= 1000
    line = forecast(replace(SMALL, over={"beta": np.linspace(0, 9, 10**6)}), calibrate=False)
    assert line.cells == 10**6 and line.blocks >= 64


def test_time_is_foreseen_as_a_beginning_and_equal_steps(monkeypatch):
    """A cell that takes 0.5 s and 0.01 s a step is told so, from two short trials of it."""
    clock = [0.0]

    class Trial:
        def __init__(self, wanted):
            self.steps = round(wanted.plan.when.t / 0.1)

        def run(self, cells):
            clock[0] += 0.5 + 0.01 * self.steps

    monkeypatch.setattr(planning, "Desk", Trial)
    monkeypatch.setattr(planning, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    one = replace(SMALL, over={"beta": [1.0]}, t=100.0)
    assert forecast(one).seconds == pytest.approx(0.5 + 0.01 * 1000)


def test_a_forecast_counts_cells_systems_and_bytes(tmp_path):
    told = forecast(SMALL)
    assert (told.cells, told.systems, told.blocks) == (6, 36, 6)
    assert told.bytes == 6 * 3 * 2 * 8 and told.seconds > 0
    sweep(SMALL, tmp_path / "a.zarr")
    held = Store(tmp_path / "a.zarr").look().arrays
    assert held["mean_cosine"].nbytes + held["mean_cosine_error"].nbytes == told.bytes


def test_crews_refuse_what_makes_no_sense():
    told = order(SMALL.asked())
    assert crew(told, 1, None) is None
    with pytest.raises(UserError, match="processes must be 1 or more"):
        crew(told, 0, None)
    with pytest.raises(UserError, match="left out with dask"):
        crew(told, 2, "tcp://127.0.0.1:1")
    assert Processes.__doc__


def test_a_long_log_loses_its_torn_line_and_no_other(tmp_path):
    lines = b"0123456789abcdef\n" * (LONGEST // 8)
    (tmp_path / "log").write_bytes(lines + b"torn")
    log = Log(tmp_path / "log")
    log.open()
    log.close()
    assert (tmp_path / "log").read_bytes() == lines
