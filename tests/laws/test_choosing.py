"""Which engine a job gets, how much of it runs at once, and what the engines are then told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from tokenflock.dynamics import Attention, MultiHead, Noisy, SelfAttention, Sinkhorn
from tokenflock.engines import batch, choose, lanes, memory, resident, sharing, tiled
from tokenflock.engines.job import Job
from tokenflock.engines.systems import Systems
from tokenflock.errors import UserError
from tokenflock.events import Consensus
from tokenflock.events.event import Event
from tokenflock.matrices import RandomMatrices
from tokenflock.observables import ConeMargin, MeanCosine, MinimumCosine, PairDensity
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Given, Uniform

N, D = 5, 3
TWO = (MeanCosine(), MinimumCosine())


def job(law=None, n=N, observe=TWO, dtype="float32", steps=(0, 2, 4, 10), paths=(), until=None):
    law = SelfAttention(beta=2.0) if law is None else law
    w, at = np.full(n, 1 / n), np.asarray(steps)
    return Job(law, RK4(h=0.1), tuple(observe), w, at, paths, dtype, True, until)


def systems(law=None, start=None, matrices=None, t=1.0, rotate=True):
    law = SelfAttention(beta=2.0) if law is None else law
    return Systems(law, start or Uniform(N, D), matrices, 7, "float32", t, rotate)


# --------------------------------------------------------------------------------------------------
# the fastest that does not refuse


def automatic(gpu, n=100, slower=None, near=None, **refusals):
    """(engine, why) where the named engines refuse in these words and the others do not."""
    known: dict[str, Any] = {
        name: lambda name=name: refusals.get(name) for name in ("resident", "tiled", "lanes")
    }
    fake = SimpleNamespace(nearby=lambda law: near, FEWEST=tiled.FEWEST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "_tiled", lambda: fake)
        return choose._automatic(known, job(), gpu, n, slower)


def test_a_cpu_takes_its_own_loop_then_its_tiles_then_batch():
    assert automatic(False) == ("lanes", "a compiled loop serves this law on a CPU")
    assert automatic(False, slower="s") == ("tiled", "no GPU, and s")
    assert automatic(False, lanes="l") == ("tiled", "no GPU, and l")
    assert automatic(False, lanes="l", slower="s") == ("tiled", "no GPU, and s")
    assert automatic(False, n=64, lanes="l")[0] == "tiled"
    assert automatic(False, n=63, lanes="l") == ("batch", "no GPU, and l")
    assert automatic(False, lanes="l", near="x") == ("batch", "no GPU, and l")
    assert automatic(False, lanes="l", tiled="t") == ("batch", "no GPU, and l")
    assert automatic(False, n=3, lanes="l", tiled="t") == ("batch", "no GPU, and l")


def test_a_gpu_takes_what_fits_on_chip_then_tiles_then_batch():
    assert automatic(True) == ("resident", "a GPU is there and a system fits on chip")
    assert automatic(True, resident="r") == ("tiled", "a GPU is there, and r")
    assert automatic(True, n=64, resident="r")[0] == "tiled"
    assert automatic(True, n=63, resident="r") == ("batch", "r")
    assert automatic(True, n=63, resident="r", tiled="t") == ("batch", "r")
    assert automatic(True, n=64, resident="r", tiled="t") == ("batch", "t")


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_the_choice_says_what_will_run(monkeypatch, backend):
    """On a GPU all at once, on a CPU in slots, no more of them than systems."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(choose, "on_device", lambda: 4e9)
    asked, wide = job(observe=(PairDensity(),)), systems(start=Uniform(N, 9))
    found = choose.choose("auto", asked, wide, 300, None)
    assert found.engine == ("lanes" if backend == "cpu" else "resident")
    assert found.rotated and found.chunk == 300
    told = found.run.args  # type: ignore[attr-defined]
    assert told == (found.engine, asked, wide, True, None if backend == "gpu" else choose.SLOTS)
    few = choose.choose("batch", asked, systems(rotate=False), 7, None)
    assert few.why == "asked for" and not few.rotated and few.chunk == 7
    assert few.run.args[-1] == (None if backend == "gpu" else 7)  # type: ignore[attr-defined]


