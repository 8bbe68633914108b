"""Files that people send each other are data: whatever they hold, nothing runs, and one line says
what is wrong.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import recipe
from tokenflock.dynamics import SelfAttention
from tokenflock.errors import SimulationError, UserError
from tokenflock.observables import Energy, MeanCosine
from tokenflock.verbs import hdf5_inspection as inspection

CANARY = "canary"
MARKUP = "<script>alert(1)</script>[bold]$\\frac{x_$[/b]\"'&\x1b[31m"


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path, monkeypatch):
    """Every test runs in an empty folder, in which nobody may leave a canary."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not (tmp_path / CANARY).exists(), "a file ran code"


def programs() -> list[object]:
    """Ways in which a recipe may try to have something run."""
    touch = ["touch", CANARY]
    calls = [
        {"type": "subprocess:Popen", "args": touch},
        {"type": "subprocess/Popen", "args": touch},
        {"type": "os:system", "command": f"touch {CANARY}"},
        {"type": "posix/system", "command": f"touch {CANARY}"},
        {"type": "builtins:exec", "source": f"open('{CANARY}', 'w')"},
        {"type": "builtins/eval", "source": f"open('{CANARY}', 'w')"},
        {"type": "tokenflock.recipe:import_module", "name": "antigravity"},
        {"type": "tokenflock.cli:main", "argv": ["tour"]},
        {"type": "tokenflock.verbs.save_load:save", "result": None, "path": CANARY},
        {"type": "tokenflock.files:whole", "path": CANARY},
        {"type": "tokenflock.meanfield.grids:Circle", "points": 8},
        {"type": "meanfield/Circle", "points": 8},
        {"type": "dynamics/Dynamics"},
        {"type": "tokenflock.dynamics.dynamics:MeanField"},
        {"type": "dynamics/../../os", "command": "x"},
        {"type": "dynamics/__class__"},
        {"type": "observables/__subclasses__"},
        {"type": "pathlib:Path.unlink", "self": "x"},
        {"type": "", "a": 1},
        {"type": None},
        {"type": ["os", "system"]},
        {"type": {"type": "dynamics/SelfAttention"}},
        {"type": "x" * 5000},
        {"enum": "os:system", "name": "x"},
        {"enum": "tokenflock.dynamics.unnormalised:Clock", "name": "__class__"},
        {"callable": "os.system"},
        {
            "type": "dynamics/SelfAttention",
            "own": {"module": "os", "source": f"open('{CANARY}', 'w')"},
        },
        {
            "type": "own/Thing",
            "own": {"module": "os", "source": f"import os; os.mkdir('{CANARY}')"},
        },
        {"type": "dynamics/SelfAttention", "own": 3},
    ]
    nested = [{"type": "dynamics/Noisy", "base": call, "kappa": 1.0} for call in calls]
    fields = [{"type": "dynamics/SelfAttention", "beta": call} for call in calls]
    return calls + nested + fields


def lies() -> list[object]:
    """Recipes of known members with values that they cannot have."""
    values = [
        None,
        "4",
        "nan",
        True,
        [],
        [1.0],
        {},
        {"a": 1},
        "x" * 10**5,
        -(10**400),
        [[1.0, "a"]],
        {"array": [1, 2], "shape": [10**9, 10**9], "dtype": "float64"},
        {"array": [1, 2], "shape": [3], "dtype": "float64"},
        {"array": [1, 2], "shape": [2], "dtype": "object"},
        {"array": [1, 2], "shape": [2], "dtype": "S10"},
        {"array": [1, 2], "shape": [-2], "dtype": "float64"},
        {"array": [1, 2], "shape": "2", "dtype": "float64"},
        {"array": "abc", "shape": [3], "dtype": "float64"},
        {"packed": "!!!", "shape": [3], "dtype": "float64"},
        {"packed": base64.b64encode(b"not zlib").decode(), "shape": [3], "dtype": "float64"},
        {"packed": bomb(), "shape": [4], "dtype": "float64"},
        {"packed": bomb(), "shape": [2**40], "dtype": "float64"},
        {"packed": 7, "shape": [4], "dtype": "float64"},
    ]
    members = [
        ("dynamics/SelfAttention", "beta"),
        ("dynamics/Attention", "V"),
        ("dynamics/Burger", "D"),
    ]
    wrong = [{"type": name, field: value} for name, field in members for value in values]
    strange = [
        {"type": "dynamics/SelfAttention", name: 1} for name in ("beto", "__class__", "", "t" * 999)
    ]
    return (
        wrong + strange + ["text", 3, ["list"], {"no": "type"}, {"type": "starts/Uniform", "n": 3}]
    )


