"""Plots of ensembles: heat maps, grids of them, and curves with bands."""

import matplotlib
import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import plots
from tokenflock.plots._time_axis import geometric


def drawn(ax):
    """The mesh of a heat map, its borders in time and in the parameter."""
    mesh = ax.collections[0]
    corners = mesh.get_coordinates()
    return mesh, corners[0, :, 0], corners[:, 0, 1]


def test_a_phase_diagram_shows_every_mean_in_the_cell_of_its_beta_and_time(phases):
    ax = plots.phase_diagram(phases)
    mesh, times, betas = drawn(ax)
    np.testing.assert_array_equal(mesh.get_array(), phases.pair_density)
    for k, beta in enumerate(phases.beta.values):
        assert betas[k] < beta < betas[k + 1]
    for k, time in enumerate(phases.time.values):
        assert times[k] <= time <= times[k + 1]
    np.testing.assert_allclose(betas, [0.25, 0.75, 1.5, 2.75, 4.25, 5.75])
    assert ax.get_xlim() == (0, 12) and ax.get_ylim() == (0.25, 5.75)


def test_times_that_are_not_uniform_have_their_own_cells(table):
    _, times, _ = drawn(plots.phase_diagram(table([1, 2, 3], [0, 0.1, 0.3, 0.4])))
    np.testing.assert_allclose(times, [0, 0.05, 0.2, 0.35, 0.4])


def test_the_words_say_what_ran(phases):
    ax = plots.phase_diagram(phases)
    assert ax.get_title(loc="left") == "Self-attention, $n$ = 8, $d$ = 8, 6 repeats (layer map)"
    assert (
        ax.get_xlabel() == "time $t$"
        and "beta" in ax.get_ylabel()
        and ax.child_axes[0].get_ylabel() == "pair density"
    )
    bare = plots.phase_diagram(phases, title=False)
    assert bare.get_title(loc="left") == "" and bare.get_xlabel() == "time $t$ (layer map)"


def test_the_pair_density_has_one_scale_and_others_their_own(table):
    assert drawn(plots.phase_diagram(table([1, 2], [0, 1])))[0].get_clim() == (0, 1)
    mesh = drawn(plots.phase_diagram(table([1, 2], [0, 1], observable="order_parameter")))[0]
    np.testing.assert_allclose(mesh.get_clim(), (0.1, 0.6))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_scale_of_heat_maps_is_even_in_grey(theme):
    with plots.style(theme) as look:
        grey = look.sequential(np.linspace(0, 1, 11))[:, :3] @ [0.299, 0.587, 0.114]
    steps = np.diff(grey) * np.sign(grey[-1] - grey[0])
    assert steps.min() > 0.02 and steps.max() < 0.2


def test_the_predicted_transition_is_drawn_named_and_told_from_every_background(phases):
    ax = plots.phase_diagram(phases)
    (line,) = ax.lines
    x, y = line.get_data()
    front = phases.transition.values
    inside = (front >= 0.25) & (front <= 5.75)
    assert inside.sum() > 3
    onset = phases.transition.attrs["onset"]
    np.testing.assert_array_equal(x, np.sort([*phases.time.values, onset]))
    drawn = dict(zip(x, y))
    assert [drawn[t] for t in phases.time.values[inside]] == list(front[inside])
    assert drawn[onset] == 0  # it begins at beta = 0, between two frames
    assert (
        line.get_label() == r"theory, $d\to\infty$: layer map, $n$ = 8"
        and ax.get_legend().get_texts()[0].get_text() == line.get_label()
    )
    assert any("Stroke" in type(effect).__name__ for effect in line.get_path_effects())
    assert not plots.phase_diagram(phases, curve=False).lines


def test_a_transition_outside_the_picture_is_neither_drawn_nor_named(phases):
    far = phases.assign(transition=phases.transition.copy(data=np.full(phases.sizes["time"], 40.0)))
    for result in (far, phases.assign(transition=far.transition * np.nan)):
        ax = plots.phase_diagram(result)
        assert not ax.lines and ax.get_legend() is None


def test_the_transition_of_beta_is_not_drawn_against_another_parameter(table):
    result = table([1, 2, 3], [0, 1, 2], name="n").assign(transition=("time", [1.0, 2.0, 3.0]))
    assert not plots.phase_diagram(result).lines


def test_the_name_of_the_curve_keeps_clear_of_it(table):
    result = table([1, 2, 3], np.linspace(0, 10, 50)).assign(
        transition=("time", np.linspace(0.5, 30, 50))
    )
    ax = plots.phase_diagram(result)
    figure = ax.get_figure()
    figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    points = ax.transData.transform(ax.lines[0].get_xydata())
    assert not any(box.contains(*point) for point in points)