def test_an_engine_that_refuses_is_not_taken():
    with pytest.raises(UserError, match="engine must be one of"):
        choose.choose("fast", job(), systems(), 1, None)
    for name, asked, words in (
        ("lanes", job(dtype="float64"), "engine 'lanes': the compiled loop works in float32; use"),
        ("tiled", job(Sinkhorn()), "engine 'tiled': the tiled engine weighs by exponentials"),
        ("resident", job(n=129), "engine 'resident': n = 129"),
    ):
        start = Uniform(129, D) if name == "resident" else Uniform(N, D)
        with pytest.raises(UserError, match=words):
            choose.choose(name, asked, systems(start=start), 1, None)


def test_matrices_of_a_run_are_refused_where_they_move_or_are_too_wide():
    """Those of one layer fit on chip up to d = 128; those that change in time never do."""
    law, moving = Attention(beta=2.0), RandomMatrices(period=0.5)
    asked = job(law)
    for d, matrices, words in (
        (D, moving, "do not change in time"),
        (200, RandomMatrices(), "matrices of side 200"),
    ):
        made = systems(law, Uniform(N, d), matrices)
        with pytest.raises(UserError, match=words):
            choose.choose("resident", asked, made, 1, 1e9)
    for name in ("resident", "tiled", "lanes"):
        made = systems(law, matrices=RandomMatrices())
        assert choose.choose(name, asked, made, 1, 1e9).engine == name
    assert choose.choose("resident", asked, systems(law, Uniform(N, 200)), 1, 1e9).chunk == 1


def test_a_job_is_judged_with_matrices_of_the_shape_that_comes():
    """(d, d) for one head, a stack of them for several, with one layer for each period."""
    plain = job(Attention(beta=2.0))
    assert choose._filled(plain, systems(plain.law)) is plain
    filled = choose._filled(plain, systems(plain.law, matrices=RandomMatrices())).law
    assert np.shape(filled.Q) == np.shape(filled.V) == (D, D)
    heads = MultiHead(V=np.stack([np.eye(D)] * 2))
    made = systems(heads, matrices=RandomMatrices(period=0.3), t=1.0)
    filled = choose._filled(job(heads), made).law
    assert np.shape(filled.Q.values) == np.shape(filled.V.values) == (4, 2, D, D)


# --------------------------------------------------------------------------------------------------
# memory


def chunk(name, asked, made, rotated=False, count=10**9, room=None, free=4e12):
    n, d = made.start.shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "on_device", lambda: free)
        return choose._chunk(name, asked, made, rotated, n, n if rotated else d, count, room)


HEADS = MultiHead(V=np.stack([np.eye(D)] * 2))
BYTES = {  # of one system: numbers of its drawing, matrices, work, tokens, results
    "batch": ("batch", job(), systems(), False, 4 * (45 + 6 * 25 + 4 * 15 + 2 * 4 * 2)),
    "double": ("batch", job(dtype="float64"), systems(), False, 8 * (45 + 150 + 60 + 16)),
    "lanes": ("lanes", job(), systems(), False, 4 * (45 + 60 + 16)),
    "tiled": ("tiled", job(), systems(), False, 4 * (45 + 2 * 5 * (18 + 64) + 60 + 16)),
    "heads": ("tiled", job(HEADS), systems(HEADS), False, 4 * (45 + 4 * 5 * 82 + 60 + 16)),
    "turned": ("lanes", job(), systems(start=Uniform(5, 12)), True, 4 * (75 + 100 + 16)),
    "given": ("lanes", job(), systems(start=Given(np.eye(5, 9))), True, 4 * (135 + 100 + 16)),
    "wide": ("lanes", job(), systems(start=Uniform(5, 12)), False, 4 * (180 + 240 + 16)),
    "matrices": (
        "lanes",
        job(HEADS),
        systems(HEADS, matrices=RandomMatrices(period=0.3)),
        False,
        4 * (45 + 4 * 2 * 9 * 4 + 60 + 16),
    ),
}


