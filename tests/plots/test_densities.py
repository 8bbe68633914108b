"""Plots of measures: they draw what is in the data, and refuse what they cannot draw."""

import imageio_ffmpeg
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import LogNorm, to_rgba

import tokenflock as flock
from tokenflock import plots
from tokenflock.dynamics import SelfAttention
from tokenflock.meanfield import Mixture, Ripple, VonMises, evolve, grid, optimal_density
from tokenflock.plots._spread import spread
from tokenflock.plots.surfaces import _values as on_ball

# of the reader, imageio_ffmpeg.read_frames
pytestmark = [pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"), pytest.mark.slow]


@pytest.fixture(scope="module")
def around() -> xr.Dataset:
    return evolve(SelfAttention(4.0), Ripple(k=3, amplitude=0.5), t=1.0, frames=6, points=48)


@pytest.fixture(scope="module")
def along() -> xr.Dataset:
    start = Mixture([VonMises(2.0), VonMises(1.0, mean=np.pi)])
    return evolve(SelfAttention(4.0), start, t=1.0, frames=6, d=3, points=48)


@pytest.fixture(scope="module")
def flat() -> xr.Dataset:
    return optimal_density(np.diag([1.0, 1.2]), points=64)


def tilted(points: int = 16) -> xr.Dataset:
    """A density on S^2 that is linear in x: 1 + x_1 / 2 up to a factor."""
    found = optimal_density(np.eye(3), points=points, steps=1)
    return found.assign(density=(1 + 0.5 * found.nodes.isel(coord=0)) / (4 * np.pi))


def test_a_heat_map_shows_every_density_at_its_time_and_angle(around):
    ax = plots.density_over_time(around)
    (mesh,) = ax.collections
    shown = mesh.get_array().reshape(49, 6)
    np.testing.assert_allclose(shown[:-1], around.density.values.T)
    np.testing.assert_allclose(shown[-1], around.density.values[:, 0])  # 2 pi is 0
    assert ax.get_xlim() == (0, 1) and ax.get_ylim() == (0, 2 * np.pi)
    assert (
        ax.get_xlabel() == "time $t$"
        and "theta" in ax.get_ylabel()
        and "Self-attention" in ax.get_title(loc="left")
    )
    assert mesh.norm.vmax == pytest.approx(float(around.density.max()))
    assert any("density" in axes.get_ylabel() for axes in ax.child_axes)  # the colour bar


def test_a_heat_map_of_latitudes_ends_at_the_poles_and_a_steep_one_has_logarithmic_colours(along):
    ax = plots.density_over_time(along)
    assert ax.get_ylim() == (0, np.pi) and "axis" in ax.get_ylabel()
    steep = evolve(SelfAttention(4.0), VonMises(40.0), t=0.1, frames=3, points=96)
    (mesh,) = plots.density_over_time(steep).collections
    assert isinstance(mesh.norm, LogNorm) and mesh.norm.vmax == pytest.approx(100 * mesh.norm.vmin)
    assert not isinstance(plots.density_over_time(steep, log=False).collections[0].norm, LogNorm)


def test_a_radial_plot_stands_as_high_as_the_density(around, flat):
    ax = plots.radial(around, at=0.4)
    crest = max(
        (line for line in ax.lines if len(line.get_xdata()) == 49),
        key=lambda line: len(line.get_xdata()),
    )
    height = np.hypot(*crest.get_data())[:-1] - 1
    rho = around.density.values[2]
    np.testing.assert_allclose(height / height.max(), rho / rho.max(), atol=1e-12)
    assert any(f"{rho.max():.3f}" in text.get_text() for text in ax.texts)
    assert "$t$ = 0.4" in ax.get_title(loc="left")
    assert "least energy" in plots.radial(flat).get_title(
        loc="left"
    ) and "diag(1, 1.2)" in plots.radial(flat).get_title(loc="left")


def tokens(start, n: int, d: int) -> np.ndarray:
    """Quantiles of a measure on the circle or on S^2."""
    space = grid(d, 512)
    share = np.cumsum(start.on(space) * space.weights)
    angle = np.interp((np.arange(n) + 0.5) / n, share, space.coordinate)
    turn = 2.399963 * np.arange(n)
    if d == 2:
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.stack(
        [np.sin(angle) * np.cos(turn), np.sin(angle) * np.sin(turn), np.cos(angle)], axis=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_a_cloud_of_tokens_lies_under_its_density(d):
    law, start = SelfAttention(2.0), VonMises(1.0)
    run = flock.simulate(law, tokens(start, 300, d), t=0.5, frames=3)
    measure = evolve(law, start, t=0.5, frames=3, d=d, points=48)
    ax = plots.cloud(run, against=measure, bins=20)
    heights, borders, _ = ax.patches[-1].get_data()
    assert heights @ np.diff(borders) == pytest.approx(1)
    (line,) = ax.lines
    middle = (borders[1:] + borders[:-1]) / 2
    expected = np.interp(middle, *line.get_data())
    assert abs(heights - expected).max() < 0.12 * expected.max()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["300 tokens", "mean field"]
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > heights.max()


def test_a_surface_has_the_density_of_every_point():
    tale = spread(tilted(48))
    points = np.random.default_rng(0).normal(size=(200, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    np.testing.assert_allclose(
        on_ball(tale, 0, points), (1 + 0.5 * points[:, 0]) / (4 * np.pi), rtol=2e-3
    )


def test_the_brightest_side_of_a_surface_faces_the_camera_that_looks_at_it():
    def mean(azimuth):
        ax = plots.density_surface(tilted(), azimuth=azimuth, elevation=0)
        return ax.images[0].get_array()[..., 0].mean()

    assert mean(0) < mean(180)  # more density is darker on paper


def test_a_surface_of_latitudes_says_where_it_comes_from(along):
    ax = plots.density_surface(along, at=0.4)
    assert "$t$ = 0.4" in ax.get_title(loc="left")
    high = evolve(SelfAttention(4.0), VonMises(1.0), t=0.1, frames=2, d=8, points=48)
    assert "S^{7}" in plots.density_surface(high).get_title(loc="left")


@pytest.mark.parametrize("name", ["around", "along"])
def test_a_measure_can_be_filmed(name, request, tmp_path):
    path = plots.film(
        request.getfixturevalue(name),
        tmp_path / "x.mp4",
        fps=12,
        size=(320, 180),
        theme="dark",
        spin=40 if name == "along" else 0,
    )
    frames = imageio_ffmpeg.read_frames(str(path))
    head = next(frames)
    pictures = [np.frombuffer(frame, np.uint8).reshape(180, 320, 3).astype(int) for frame in frames]
    assert len(pictures) == 6 and head["size"] == (320, 180)
    assert abs(pictures[0] - pictures[-1]).max() > 100 and pictures[0][0, 0].max() < 50
    assert list(tmp_path.iterdir()) == [path]


def test_dark_pictures_are_dark_and_axes_are_used_where_given(around):
    with plots.style("dark") as theme:
        figure, (left, right) = plots.panels(1, 2)
        assert (
            plots.density_over_time(around, ax=left) is left
            and plots.radial(around, ax=right) is right
        )
    assert figure.get_facecolor() == to_rgba(theme.paper)


def test_what_cannot_be_drawn_is_refused_with_a_way_out(
    around, along, flat, circle_run, sphere_run, tmp_path
):
    for draw, result, words in [
        (plots.density_over_time, circle_run, "density"),
        (plots.density_over_time, flat, "evolve"),
        (plots.radial, along, "density_surface"),
        (plots.density_surface, around, "radial"),
        (plots.density_surface, {"density": 1}, "result must be an xarray Dataset"),
    ]:
        with pytest.raises(flock.UserError, match=words):
            draw(result)
    with pytest.raises(flock.UserError, match="within"):
        plots.radial(around, at=7.0)
    with pytest.raises(flock.UserError, match="d = 3"):
        plots.cloud(sphere_run, against=around)
    with pytest.raises(flock.UserError, match="at t = 15"):
        plots.cloud(circle_run, against=around)
    with pytest.raises(flock.UserError, match="view"):
        plots.film(around, tmp_path / "x.mp4", view="sphere")
    with pytest.raises(flock.UserError, match="evolve"):
        plots.film(flat, tmp_path / "x.mp4")
    with pytest.raises(flock.UserError, match="finite"):
        plots.radial(flat.assign(density=flat.density * np.nan))