def test_values_in_any_order_are_drawn_in_order(table):
    result = table([1.0, 2.0, 4.5], [0, 1, 2])
    mixed = result.isel(beta=[2, 0, 1])
    np.testing.assert_array_equal(
        drawn(plots.phase_diagram(mixed))[0].get_array(), result.pair_density
    )


def test_a_geometric_parameter_has_a_logarithmic_axis_with_plain_numbers(table):
    ax = plots.phase_diagram(table([4, 8, 16, 32], [0, 1, 2], name="n"))
    np.testing.assert_allclose(drawn(ax)[2], np.array([4, 8, 16, 32, 64]) / 2**0.5)
    ax.get_figure().canvas.draw()
    assert ax.get_yscale() == "log" and [text.get_text() for text in ax.get_yticklabels()] == [
        "4",
        "8",
        "16",
        "32",
    ]
    assert ax.get_title(loc="left") == r"Self-attention, $\beta$ = 1, $d$ = 3, 16 repeats (flow)"


@pytest.mark.parametrize("values", [[0, 1, 2, 4, 8], [-1, 0, 1], [1, 2, 3, 4, 5, 6, 7, 8, 9]])
def test_other_parameters_have_a_linear_axis(table, values):
    ax = plots.phase_diagram(table(values, [0, 1, 2]))
    assert ax.get_yscale() == "linear" and np.all(np.diff(drawn(ax)[2]) > 0)


def test_a_selected_value_is_told_in_the_title(table):
    over_both = xr.concat([table([1, 2], [0, 1, 2]) for _ in range(2)], "d").assign_coords(d=[5, 6])
    over_both.attrs["recipe"] = over_both.attrs["recipe"].replace(
        '"over": {', '"over": {"d": [5, 6], '
    )
    assert "$d$ = 6," in plots.phase_diagram(over_both.sel(d=6)).get_title(loc="left")
    assert "$d$" not in plots.phase_diagram(over_both.isel(d=0, drop=True)).get_title(loc="left")


def test_times_in_equal_ratios_have_a_logarithmic_axis(table):
    result = table([1, 2, 3], [0, *np.geomspace(0.01, 1000, 40)])
    for make in (plots.phase_diagram, plots.curves):
        assert (
            make(result).get_xscale() == "log"
            and make(result, log_time=False).get_xscale() == "linear"
        )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.geomspace(0.05, 1e4, 100), True),
        (np.array([0, *np.geomspace(0.05, 1e4, 100)]), True),
        (
            np.unique(np.geomspace(0.1, 2000, 80).round(1)),
            True,
        ),  # as kept by a solver with a step of 0.1
        (np.geomspace(0.1, 90, 100), False),
        (np.linspace(0, 30, 200), False),
        (np.linspace(0.001, 3000, 200), False),
        (np.array([0.0, 1.0]), False),
        (np.array([2.0]), False),
    ],
)
def test_which_times_ask_for_a_logarithmic_axis(values, expected):
    assert geometric(values) is expected


def test_a_grid_has_one_scale_and_titles_that_tell_panels_apart(table):
    results = [table([1, 2, 3], [0, 1, 2], d=d) for d in (2, 8, 32, 64)]
    figure = plots.phase_grid(results)
    *panels, bar = figure.axes
    assert [ax.get_title(loc="left") for ax in panels] == [f"$d$ = {d}" for d in (2, 8, 32, 64)]
    assert (
        figure.get_suptitle() == r"Self-attention, $n$ = 8, 16 repeats"
        and bar.get_ylabel() == "pair density"
    )
    assert [bool(ax.get_ylabel()) for ax in panels] == [
        True,
        False,
        True,
        False,
    ]  # two rows of two, not three and one
    other = [one.rename(pair_density="rate") * scale for one, scale in zip(results, (1, 2, 3, 4))]
    assert (
        len(
            {drawn(ax)[0].get_clim() for ax in plots.phase_grid(other, observable="rate").axes[:-1]}
        )
        == 1
    )


def test_a_grid_names_its_curves_once(phases):
    figure = plots.phase_grid([phases, phases])
    assert [text.get_text() for key in figure.legends for text in key.get_texts()] == [
        r"theory, $d\to\infty$: layer map, $n$ = 8"
    ]
    assert all(len(ax.lines) == 1 and ax.get_legend() is None for ax in figure.axes[:2])


def test_curves_show_means_with_two_standard_errors(phases):
    ax = plots.curves(phases)
    for k, (line, band) in enumerate(zip(ax.lines, ax.collections, strict=True)):
        np.testing.assert_array_equal(line.get_ydata(), phases.pair_density[k])
        height = np.ptp(
            [
                point[1]
                for point in band.get_paths()[0].vertices
                if point[0] == phases.time.values[12]
            ]
        )
        np.testing.assert_allclose(height, 4 * phases.pair_density_error[k, 12], atol=1e-12)
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1] == r"$\beta$ = 0.5"
    assert len({matplotlib.colors.to_hex(line.get_color()) for line in ax.lines}) == 5