@pytest.mark.parametrize("case", BYTES)
def test_so_many_systems_run_at_once_as_the_memory_holds(case):
    *asked, each = BYTES[case]
    assert chunk(*asked, room=5.0 * each) == 5
    assert chunk(*asked, room=5.0 * each - 1) == 4
    assert chunk(*asked, room=1.0) == 1, "one system always runs"
    assert chunk(*asked, free=4.0 * 7 * each) == 7, (
        "a quarter of what is free where nothing is said"
    )
    assert chunk(*asked, free=4.0 * 7 * each - 1) == 6
    assert chunk(*asked, free=each, room=1.0) == 1
    with pytest.raises(UserError, match=r"one system needs .* take fewer tokens"):
        chunk(*asked, free=each - 1)


def test_a_call_is_short_enough_to_show_progress():
    asked = job(), systems()
    assert chunk("batch", *asked) == chunk("lanes", *asked) == choose.LARGEST // 16 == 8192
    assert chunk("resident", *asked) == choose.LARGEST
    assert chunk("resident", *asked, count=3) == chunk("tiled", *asked, count=3) == 3


def test_packets_are_smaller_where_systems_are_large():
    assert choose.packet(4, 3) == choose.PACKET == 256
    assert choose.packet(64, 32) == 2**19 // 2**11 == 256
    assert choose.packet(64, 40) == 204
    assert choose.packet(512, 32) == 32
    assert choose.packet(10**4, 10**3) == 8


def test_free_memory_is_the_least_of_machine_and_container(monkeypatch, tmp_path):
    lines = "MemTotal:  9999 kB\nMemAvailable:   3000 kB\nBuffers: 5 kB\n"
    table = tmp_path / "meminfo"
    table.write_text(lines)
    plain = open
    monkeypatch.setattr(memory, "open", lambda path, **how: plain(table, **how), raising=False)
    monkeypatch.setattr(memory, "Path", lambda path: tmp_path / "cgroup")
    assert memory.free() == 3000 * 1024
    (tmp_path / "cgroup" / "memory").mkdir(parents=True)
    for name, value in (("memory.max", "max"), ("memory.current", "7")):
        (tmp_path / "cgroup" / name).write_text(value)
    assert memory.free() == 3000 * 1024, "a container without a limit"
    (tmp_path / "cgroup" / "memory.max").write_text("5000000")
    assert memory.free() == 3000 * 1024
    (tmp_path / "cgroup" / "memory.max").write_text("2000000\n")
    assert memory.free() == 2000000 - 7
    for name, value in (("limit_in_bytes", "1500000"), ("usage_in_bytes", "1000")):
        (tmp_path / "cgroup" / "memory" / f"memory.{name}").write_text(value)
    assert memory.free() == 1500000 - 1000, "of an older kind"
    table.write_text("MemTotal: 1 kB\n")
    assert memory._machine() == 4e9, "where nothing is known"


def test_memory_of_a_device_is_what_its_limit_leaves(monkeypatch):
    monkeypatch.setattr(memory, "free", lambda: 123.0)
    for stats, left in (({"bytes_limit": 90, "bytes_in_use": 20}, 70), (None, 123), ({}, 123)):
        one = SimpleNamespace(memory_stats=lambda stats=stats: stats)
        monkeypatch.setattr(jax, "devices", lambda one=one: [one])
        assert memory.on_device() == left


def test_small_things_are_not_asked_for(monkeypatch):
    """A megabyte is there; from there on the machine is asked."""
    monkeypatch.setattr(memory, "free", lambda: 10.0)
    assert memory.LITTLE == 1024**2
    memory.require_memory(1024**2, "it", "")
    with pytest.raises(UserError, match=r"it needs 1.05 MB of memory, and 10 bytes are free; less"):
        memory.require_memory(1024**2 + 1, "it", "less")
    memory.require_memory(11.0, "it", "", there=11.0)
    with pytest.raises(UserError):
        memory.require_memory(12.0, "it", "", there=11.0)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1100, "1.1 kB"),
        (99_900, "99.9 kB"),
        (100_499, "100 kB"),
        (999_600, "1,000 kB"),
        (1e6, "1 MB"),
        (1.1e6, "1.1 MB"),
        (123.4e6, "123 MB"),
        (1e9, "1 GB"),
        (1.2e9, "1.2 GB"),
        (1234.5e9, "1,234 GB"),
    ],
)
def test_bytes_in_words(size, words):
    assert memory.in_words(size) == words


