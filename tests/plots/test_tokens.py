"""Pictures of tokens: circle, sphere, paths, attention."""

import numpy as np
import pytest

import tokenflock as flock
from tokenflock import plots
from tokenflock.dynamics import Causal, Kuramoto, SelfAttention
from tokenflock.errors import UserError
from tokenflock.meanfield import optimal_tokens
from tokenflock.observables import AttentionMatrix, ClusterCount, Convention, Energy
from tokenflock.plots._discs import colour_groups
from tokenflock.plots._landscape import potential
from tokenflock.plots._story import story
from tokenflock.plots.matrices import seriation
from tokenflock.plots.planes import PlaneView, apart
from tokenflock.plots.polyhedra import corners as polyhedron_corners
from tokenflock.plots.polyhedra import edges
from tokenflock.plots.spheres import along_arcs
from tokenflock.plots.styles import THEMES
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform


def discs_of(ax):
    return max(ax.collections, key=lambda one: one.get_zorder())


@pytest.mark.parametrize("at", [0.0, 3.0, 15.0])
def test_circle_draws_one_disc_a_cluster(circle_run, at):
    ax = plots.circle(circle_run, at=at)
    frame = circle_run.sel(time=[at], method="nearest")
    assert len(discs_of(ax).get_offsets()) == int(
        flock.measure(frame, ClusterCount(delta=1e-4)).cluster_count[0]
    )
    np.testing.assert_allclose(np.linalg.norm(discs_of(ax).get_offsets(), axis=1), 1)


def test_sphere_draws_one_disc_a_cluster_within_the_ball(sphere_run):
    ax = plots.sphere(sphere_run)
    last = sphere_run.isel(time=[-1])
    assert len(discs_of(ax).get_offsets()) == int(
        flock.measure(last, ClusterCount(delta=1e-4)).cluster_count[0]
    )
    assert np.linalg.norm(discs_of(ax).get_offsets(), axis=1).max() <= 1 + 1e-9


def test_one_frame_of_a_run_and_tokens_without_a_time_are_drawn_as_they_are(sphere_run, layer_run):
    last = plots.sphere(sphere_run.isel(time=-1))
    whole = plots.sphere(sphere_run, at=float(sphere_run.time[-1]))
    titles = [ax.get_title(loc="left") for ax in (last, whole)]
    assert titles[0] == titles[1] and "$t$ =" in titles[0]
    assert len(discs_of(last).get_offsets()) == len(discs_of(whole).get_offsets())
    assert "layer 40" in story(layer_run.isel(time=-1)).moment(0)
    poles = plots.sphere(optimal_tokens(np.diag([1.0, 0.0, 1.0]), n=20, steps=50))
    assert len(discs_of(poles).get_offsets()) == 2 and "$t$" not in poles.get_title(loc="left")


def test_a_plane_holds_the_axes_of_greatest_spread(sphere_run):
    """The spread of all frames in the plane is that of the two greatest singular values about the
    mean.
    """
    view = PlaneView(plots.plane(sphere_run), story(sphere_run), THEMES["light"], np.zeros(16, int))
    x = sphere_run.x.values.reshape(-1, 3)
    s = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
    assert (view.seen**2).sum() == pytest.approx(s[:2].sum())
    said = {text.get_text() for text in plots.plane(sphere_run).texts}
    assert said == {f"axis {k + 1}: {100 * s[k] / s.sum():.0f} % of the variance" for k in range(2)}


def test_words_that_would_overlap_stand_apart_and_far_ones_stay():
    places = np.array([[0.0, 0.0], [0.1, 0.0], [0.05, 0.1], [9.0, 9.0]])
    half = np.full((4, 2), 0.5)
    moved = apart(places, half)
    gap = np.abs(moved[:, None] - moved[None]).max(axis=-1)[np.triu_indices(4, 1)]
    assert gap.min() > 0.99 and np.abs(moved[3] - places[3]).max() < 1e-5


