"""Films: what is read back from the file."""

import base64
import json
import os
import re
import struct
import zlib
from typing import get_args, get_type_hints

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

import tokenflock as flock
from tokenflock import plots
from tokenflock.dynamics import Burger, Noisy, Unnormalised
from tokenflock.plots import films
from tokenflock.plots._records import DISCS, Recorder
from tokenflock.plots._shot import Shot, ShotOptions, ViewName
from tokenflock.plots._stage import VIEWS, Stage
from tokenflock.plots._story import story
from tokenflock.plots._titles import law_title

# of the reader, imageio_ffmpeg.read_frames
pytestmark = [pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"), pytest.mark.slow]


def read(path):
    frames = imageio_ffmpeg.read_frames(str(path))
    head = next(frames)
    return head, [
        np.frombuffer(frame, np.uint8).reshape(*head["size"][::-1], 3) for frame in frames
    ]


def test_an_mp4_has_every_frame_at_the_size_and_speed_asked(circle_run, tmp_path):
    shares = []
    path = plots.film(
        circle_run, tmp_path / "run.mp4", fps=20, size=(321, 181), progress=shares.append
    )
    head, frames = read(path)
    assert (
        head["size"] == (322, 182)
        and head["fps"] == 20
        and head["codec"] == "h264"
        and "yuv420p" in head["pix_fmt"]
    )
    assert (
        len(frames) == 41 and shares[-1] == 1 and len(shares) == 41 and np.all(np.diff(shares) > 0)
    )
    assert np.abs(frames[0].astype(int) - frames[-1]).max() > 100  # the tokens have moved
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sphere_run", "high_run", "model", "layer_run"])
def test_every_kind_of_result_can_be_filmed(name, request, tmp_path):
    path = plots.film(
        request.getfixturevalue(name),
        tmp_path / "x.mp4",
        seconds=0.5,
        fps=12,
        size=(240, 320),
        theme="dark",
        spin=0 if name == "layer_run" else 40,
    )
    head, frames = read(path)
    assert len(frames) == 6 and head["size"] == (240, 320) and frames[0][0, 0].max() < 50


@pytest.mark.slow
def test_between_the_layers_of_a_model_tokens_go_on_straight_lines(model, tmp_path):
    few = model.isel(layer=[0, 20, 40]).assign_coords(word=("token", [*"a rose is a rose"]))
    options = {"fps": 10, "size": (240, 136), "between": 4}
    for view in ("plane", "sphere"):
        assert len(read(plots.film(few, tmp_path / f"{view}.mp4", view=view, **options))[1]) == 11
    moving = films._moving(few, 4, 30)
    np.testing.assert_allclose(moving.layer, np.arange(0, 41, 4))
    np.testing.assert_allclose(moving.x[2], 0.6 * few.x[0] + 0.4 * few.x[1])
    assert films._moving(few, None, 30).sizes["layer"] == 61  # one second a layer


def test_a_run_has_nothing_between_its_frames(circle_run, tmp_path):
    with pytest.raises(flock.UserError, match="between"):
        plots.film(circle_run, tmp_path / "run.mp4", between=3)


@pytest.mark.slow
def test_a_landscape_changes_the_film(sphere_run, tmp_path):
    options = {"seconds": 0.2, "fps": 10, "size": (240, 136)}
    plain = read(plots.film(sphere_run, tmp_path / "a.mp4", **options))[1]
    hills = read(plots.film(sphere_run, tmp_path / "b.mp4", landscape=True, **options))[1]
    assert np.abs(plain[-1].astype(int) - hills[-1]).mean() > 2


def test_a_gif_lasts_as_long_as_asked_and_loops(circle_run, tmp_path):
    path = plots.film(circle_run, tmp_path / "run.gif", fps=15, seconds=1.0, size=(240, 136))
    with Image.open(path) as gif:
        assert gif.size == (240, 136) and gif.n_frames == 15 and gif.info["loop"] == 0
        total = 0
        for number in range(gif.n_frames):
            gif.seek(number)
            total += gif.info["duration"]
        assert total == 1000
        found = {colour for _, colour in gif.convert("RGB").getcolors(100_000)}
    assert (255, 255, 255) in found


@pytest.mark.slow
def test_log_time_is_chosen_by_the_spacing_of_frames_and_can_be_set(circle_run, tmp_path):
    late = circle_run.isel(time=slice(1, None)).assign_coords(time=np.geomspace(0.01, 1000, 40))
    # with a frame at time zero, which has no place on the axis
    stretched = late.combine_first(circle_run.isel(time=[0]))
    stretched.attrs = circle_run.attrs

    def first(result, name, **options):
        return read(
            plots.film(result, tmp_path / name, seconds=0.1, fps=10, size=(320, 180), **options)
        )[1][0].astype(int)

    chosen, log, linear = (first(stretched, f"{k}.mp4", log_time=k) for k in (None, True, False))
    np.testing.assert_array_equal(chosen, log)
    assert np.abs(log - linear).max() > 100
    np.testing.assert_array_equal(
        first(circle_run, "a.mp4"), first(circle_run, "b.mp4", log_time=False)
    )


def test_making_an_mp4_runs_no_python_in_a_fork(circle_run, tmp_path):
    """JAX has threads, and warns on stderr when a process forks in Python."""
    forks = []
    os.register_at_fork(before=lambda: forks.append(1))
    plots.film(circle_run, tmp_path / "run.mp4", seconds=0.1, fps=10, size=(240, 136))
    assert forks == []


@pytest.mark.parametrize("suffix", ["mp4", "gif", "html"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_film_leaves_no_file(circle_run, tmp_path, suffix, error):
    def stop(share: float) -> None:
        if share > 0.4:
            raise error

    with pytest.raises(error):
        plots.film(circle_run, tmp_path / f"run.{suffix}", size=(240, 136), progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_film_keeps_the_film_that_was_there(circle_run, tmp_path):
    path = tmp_path / "run.mp4"
    path.write_bytes(b"old")

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plots.film(circle_run, path, size=(240, 136), progress=stop)
    assert path.read_bytes() == b"old"


ANGLES, BEYOND = ("spin", "azimuth", "elevation"), (1e308, -1e308, np.nan, np.inf)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "run.avi"}, r"path must be a \.mp4, \.gif or \.html"),
        ({"path": "nowhere/run.mp4"}, "mkdir -p"),
        ({"fps": 0}, "fps must be above 0"),
        ({"seconds": -1.0}, "seconds must be positive"),
        ({"size": (10, 10)}, "size must be at least 120"),
        ({"view": "sphere"}, "use circle"),
        ({"view": "torus"}, "view must be"),
        ({"theme": "sepia"}, "theme must be"),
        ({"tail": -1}, "tail must be"),
        *(({name: wrong}, f"{name} must be from") for name in ANGLES for wrong in BEYOND),
        ({"spin": 5.0}, "spin must be left out in a film of a circle"),
        ({"azimuth": 5.0}, "azimuth must be left out in a film of a circle"),
        ({"view": "plane", "landscape": True}, "landscape must be left out in a film of a plane"),
        ({"fps": 1e308}, "fps must be above 0 and at most"),
        ({"fps": np.nan}, "fps must be above 0 and at most"),
        ({"seconds": 1e308}, "seconds must be positive"),
        ({"between": -1}, "between must be from 0"),
        ({"size": (1e308, 720)}, "size must be 2 values, each a whole number"),
    ],
)
def test_mistakes_are_told_in_one_line(circle_run, tmp_path, options, words):
    options = {"path": "run.mp4", **options}
    with pytest.raises(flock.UserError, match=words):
        plots.film(circle_run, tmp_path / options.pop("path"), **options)
    assert list(tmp_path.iterdir()) == []