# --------------------------------------------------------------------------------------------------
# what the engines are told


class Drawn:
    """Systems whose tokens are their own numbers, and which remember what was asked."""

    def __init__(self, n=2, d=3, matrices=None):
        self.start, self.matrices = SimpleNamespace(shape=(n, d)), matrices
        self.asked = []

    def draw(self, ids, rotated):
        self.asked.append((len(ids), rotated))
        x = np.asarray(ids[:, 1], np.float32)[:, None, None] + np.zeros(self.start.shape)
        data = np.stack([np.zeros(len(ids)), ids[:, 1]], axis=1).astype(np.uint32)
        return x, jax.random.wrap_key_data(data)


def ids_of(count):
    return np.stack([np.zeros(count, int), np.arange(count)], axis=1)


def runs(monkeypatch, name, slots, count, tiles=None):
    """What an engine got, what the caller was told, and what came back."""
    got, said, drawn = {}, [], Drawn()

    def run(job, x, *rest, **options):
        got.update(x=np.asarray(x)[:, 0, 0], rest=rest, options=options)
        got["precision"] = jax.config.jax_default_matmul_precision
        values = {"it": np.asarray(x)[:, 0, 0] * 10}
        tell = next((one for one in rest if callable(one)), None)
        if tell is not None and slots is not None:
            tell(np.array([len(x) - 1]), values)
            tell(np.array([0, len(x) - 1]), values)
        return values

    for engine in (batch, lanes, sharing, resident):
        monkeypatch.setattr(engine, "run", run)
    monkeypatch.setattr(choose, "_tiles", lambda job, swept: job.dtype and swept and "tiles")
    swept = [np.arange(count) + 0.5]
    tell = lambda done, values: said.append((done.tolist(), sorted(values)))  # noqa: E731
    back = choose._run(name, job(), drawn, True, slots, ids_of(count), swept, tell)
    assert back["it"].tolist() == (10 * np.arange(count)).tolist()
    return got, said, drawn.asked


def test_fewer_systems_than_slots_are_filled_up_with_the_last(monkeypatch):
    monkeypatch.setattr(choose, "PACKET", 4)
    monkeypatch.setattr(choose, "FEWEST_DRAWN", 4)
    got, said, asked = runs(monkeypatch, "batch", 6, 3)
    assert got["x"].tolist() == [0, 1, 2, 2, 2, 2]
    keys, swept, slots, _, tiles = got["rest"]
    assert jax.random.key_data(keys)[:, 1].tolist() == [0, 1, 2, 2, 2, 2]
    assert swept[0].tolist() == [0.5, 1.5, 2.5, 2.5, 2.5, 2.5]
    assert slots == 6 and tiles is None and got["precision"] == "highest"
    assert said == [([0], ["it"])], "nobody hears of those that fill up"
    assert asked == [(4, True), (4, True)], "drawn in packets of one shape"
    got, said, asked = runs(monkeypatch, "batch", 6, 9)
    assert got["x"].tolist() == list(range(9)) and len(got["rest"][1][0]) == 9
    assert said == [([8], ["it"]), ([0, 8], ["it"])] and asked == [(4, True)] * 3
    assert runs(monkeypatch, "batch", 6, 6)[0]["x"].tolist() == list(range(6))


def test_a_gpu_draws_all_at_once_and_tells_at_the_end(monkeypatch):
    for name in ("batch", "tiled"):
        got, said, asked = runs(monkeypatch, name, None, 3)
        assert said == [([0, 1, 2], ["it"])] and asked == [(3, True)]
        _, swept, slots, _, tiles = got["rest"]
        assert slots is None and tiles == ("tiles" if name == "tiled" else None)
        assert swept[0].tolist() == [0.5, 1.5, 2.5]
        assert got["precision"] == choose.TENSOR_CORES
    got, said, _ = runs(monkeypatch, "resident", None, 3)
    assert said == [([0, 1, 2], ["it"])]
    assert got["rest"][0][0].tolist() == [0.5, 1.5, 2.5]


