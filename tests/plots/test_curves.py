"""Plots against time, histograms, the overview, the look, and files."""

import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import plots
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import ClusterCount, Convention, Energy, Histogram


@pytest.mark.slow
def test_timeline_shows_what_is_measured(sphere_run):
    above, below = plots.timeline(sphere_run).axes
    true = flock.measure(sphere_run, [Energy(convention=Convention.STAIRCASE), ClusterCount()])
    np.testing.assert_allclose(above.lines[0].get_ydata(), true.energy)
    np.testing.assert_array_equal(below.lines[0].get_ydata(), true.cluster_count)
    assert (
        "energy" in above.get_ylabel()
        and below.get_ylabel() == "clusters"
        and below.get_xlabel() == "time $t$ (flow)"
    )


def test_timeline_marks_every_merge(sphere_run):
    merged = flock.merges(sphere_run)["time"].values
    for ax in plots.timeline(sphere_run).axes:
        ticks = next(one for one in ax.collections if one.get_label() == "merges")
        np.testing.assert_array_equal([segment[0, 0] for segment in ticks.get_segments()], merged)
    assert len(merged) > 3


def test_log_time_starts_at_the_first_positive_frame(circle_run):
    below = plots.timeline(circle_run, log_time=True).axes[1]
    assert below.get_xscale() == "log" and below.get_xlim()[0] == circle_run.time.values[1]


def test_an_energy_that_overflows_is_shown_by_its_logarithm(standing):
    run = standing(np.eye(3), SelfAttention(beta=-1000.0))
    assert "log energy" in plots.timeline(run).axes[0].get_ylabel()


def test_histogram_shows_the_shares_at_the_times_asked(sphere_run):
    ax = plots.histogram(sphere_run, at=[0.0, 6.0, 15.0], bins=20)
    words = " ".join(text.get_text() for text in ax.texts)
    assert (
        "$t$ = 0" in words
        and "$t$ = 6" in words
        and "$t$ = 15" in words
        and ax.get_xlabel().startswith("cosine")
    )
    share = flock.measure(sphere_run.isel(time=[-1]), Histogram(20)).histogram.values[0]
    last = ax.patches[-1].get_data()  # outline of the lowest ridge, at base 0
    np.testing.assert_allclose(last.values / last.values.max(), share / share.max())
    assert f"peak {100 * share.max():.2g} %" in words


def test_histogram_over_time_is_a_map_of_shares(sphere_run):
    ax = plots.histogram_over_time(sphere_run, bins=20)
    shown = ax.collections[0].get_array()
    true = flock.measure(sphere_run, Histogram(20)).histogram.values.T
    np.testing.assert_allclose(np.ma.filled(shown, 0), np.where(true < 1e-4, 0, true))
    assert ax.child_axes[0].get_ylabel() == "share of pairs"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["circle_run", "sphere_run", "high_run", "layer_run", "model"])
def test_overview_shows_four_moments_and_three_curves(name, request):
    figure = plots.overview(request.getfixturevalue(name))
    tokens = [ax for ax in figure.axes if not ax.axison]
    assert len(tokens) == 4 and len(figure.axes) == 7
    assert all(("layer" if name == "model" else "$t$ = ") in ax.get_title() for ax in tokens)
    assert ("principal axes" in figure.get_suptitle()) == (name == "high_run")


@pytest.mark.parametrize(
    "name", ["sphere", "histogram", "histogram_over_time", "timeline", "trajectories"]
)
def test_a_model_is_drawn_like_a_run(model, name):
    drawn = getattr(plots, name)(model)
    axes = drawn.axes if hasattr(drawn, "axes") and isinstance(drawn.axes, list) else [drawn]
    words = [ax.get_xlabel() for ax in axes] + [ax.get_title(loc="left") for ax in axes]
    words += [text.get_text() for ax in axes for text in ax.texts]
    assert any("layer" in word for word in words) and any("albert" in word for word in words)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_a_single_token_and_a_single_frame_can_be_drawn(d, standing, tmp_path):
    run = standing(np.eye(d)[:1])
    plots.save_figure(plots.overview(run), tmp_path / "one.png")
    plots.save_figure(plots.overview(run.isel(time=[0])), tmp_path / "frame.png")
    assert "no pairs" in " ".join(text.get_text() for text in plots.histogram(run).texts)