def bomb() -> str:
    """A gigabyte of zeros in a megabyte."""
    packer = zlib.compressobj(9)
    parts = [packer.compress(bytes(2**20)) for _ in range(64)]
    return base64.b64encode(b"".join([*parts, packer.flush()])).decode()


def texts() -> list[object]:
    """Recipes that are no recipes."""
    return [
        "",
        "null",
        "[]",
        "3",
        '"text"',
        "{",
        "{]",
        "not JSON",
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"dynamics": ' + '{"type": "dynamics/Noisy", "base": ' * 900 + "1" + "}" * 901,
        '{"format": 99}',
        '{"format": "two"}',
        '{"format": null}',
        '{"format": -1, "dynamics": 3}',
        '{"dynamics": 1' + "0" * 5000 + "}",
        '{"verb": ["simulate"]}',
        '{"verb": "os.system"}',
        '{"verb": "simulate"}',
        '{"verb": "simulate", "dynamics": null, "start": null}',
        7,
        2.5,
        '{"over": [1, 2], "repeats": "many", "dynamics": {"type": "dynamics/SelfAttention"}}',
        np.arange(3),
        b"\xff\xfe",
    ]


def hostile() -> list[object]:
    as_law = [
        json.dumps({"verb": "simulate", "dynamics": value}) for value in [*programs(), *lies()]
    ]
    as_other = [
        json.dumps({"verb": "simulate", "dynamics": {"type": "dynamics/SelfAttention"}, key: value})
        for value in programs()[:12]
        for key in ("start", "solver", "observe", "until", "t", "times", "over", "goal", "D")
    ]
    return [*texts(), *as_law, *as_other]


HOSTILE = hostile()


def told(call) -> str:
    """What is said of a mistake; nothing where there is none."""
    try:
        call()
    except (UserError, SimulationError) as error:
        return str(error)
    return ""


def clear(message: str) -> bool:
    """Whether it is one line that a person can read."""
    return "\n" not in message and len(message) < 2000


def carrying(text: object) -> xr.Dataset:
    """Good tokens with a bad recipe."""
    random = np.random.default_rng(0)
    x = random.normal(size=(4, 5, 2))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    variables = {"x": (("time", "particle", "coord"), x), "w": ("particle", np.full(5, 0.2))}
    attrs = {"recipe": text, "title": MARKUP, "convention": MARKUP}
    return xr.Dataset(variables, {"time": np.arange(4.0)}, attrs)


def test_there_are_a_few_hundred():
    assert len(HOSTILE) > 250


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_recipe_never_runs_anything(text, capsys):
    """Tokens are measured, references told; what needs the recipe says what is wrong."""
    result = carrying(text)
    assert "mean_cosine" in flock.measure(result, MeanCosine())
    flock.cite(result)
    for verb in (lambda: flock.rerun(result), lambda: flock.measure(result, Energy())):
        assert clear(told(verb))
    assert "Traceback" not in capsys.readouterr().err


SAMPLE = [*texts()[:24:3], *map(json.dumps, [{"dynamics": call} for call in programs()[:9:2]])]


@pytest.mark.slow
@pytest.mark.parametrize("text", SAMPLE, ids=range(len(SAMPLE)))
def test_tokens_of_a_damaged_recipe_are_drawn(text, tmp_path):
    from tokenflock.cli import main

    carrying(text).to_netcdf(tmp_path / "bad.nc", engine="h5netcdf")
    for words in (["plot", "bad.nc", "--out", "bad.png"], ["cite", "bad.nc"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0
    assert (tmp_path / "bad.png").stat().st_size > 5000


def test_tokens_of_a_damaged_recipe_are_filmed(tmp_path):
    from tokenflock.cli import main

    carrying('{"dynamics": {"type": "os:system"}}').to_netcdf(
        tmp_path / "bad.nc", engine="h5netcdf"
    )
    with pytest.raises(SystemExit) as end:
        main(["film", "bad.nc", "--out", "bad.gif", "--seconds", "0.2", "--size", "320x240"])
    assert end.value.code == 0


# ---------------------------------------------------------------- files that are broken


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.nc"
    run = flock.simulate(SelfAttention(), np.eye(3), t=1.0, frames=3)
    return flock.save(run, path).read_bytes()


def test_a_truncated_file_is_told(good, tmp_path):
    for length in (0, 1, 7, 8, 100, len(good) // 2, len(good) - 1):
        (tmp_path / "cut.nc").write_bytes(good[:length])
        assert clear(told(lambda: flock.load(tmp_path / "cut.nc")))


def test_flipped_bits_are_data(good, tmp_path):
    """In a process of its own: the library below may not survive every file, but nothing runs."""
    code = (
        "import sys, numpy as np, tokenflock as flock\n"
        "from tokenflock.errors import UserError\n"
        "good = open(sys.argv[1], 'rb').read()\n"
        "random = np.random.default_rng(0)\n"
        "for _ in range(15):\n"
        "    bad = bytearray(good)\n"
        "    for at in random.integers(0, len(good), 3):\n"
        "        bad[at] ^= 1 << int(random.integers(8))\n"
        "    open('bad.nc', 'wb').write(bad)\n"
        "    try: flock.load('bad.nc')\n"
        "    except UserError as error: assert '\\n' not in str(error)\n"
        "print('survived')\n"
    )
    (tmp_path / "good.nc").write_bytes(good)
    done = subprocess.run(
        [sys.executable, "-c", code, "good.nc"], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "survived", done.stderr[-2000:]
    assert "Traceback" not in done.stderr  # of a library that closes what it never opened


@pytest.mark.parametrize("fate", ["while True: pass", "import os; os.abort()", "import none"])
def test_a_file_that_ends_the_library_below_is_told(fate, good, tmp_path, monkeypatch):
    """Some damaged files make HDF5 crash or never end; loading says so in one line. So it does
    where the inspection itself cannot run.
    """
    (tmp_path / "bad.nc").write_bytes(good)
    (tmp_path / "look.py").write_text(
        f"import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1)); {fate}"
        if "while" in fate
        else fate
    )
    monkeypatch.setattr(inspection, "PROGRAM", str(tmp_path / "look.py"))
    for _ in range(2):  # nor is it trusted the second time
        with pytest.raises(UserError, match=r"bad\.nc (is damaged|cannot be inspected)"):
            flock.load(tmp_path / "bad.nc")


def test_a_file_is_inspected_once_as_long_as_it_stays_the_same(good, tmp_path, monkeypatch):
    path = tmp_path / "sent.nc"
    path.write_bytes(good)
    run = flock.load(path)
    (tmp_path / "look.py").write_text("import os; os.abort()")
    monkeypatch.setattr(inspection, "PROGRAM", str(tmp_path / "look.py"))
    assert flock.load(path).equals(run)  # it was inspected before
    flock.save(run, path)
    assert flock.load(path).equals(run)  # it was written here
    path.write_bytes(good + b"\0")
    with pytest.raises(UserError, match="damaged"):
        flock.load(path)


def test_a_file_larger_than_the_memory_is_refused_before_it_is_read(tmp_path):
    with h5py.File(tmp_path / "huge.nc", "w") as file:
        file.create_dataset("x", (10**6, 10**6, 100), "f8", chunks=(1, 1, 100))
    with pytest.raises(UserError, match="memory"):
        flock.load(tmp_path / "huge.nc")


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"CDF\x01" + bytes(50), b"GIF89a"]
)
def test_other_files_are_told(content, tmp_path):
    (tmp_path / "other.nc").write_bytes(content)
    with pytest.raises(UserError, match=r"other\.nc"):
        flock.load(tmp_path / "other.nc")


def test_texts_for_tokens_are_refused(tmp_path):
    from tokenflock.cli import main

    words = xr.Dataset(
        {"x": (("time", "particle", "coord"), np.full((2, 3, 2), "a", dtype=object))}
    )
    words.to_netcdf(tmp_path / "words.nc", engine="h5netcdf")
    for command in (["plot", "words.nc"], ["film", "words.nc"]):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 2


# ---------------------------------------------------------------- checkpoints and reports


@pytest.fixture
def checkpoint(tmp_path):
    import shutil
    from pathlib import Path

    old = Path(__file__).parents[1] / "data" / "v0.1" / "gpt"
    return shutil.copytree(old, tmp_path / "gpt")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["shape"].update(width=10**9),
        lambda c: c["shape"].update(depth=10**9),
        lambda c: c["shape"].update(width="wide"),
        lambda c: c["shape"].update(width=-1),
        lambda c: c["shape"].update(rung="os.system"),
        lambda c: c["shape"].update(norm=["pre"]),
        lambda c: c["shape"].update(extra=1),
        lambda c: c.pop("shape"),
        lambda c: c.update(shape=None),
        lambda c: c.update(alphabet=None),
        lambda c: c.update(alphabet={"kind": "os:system"}),
        lambda c: c.update(schedule=[1]),
        lambda c: c["schedule"].update(steps=None),
        lambda c: c.update(text_sha256={"a": 1}),
    ],
)
def test_a_hostile_checkpoint_is_told(checkpoint, change):
    from tokenflock import gpt

    path = checkpoint / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    change(config)
    path.write_text(json.dumps(config), encoding="utf-8")
    assert clear(told(lambda: gpt.sample(checkpoint, "To be", 2)))


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"model_type": 3}'])
def test_a_checkpoint_without_a_config_is_told(checkpoint, text):
    from tokenflock import gpt

    (checkpoint / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError):
        gpt.sample(checkpoint, "To be", 2)