def test_a_cpu_shares_tiles_among_its_cores_and_interprets_the_kernel(monkeypatch):
    got, said, _ = runs(monkeypatch, "tiled", 6, 3)
    keys, swept, tiles, _ = got["rest"]
    assert tiles == "tiles" and len(keys) == 3 and len(got["x"]) == 3
    assert said == [([2], ["it"]), ([0, 2], ["it"])]
    got, said, asked = runs(monkeypatch, "lanes", 6, 3)
    swept, _ = got["rest"]
    assert swept[0].tolist() == [0.5, 1.5, 2.5] and said[-1] == ([0, 2], ["it"])
    got, said, asked = runs(monkeypatch, "resident", 6, 3)
    assert got["options"] == {"interpret": True} and asked == [(3, True)]
    assert said == [([0, 1, 2], ["it"])]


class Matrices(Drawn):
    """Systems with matrices (systems, layers, d, d) of their own: B[i] = i + 1 and one entry."""

    def __init__(self, period, value):
        super().__init__(matrices=RandomMatrices(period=period))
        self.B = np.zeros((3, 2, D, D)) + np.arange(1, 4)[:, None, None, None]
        self.B[:, :, 0, 1], self.B[:, 1] = 7.0, self.B[:, 1] + 10
        self.V = 2 * self.B if value else None

    def matrices_of(self, ids):
        assert len(ids) == 3
        return self.B, self.V


@pytest.mark.parametrize("period", [None, 0.5])
@pytest.mark.parametrize("value", [True, False])
def test_matrices_of_systems_are_numbers_that_differ(period, value):
    """Q = B^T, and V where it is drawn, of the only layer or of all of them; the law holds those of
    the first system.
    """
    made, asked = Matrices(period, value), job(Attention(beta=2.0), paths=((0, "beta"),))
    given = [np.arange(3.0)]
    found, swept = choose._with_matrices(asked, made, made.matrices, ids_of(3), given)
    tail = () if period is None else ("values",)
    paths = [(0, "Q", *tail), (0, "V", *tail)][: 1 + value]
    assert list(found.paths) == [(0, "beta"), *paths] and len(swept) == 2 + value
    Q = np.swapaxes(made.B, -1, -2)
    np.testing.assert_array_equal(swept[1], Q[:, 0] if period is None else Q)
    law = found.law
    held = (law.Q,) if period is None else (law.Q.values,)
    np.testing.assert_array_equal(held[0], Q[0, 0] if period is None else Q[0])
    if value:
        np.testing.assert_array_equal(swept[2], made.V[:, 0] if period is None else made.V)
        own = law.V if period is None else law.V.values
        np.testing.assert_array_equal(own, made.V[0, 0] if period is None else made.V[0])
    assert swept[0] is given[0] and found.w is asked.w


@pytest.mark.parametrize("slots", [None, 3])
def test_an_engine_gets_the_matrices_of_its_systems(monkeypatch, slots):
    got = []

    def run(job, x, keys, swept, *rest):
        got.append((job.paths, [type(one) for one in swept], len(swept[0])))
        return {}

    monkeypatch.setattr(batch, "run", run)
    made, asked = Matrices(None, False), job(Attention(beta=2.0))
    choose._run("batch", asked, made, False, slots, ids_of(3), [], lambda *told: None)
    ((paths, kinds, count),) = got
    assert paths == ((0, "Q"),) and count == 3
    assert [kind is np.ndarray for kind in kinds] == [slots is not None]


def test_double_precision_is_full_precision_on_a_gpu(monkeypatch):
    seen = []

    def run(job, x, *rest):
        seen.append(jax.config.jax_default_matmul_precision)
        return {}

    monkeypatch.setattr(batch, "run", run)
    for dtype in ("float64", "float32"):
        asked = job(dtype=dtype)
        choose._run("batch", asked, Drawn(), False, None, ids_of(2), [], lambda *told: None)
    assert seen == ["highest", choose.TENSOR_CORES]