def test_many_runs_at_once_are_refused_with_the_remedy(circle_run):
    with pytest.raises(flock.UserError, match="isel"):
        plots.timeline(circle_run.expand_dims("repeat"))


def test_a_dark_figure_is_dark_and_no_setting_stays_changed(circle_run):
    before = dict(matplotlib.rcParams)
    with plots.style("dark") as theme:
        dark = plots.circle(circle_run).get_figure()
    light = plots.circle(circle_run).get_figure()
    assert matplotlib.colors.to_hex(dark.get_facecolor()) == theme.paper
    assert matplotlib.colors.to_hex(light.get_facecolor()) == "#ffffff"
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(flock.UserError, match="'light' or 'dark'"), plots.style("sepia"):
        pass


def test_a_plot_takes_the_theme_of_the_axes_it_is_given(circle_run):
    with plots.style("dark") as theme:
        home = plots.trajectories(circle_run).get_figure().add_subplot()
    plots.trajectories(circle_run, ax=home)
    colours = {matplotlib.colors.to_hex(row) for row in home.collections[0].get_colors()}
    assert colours <= set(theme.palette)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_palette_can_be_told_apart_in_grey(theme):
    with plots.style(theme) as look:
        grey = [
            np.dot(matplotlib.colors.to_rgb(colour), [0.299, 0.587, 0.114])
            for colour in look.palette[:3]
        ]
        paper = np.dot(matplotlib.colors.to_rgb(look.paper), [0.299, 0.587, 0.114])
    assert np.abs(np.subtract.outer(grey, grey))[np.triu_indices(3, 1)].min() > 0.08
    assert np.abs(np.array(grey) - paper).min() > 0.25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")]
)
def test_save_figure_writes_the_same_file_twice(circle_run, tmp_path, suffix, magic):
    one, two = (
        plots.save_figure(plots.trajectories(circle_run), tmp_path / f"{k}{suffix}") for k in "ab"
    )
    assert one.read_bytes().startswith(magic) and one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]
    if suffix == ".pdf":
        assert b"/Type3" not in one.read_bytes() and b"/FontFile2" in one.read_bytes()


def test_save_figure_says_what_to_write_instead(circle_run, tmp_path):
    ax = plots.trajectories(circle_run)
    with pytest.raises(flock.UserError, match=r"\.png, \.pdf or \.svg"):
        plots.save_figure(ax, tmp_path / "figure.bmp")
    with pytest.raises(flock.UserError, match="mkdir -p"):
        plots.save_figure(ax, tmp_path / "nowhere" / "figure.png")


@pytest.mark.slow
def test_plots_are_importable_without_matplotlib_and_never_hidden_by_their_files():
    code = (
        "import sys, tokenflock.plots as p; assert 'matplotlib' not in sys.modules; import"
        " tokenflock.plots.dashboard, tokenflock.plots.films; assert all(callable(getattr(p, name))"
        " for name in p.__all__); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SHOWN = """
import sys
from unittest.mock import MagicMock
from tokenflock import plots
{before}
with plots.style(shown=False):
    plots.panels()
plots.panels()
pyplot = sys.modules.get("matplotlib.pyplot")
print(len(pyplot.get_fignums()) if pyplot else "none")
"""
KERNEL = "sys.modules['IPython'] = MagicMock(version_info=(9, 0))"


@pytest.mark.parametrize(
    ("before", "figures"),
    [("", "none"), ("import matplotlib.pyplot", "1"), (KERNEL, "1")],
    ids=["script", "pyplot", "notebook"],
)
def test_pyplot_has_a_figure_exactly_where_a_cell_or_its_user_shows_it(before, figures):
    environment = os.environ | {"MPLBACKEND": "agg"}
    code = [sys.executable, "-c", SHOWN.format(before=before)]
    told = subprocess.run(code, check=True, capture_output=True, text=True, env=environment)
    assert told.stdout.strip() == figures