def test_many_curves_have_a_colour_bar_and_single_repeats_no_bands(table):
    result = table(np.linspace(1, 9, 20), [0, 1, 2])
    ax = plots.curves(result)
    assert ax.get_legend() is None and "beta" in ax.child_axes[0].get_ylabel()
    alone = result.assign(pair_density_error=result.pair_density_error * np.nan)
    assert len(plots.curves(alone).collections) == 0


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_of_ensembles_can_be_saved_in_both_themes_and_for_the_least_of_data(
    table, phases, theme, tmp_path
):
    with plots.style(theme):
        for k, result in enumerate((phases, table([2.0], [0, 1]), table([1, 2], [3.0]))):
            plots.save_figure(plots.phase_diagram(result), tmp_path / f"{k}.png")
            plots.save_figure(plots.curves(result), tmp_path / f"{k}.svg")
        plots.save_figure(plots.phase_grid([phases] * 3, columns=1), tmp_path / "grid.pdf")
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["0.png", "0.svg", "1.png", "1.svg", "2.png", "2.svg", "grid.pdf"]
    assert all(path.stat().st_size > 1000 for path in tmp_path.iterdir())


def test_mistakes_are_told_with_the_remedy(table, circle_run):
    result = table([1, 2], [0, 1, 2])
    with pytest.raises(flock.UserError, match="one of pair_density"):
        plots.phase_diagram(result, observable="pair_densty")
    with pytest.raises(flock.UserError, match=r"isel\(d=0\)"):
        plots.phase_diagram(result.expand_dims(d=[2, 3], axis=1))
    with pytest.raises(flock.UserError, match="keep=True"):
        plots.curves(result.expand_dims(repeat=3, axis=1))
    with pytest.raises(flock.UserError, match="over="):
        plots.phase_diagram(result.isel(beta=0))
    with pytest.raises(flock.UserError, match="of axes"):
        plots.phase_diagram(circle_run)
    with pytest.raises(flock.UserError, match="one observable over one parameter"):
        plots.phase_grid([result, table([1, 2], [0, 1], name="n")])
    with pytest.raises(flock.UserError, match="at least one"):
        plots.phase_grid([])


# --------------------------------------------------------------------------------------------------
# survival curves


def waiting(levels=(1.0, 2.0), name="beta"):
    """What an ensemble with an event tells: exponential times at two rates."""
    times = np.array([0.0, 1.0, 2.0, 4.0])
    share = np.exp(-np.outer(np.asarray(levels), times))
    error = np.full(share.shape, 0.05)
    variables = {"survival": ((name, "time"), share), "survival_error": ((name, "time"), error)}
    coords = {name: list(levels), "time": ("time", times, {"long_name": "time"})}
    return xr.Dataset(variables, coords, {"convention": "flow"})


@pytest.mark.parametrize("log", [False, True])
def test_survival_shows_the_share_that_is_left_with_two_errors_either_way(log):
    result = waiting()
    ax = plots.survival(result, log=log)
    lines = [line for line in ax.lines if len(line.get_xdata()) == 4]
    assert [line.get_label() for line in lines] == [r"$\beta$ = 1", r"$\beta$ = 2"]
    for line, share in zip(lines, result.survival.values):
        np.testing.assert_allclose(line.get_ydata(), share)
    low, high = ax.collections[0].get_datalim(ax.transData).get_points()[:, 1]
    assert low == 0 and high == 1, "a share is between nothing and all"
    band = ax.collections[0].get_paths()[0].vertices
    assert np.isclose(band[:, 1], np.exp(-1) + 0.1).any()
    assert ax.get_yscale() == ("log" if log else "linear")
    assert "not there yet" in ax.get_ylabel()


def test_survival_of_one_cell_is_one_curve_without_a_legend():
    ax = plots.survival(waiting().isel(beta=0), log_time=True)
    assert ax.get_legend() is None and ax.get_xscale() == "log"


def test_survival_needs_an_event(phases):
    with pytest.raises(flock.UserError, match=r"until=Consensus\(\)"):
        plots.survival(phases)


def test_times_in_any_order_are_drawn_in_theirs(phases):
    mixed = phases.isel(time=[3, 0, 2, 1])
    whole = phases.isel(time=[0, 1, 2, 3])
    for a, b in zip(drawn(plots.phase_diagram(mixed)), drawn(plots.phase_diagram(whole))):
        a, b = (each.get_array() if hasattr(each, "get_array") else each for each in (a, b))
        np.testing.assert_array_equal(a, b)


def test_places_on_an_axis_without_values_are_not_shown_as_values(phases):
    """The curve of theory is one of beta, and places are none."""
    ax = plots.phase_diagram(phases.drop_vars("beta"))
    assert ax.get_ylabel() == "place in beta" and not ax.lines