def test_rounds_divide_the_steps_of_every_frame(monkeypatch):
    asked = job(paths=((0, "beta"),), steps=(0, 6, 10, 20))
    assert choose._tiles(asked, [np.ones(2)]) == (True, False, 1)
    assert choose._tiles(asked, [-np.ones(2)]) == (False, False, 1)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert choose._tiles(asked, [np.ones(2)]) == (True, False, 2)
    assert choose._tiles(job(steps=(0,)), []).round == 1


def test_tokens_are_turned_where_nothing_sees_directions():
    """Asked for, more dimensions than tokens, and a law, observables and event that are blind."""

    class Pole(Event):
        """Sees one direction."""

        def margin(self, dynamics, t, x, w):
            return x[0, 0]

    wide = Uniform(N, 9)
    assert systems(start=wide).rotates(job())
    assert systems(start=wide).rotates(job(until=Consensus()))
    assert not systems(start=wide).rotates(job(until=Pole()))
    assert not systems(start=wide).rotates(job(observe=(MeanCosine(), ConeMargin())))
    assert not systems(start=wide, rotate=False).rotates(job())
    assert not systems(start=Uniform(N, N)).rotates(job())
    assert systems(start=Uniform(N, N + 1)).rotates(job())
    assert not systems(Attention(V=np.diag([2.0, 1, 1, 1, 1, 1, 1, 1, 1])), wide).rotates(job())
    assert not systems(Noisy(SelfAttention()), wide).rotates(job())
    assert not systems(SelfAttention(), wide, RandomMatrices()).rotates(job())


# --------------------------------------------------------------------------------------------------
# sharing among cores


@pytest.mark.parametrize(
    ("count", "n", "d", "cores", "size"),
    [
        (10, 2, 3, 3, 4),
        (9, 2, 3, 3, 3),
        (7, 2, 3, 100, 1),
        (1000, 2, 3, 2, 64),
        (40, 64, 256, 1, 8),
        (7, 512, 512, 2, 1),
    ],
)
def test_cores_take_groups_that_fit_their_cache(monkeypatch, count, n, d, cores, size):
    """Shared evenly, at most 64 and half a megabyte at once; the last group is filled up."""
    x = np.broadcast_to(np.arange(count, dtype=np.float32)[:, None, None], (count, n, d))
    keys = jax.random.wrap_key_data(np.stack([np.arange(count)] * 2, axis=1).astype(np.uint32))
    seen, said = [], []

    def run(job, x, keys, swept, slots, finished, tiles):
        assert (slots, finished, tiles) == (None, None, "tiles") and job.dtype == "float32"
        seen.append(len(x))
        own = x[:, 0, 0]
        assert np.array_equal(jax.random.key_data(keys)[:, 1], own)
        assert np.array_equal(swept[0], own + 0.5)
        return {"one": own, "many": np.stack([own, 2 * own], axis=1)}

    monkeypatch.setattr(sharing.batch, "run", run)
    monkeypatch.setattr(sharing, "cores", lambda: cores)
    monkeypatch.setattr(lanes, "cores", lambda: 1)
    swept = [np.arange(count) + 0.5]
    tell = lambda done, values: said.append((done.tolist(), sorted(values)))  # noqa: E731
    found = sharing.run(job(), x, keys, swept, "tiles", tell)  # type: ignore[arg-type]
    assert set(seen) == {size} and len(seen) == -(-count // size)
    assert np.array_equal(found["one"], np.arange(count)) and found["one"].dtype == np.float32
    assert np.array_equal(found["many"], np.arange(count)[:, None] * [1, 2])
    assert [one for done, _ in said for one in done] == list(range(count))
    assert all(names == ["many", "one"] for _, names in said)


def test_where_tiles_run_on_a_cpu(monkeypatch):
    law = SelfAttention()
    assert tiled.nearby(law) is None
    monkeypatch.setattr(tiled, "find_spec", lambda name: None)
    assert "llvmlite" in str(tiled.nearby(law))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert tiled.nearby(law) == "there is another device"


def test_a_layer_map_is_chosen_as_any_other_solver():
    asked = Job(
        SelfAttention(), Layer(h=0.1), TWO, np.full(N, 0.2), np.arange(3), (), "float32", True
    )
    assert choose.choose("auto", asked, systems(), 4, 1e9).engine == "lanes"