def test_the_keywords_of_a_film_are_the_fields_of_a_shot():
    assert get_type_hints(ShotOptions) == get_type_hints(Shot)
    assert {*VIEWS, "auto"} == set(get_args(ViewName))


def test_a_keyword_that_a_film_does_not_have_is_named(circle_run, tmp_path):
    with pytest.raises(flock.UserError, match="film has no option 'vieuw'; did you mean view"):
        plots.film(circle_run, tmp_path / "run.mp4", **{"vieuw": "circle"})


def test_more_pictures_between_layers_than_the_memory_holds_are_refused(model, tmp_path):
    with pytest.raises(flock.UserError, match="write fewer of them between layers"):
        plots.film(model, tmp_path / "model.mp4", between=10**12)
    assert not list(tmp_path.iterdir())


def tables(path):
    """The sets of colours of a GIF: of the whole file, then of each picture that has its own."""
    data = path.read_bytes()

    def table(at, flags):
        size = 3 * 2 ** ((flags & 7) + 1)
        return {data[k : k + 3] for k in range(at, at + size, 3)}, at + size

    def blocks(at):
        while data[at]:
            at += data[at] + 1
        return at + 1

    found, at = table(13, data[10])
    sets = [found]
    while data[at] != 0x3B:
        if data[at] == 0x21:
            at = blocks(at + 2)
            continue
        flags, at = data[at + 9], at + 10
        if flags & 0x80:
            found, at = table(at, flags)
            sets.append(found)
        at = blocks(at + 1)
    return sets