def test_broken_weights_are_told(checkpoint):
    from tokenflock import gpt

    path = checkpoint / "model.safetensors"
    good = path.read_bytes()
    random = np.random.default_rng(1)
    for length in (0, 7, 8, 100, len(good) - 5):
        path.write_bytes(good[:length])
        with pytest.raises(UserError):
            gpt.sample(checkpoint, "To be", 2)
    for _ in range(20):
        bad = bytearray(good)
        for at in random.integers(0, 2000, 4):
            bad[at] ^= 1 << int(random.integers(8))
        path.write_bytes(bad)
        assert clear(told(lambda: gpt.sample(checkpoint, "To be", 2)))


NOTES = [
    "",
    "[]",
    "null",
    "{}",
    "[" * 100_000,
    '{"mark": 3}',
    '{"mark": "MARK"}',
    '{"mark": "MARK", "claims": [{"id": 1}], "figures": 3, "films": null, "data": 4}',
    '{"mark": "MARK quick", "claims": [], "figures": ["../../secret"], "films": [], "data": "a.nc",'
    ' "scale": "quick", "seconds": 1.0, "device": "cpu", "setting": "", "item": "x"}',
    '{"mark": "MARK quick", "claims": [], "figures": [], "films": ["/etc/hosts"], "data": "../x",'
    ' "scale": "quick", "seconds": 1.0, "device": "cpu", "setting": "", "item": "x"}',
]