def test_words_of_a_model_are_written_each_in_a_colour(model):
    """Same word, same colour; blanks and dollars can be read."""
    words = [*"a rose is\na $ or"]
    ax = plots.plane(model.assign_coords(word=("token", words)))
    written = [text for text in ax.texts if "variance" not in text.get_text()]
    assert [text.get_text() for text in written] == [*"a␣rose␣is↵a␣", r"\$", *"␣or"]
    colour = {word: tuple(text.get_color()) for word, text in zip(words, written)}
    assert (
        all(tuple(text.get_color()) == colour[word] for word, text in zip(words, written))
        and colour["a"] != colour[" "]
    )
    seen = {text.get_text() for text in written if text.get_visible()}
    assert seen == {text.get_text() for text in written}  # a word that comes again may be one
    assert len(discs_of(plots.plane(model)).get_offsets()) > 0


def test_a_heavier_cluster_is_a_larger_disc(standing):
    run = standing(np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]]))
    found = discs_of(plots.circle(run))
    sizes = dict(zip(map(tuple, np.round(found.get_offsets())), found.get_sizes()))
    assert sizes[1, 0] > sizes[0, 1]


def test_a_chain_of_tokens_around_the_circle_is_not_one_disc(standing):
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    run = standing(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    assert len(discs_of(plots.circle(run)).get_offsets()) == 1000


def test_the_title_says_dynamics_beta_time_and_convention(circle_run, layer_run):
    title = plots.circle(circle_run, at=3.0).get_title(loc="left")
    assert "Self-attention" in title and r"$\beta$ = $4$" in title and "3 (flow)" in title
    assert "layer 20, $t$ = 2 (layer map)" in plots.circle(layer_run, at=2.0).get_title(loc="left")


def test_high_dimension_says_that_it_is_projected(high_run, sphere_run):
    assert "first 3 of 8 principal axes" in plots.sphere(high_run).get_title(loc="left")
    assert "principal" not in plots.sphere(sphere_run).get_title(loc="left")


def test_tails_reach_back_as_many_frames_as_asked(circle_run, sphere_run):
    for draw, run in ((plots.circle, circle_run), (plots.sphere, sphere_run)):
        tails = sorted(draw(run, tail=5).collections, key=lambda one: one.get_zorder())[-2]
        assert len(tails.get_segments()) == 5 * 16


@pytest.mark.slow
def test_a_token_behind_the_ball_is_fainter_and_smaller(standing):
    run = standing(np.array([[1.0, 0, 0], [-1, 0, 0]]))
    found = discs_of(plots.sphere(run, azimuth=0.0, elevation=0.0))  # sorted from far to near
    assert found.get_facecolor()[0, 3] < 0.5 and found.get_facecolor()[1, 3] == 1
    assert found.get_sizes()[0] < found.get_sizes()[1]


def test_the_camera_looks_from_its_azimuth_and_elevation(standing):
    run = standing(np.array([[0.0, 1, 0]]))
    np.testing.assert_allclose(
        discs_of(plots.sphere(run, azimuth=0.0, elevation=0.0)).get_offsets(), [[1, 0]], atol=1e-9
    )
    up = standing(np.array([[0.0, 0, 1]]))
    np.testing.assert_allclose(
        discs_of(plots.sphere(up, azimuth=30.0, elevation=0.0)).get_offsets(), [[0, 1]], atol=1e-9
    )


@pytest.mark.parametrize("beta", [-3.0, 0.0, 2.0, 1e4])
def test_the_potential_at_a_consensus_is_its_cosine(beta):
    q = np.random.default_rng(0).normal(size=(5, 3))
    x = np.tile([[0.0, 0, 1]], (4, 1))
    np.testing.assert_allclose(potential(q, x, np.full(4, 0.25), beta), q[:, 2], atol=2e-6)


def test_landscapes_are_drawn_and_refused_where_there_is_none(circle_run, sphere_run, model):
    assert any(
        patch.get_visible() and len(patch.get_xy()) > 300
        for patch in plots.circle(circle_run, landscape=True).patches
        if hasattr(patch, "get_xy")
    )
    figure = plots.sphere(sphere_run, landscape=True).get_figure()
    assert any("potential" in child.get_ylabel() for ax in figure.axes for child in ax.child_axes)
    with pytest.raises(flock.UserError, match="landscape=False"):
        plots.sphere(model, landscape=True)


def test_the_wrong_dimension_names_the_right_plot(circle_run, sphere_run):
    with pytest.raises(flock.UserError, match="circle needs d = 2, got d = 3; use sphere"):
        plots.circle(sphere_run)
    with pytest.raises(flock.UserError, match="sphere needs d >= 3, got d = 2; use circle"):
        plots.sphere(circle_run)
    with pytest.raises(flock.UserError, match=r"at must be within \[0, 15\]"):
        plots.circle(circle_run, at=99)


def test_tokens_of_weight_zero_are_not_drawn(circle_run):
    w = np.zeros(16)
    w[:3] = 1 / 3
    light = circle_run.assign(w=("particle", w))
    assert len(discs_of(plots.circle(light, at=0.0)).get_offsets()) == 3
    assert len(plots.trajectories(light).collections[0].get_segments()) == 3
    assert plots.attention(light).images[0].get_array().shape == (3, 3)


def test_trajectories_are_angles_without_jumps_coloured_by_final_cluster(circle_run):
    ax = plots.trajectories(circle_run)
    lines = ax.collections[0]
    values = np.array(lines.get_segments())[..., 1]
    assert values.shape == (16, 41) and np.abs(np.diff(values, axis=1)).max() < 0.5
    np.testing.assert_allclose(np.cos(np.pi * values.T), circle_run.x.values[..., 0], atol=1e-9)
    last = np.round(values[:, -1], 2)
    colours = [tuple(row) for row in lines.get_colors()]
    assert len(set(last)) == len(set(colours)) == len(set(zip(last, colours))) == 2
    assert r"\pi" in ax.get_ylabel() and "time" in ax.get_xlabel()


def test_a_run_that_ends_in_consensus_is_coloured_by_who_met_whom():
    two = np.repeat([[1.0, 0, 0], [0, 1, 0]], 3, axis=0)
    run = flock.simulate(SelfAttention(beta=1.0), two, t=20, frames=41, solver=RK4(h=0.1))
    np.testing.assert_array_equal(colour_groups(story(run)), [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(colour_groups(story(run), clusters_at=20.0), 0 * np.arange(6))


def test_attention_is_the_measured_matrix_with_clusters_as_blocks(sphere_run):
    drawn = plots.attention(sphere_run).images[0].get_array()
    last = sphere_run.isel(time=[-1])
    true = flock.measure(last, AttentionMatrix()).attention.values[0]
    order = seriation(last.x.values[0])
    assert sorted(order) == list(range(16))
    np.testing.assert_allclose(drawn, true[np.ix_(order, order)], rtol=1e-6)
    labels = flock.measure(last, ClusterCount()).cluster_count
    first = last.x.values[0][order]
    jumps = np.sum(np.sum(first[1:] * first[:-1], axis=1) < 0.999)
    assert jumps == int(labels[0]) - 1  # each cluster is one run of neighbours


def test_attention_keeps_an_order_that_matters(standing):
    run = standing(np.random.default_rng(0).normal(size=(6, 3)), Causal(beta=2.0))
    drawn = plots.attention(run).images[0].get_array()
    assert np.abs(np.triu(drawn, 1)).max() == 0


def test_attention_of_a_law_without_one_is_refused(model, standing):
    with pytest.raises(flock.UserError, match="no attention matrix"):
        plots.attention(standing(np.eye(2), Kuramoto()))
    with pytest.raises(flock.UserError, match="variable `attention`"):
        plots.attention(model)
    shares = np.full((41, 16, 16), 1 / 16)
    ax = plots.attention(model.assign(attention=(("layer", "token", "other"), shares)), at=3)
    assert "layer 3" in ax.get_title(loc="left")


def test_directions_are_drawn_where_tokens_have_lengths(standing):
    run = standing(np.eye(2))
    long = run.assign(x=7 * run.x)
    np.testing.assert_allclose(
        discs_of(plots.circle(long)).get_offsets(), discs_of(plots.circle(run)).get_offsets()
    )


def test_a_trail_stays_on_the_sphere():
    """Between two frames far apart it follows the great circle through them."""
    path = np.array([[[1.0, 0, 0]], [[0, 1.0, 0]]])
    way = along_arcs(path)
    np.testing.assert_allclose(np.linalg.norm(way, axis=-1), 1)
    angle = np.arctan2(way[:, 0, 1], way[:, 0, 0])
    np.testing.assert_allclose(np.diff(angle), np.pi / 2 / (len(way) - 1))
    assert len(way) > 10 and np.all(way[..., 2] == 0)


def test_paced_frames_show_a_late_merge_as_it_happens(standing):
    """A token that waits for long and then moves for one unit of time gets pictures of both."""
    times = np.arange(0, 1001.0)
    angle = np.where(times < 900, 0.0, np.minimum((times - 900) / 20, 1))
    x = np.stack([np.cos(angle), np.sin(angle)], axis=-1)[:, None]
    run = standing(x[0]).drop_vars(["x", "time"], errors="ignore")
    run = run.assign_coords(time=times).assign(x=(("time", "particle", "coord"), x))
    kept = plots.paced(run, 40, waiting=0.5).time.values
    moving = (kept > 899) & (kept <= 920)
    assert kept[0] == 0 and kept[-1] == 1000 and 15 <= moving.sum() <= 25
    assert np.all(np.diff(kept) > 0) and (kept <= 30).sum() >= 7


@pytest.mark.parametrize(
    ("corners", "count"),
    [
        (np.vstack([np.eye(3), -np.eye(3)]), 12),
        (np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3), 6),
        (np.array([[np.cos(a), np.sin(a)] for a in 2 * np.pi * np.arange(5) / 5]), 5),
    ],
)
def test_a_polyhedron_has_its_inner_products_and_edges(corners, count):
    x = polyhedron_corners(corners @ corners.T, corners.shape[1])
    np.testing.assert_allclose(x @ x.T, corners @ corners.T, atol=1e-9)
    np.testing.assert_allclose(x[0, -1], 1, atol=1e-9)  # the first stands upright
    assert len(edges(x)) == count


def test_plots_show_the_tokens_that_a_result_has_now():
    """An observable that was measured before tokens were selected is measured again."""
    law, start = SelfAttention(beta=4.0), Uniform(n=8, d=3)
    observe = [ClusterCount(), Energy(convention=Convention.STAIRCASE)]
    run = flock.simulate(law, start, t=6, frames=13, observe=observe, seed=0)
    part = run.isel(particle=[0, 1, 2])
    above, below = plots.timeline(part).axes
    x = part.x.values
    energy = np.exp(4.0 * (np.einsum("tid,tjd->tij", x, x) - 1)).mean(axis=(1, 2))
    np.testing.assert_allclose(above.lines[0].get_ydata(), energy)
    counts = flock.measure(part[["x"]], ClusterCount()).cluster_count
    np.testing.assert_array_equal(below.lines[0].get_ydata(), counts)
    assert counts.max() == 3
    told = story(run).measured(ClusterCount())
    assert told.identical(run.cluster_count)  # of the same tokens it is taken as it is


def test_one_frame_of_a_measured_run_is_drawn():
    law = SelfAttention(beta=4.0)
    run = flock.simulate(law, Uniform(n=8, d=3), t=6, frames=3, observe=[ClusterCount(), Energy()])
    for draw in (plots.histogram, plots.timeline, plots.overview):
        assert draw(run.isel(time=1)) is not None


def test_frames_out_of_order_are_refused_with_the_remedy(sphere_run):
    for draw in (plots.timeline, plots.histogram, plots.overview, plots.trajectories):
        with pytest.raises(UserError, match=r"time must be increasing.*sortby\('time'\)"):
            draw(sphere_run.isel(time=[3, 0, 5]))