def test_all_pictures_of_a_gif_have_the_same_colours(sphere_run, tmp_path):
    """Else what stands still flickers."""
    path = plots.film(sphere_run, tmp_path / "run.gif", fps=10, seconds=1.0, size=(240, 136))
    first, *others = tables(path)
    assert len(first) > 50 and all(found == first for found in others)


def test_a_page_holds_every_picture_and_fetches_nothing(circle_run, tmp_path):
    path = plots.film(circle_run, tmp_path / "run.html", fps=10, seconds=6.0, size=(320, 180))
    page = path.read_text(encoding="utf-8")
    assert "://" not in page and not re.search(r"%[A-Z]+%", page)
    head = json.loads(re.search(r"HEAD = (\{.*?\}), BACKDROP", page)[1])
    assert len(head["order"]) == 60 and len(set(head["order"])) == 41 and head["fps"] == 10
    stream = zlib.decompress(base64.b64decode(re.search(r'RECORDS = "([^"]*)"', page)[1]))
    place, records = 0, 0
    while place < len(stream):
        place += 4 + int.from_bytes(stream[place : place + 4], "little")
        records += 1
    assert place == len(stream) and records == 41 * head["artists"]


def test_a_record_of_a_disc_says_where_it_is(standing):
    ax = plots.circle(standing(np.array([[1.0, 0], [0, 1]])))
    figure = ax.get_figure()
    figure.canvas.draw()
    size = figure.canvas.get_width_height()
    recorder = Recorder(size, figure.dpi)
    scatter = max(ax.collections, key=lambda one: one.get_zorder())
    record = recorder.record(scatter)
    kind, count = struct.unpack_from("<BH", record)
    places = np.frombuffer(record, "<i2", 2 * count, 5).reshape(-1, 2) / recorder.scale
    wanted = ax.transData.transform(scatter.get_offsets()) * [1, -1] + [0, size[1]]
    assert (kind, count) == (DISCS, 2)
    np.testing.assert_allclose(places, wanted, atol=1 / recorder.scale)


def test_between_the_layers_of_a_model_nothing_is_measured(model):
    """The strip has one dot a layer, and the marker waits on the last layer that was passed."""
    few = model.isel(layer=[0, 20, 40])
    run = story(films._moving(few, 4, 30))
    with plots.style("light") as theme:
        stage = Stage(run, story(few), theme, (320, 180), np.arange(11), Shot("sphere"))
    assert all(len(ax.lines[0].get_xdata()) == 3 for ax in stage.panels)
    stage.show(7)
    assert [dot.get_xdata()[0] for dot in stage.dots] == [20, 20]
    assert stage.clock.get_text() == "layer 20 → 40"


def test_a_film_says_what_colours_and_trails_mean(circle_run):
    run = story(circle_run)
    with plots.style("light") as theme:
        stage = Stage(run, run, theme, (320, 180), np.arange(41), Shot("circle", tail=4))
    said = {text.get_text() for text in stage.figure.texts}
    sizes = sorted(flock.merges(circle_run).largest.values[-1:] * 16)
    assert any(note.startswith("colours: the 2 clusters at $t$ = 15") for note in said)
    assert any(f"of {round(sizes[0])} and {16 - round(sizes[0])} tokens" in note for note in said)
    assert "trails, inwards: the last 1.5 units of time" in said
    assert any(r"$n$ = 16 on $\mathbb{S}^{1}$" in note for note in said)


def test_titles_tell_laws_of_one_name_apart():
    laws = [Burger(D=np.diag([1.0, 0.25, 1.0]), ascend=up) for up in (True, False)]
    laws += [Burger(D=np.eye(3)), Noisy(Unnormalised(beta=2.0), kappa=5.0), Unnormalised(beta=2.0)]
    titles = [law_title(law) for law in laws]
    assert len(set(titles)) == 5 and titles[1].endswith("$D$ = diag(1, 0.25, 1), downhill")
    assert r"$\kappa$ = 5" in titles[3]