@pytest.mark.parametrize("text", NOTES, ids=range(len(NOTES)))
def test_a_hostile_report_folder_is_not_believed(text, tmp_path):
    """What a note says is read as data, and a path in it never leads out of the folder."""
    from tokenflock.reproduction.folder import Folder, source_mark
    from tokenflock.reproduction.item import find

    (tmp_path / "secret.png").write_bytes(b"\x89PNG" + b"secret" * 10)
    report = tmp_path / "a" / "report"
    note = report / "data" / "perspective" / "fig6.json"
    note.parent.mkdir(parents=True)
    note.write_text(text.replace("MARK", source_mark()), encoding="utf-8")
    folder = Folder(report)
    (item,) = find(["perspective/fig6"])
    assert folder.recall(item, "quick", None, True) is None
    folder.write([])
    page = (report / "index.html").read_text(encoding="utf-8")
    assert base64.b64encode(b"secret").decode()[:6] not in page


def test_markup_in_every_text_is_shown_as_text():
    from tokenflock.pages import html
    from tokenflock.reproduction.mathematics import mathml

    page = html.page(MARKUP, html.paragraphs(MARKUP))
    assert "<script>alert" not in page
    assert "<script" not in mathml(MARKUP)


def test_a_recipe_is_read_without_importing(tmp_path):
    """Reading names loads nothing but this library."""
    before = set(sys.modules)
    for call in programs():
        assert told(lambda: recipe.rebuild(call)) or "enum" in json.dumps(call)  # noqa: B023
    new = {name.split(".")[0] for name in set(sys.modules) - before}
    assert new <= {"tokenflock"} and not os.listdir(tmp_path)
