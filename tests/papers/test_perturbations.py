"""Claims can fail: a law, an energy, a solver, a curve or a number that is wrong turns the right
ones red, in every item of every paper.

Each perturbation is a bug of published code or one that is easily made: an energy that forgets
beta, a flow without its tangent projection, a Runge-Kutta step whose stages share one frozen field,
a curve for another number of tokens, a clock that runs twice as fast. Most are put where claims are
judged, either into theory or into the numbers that a wrong law would have left (those of
`tests.papers.numbers`, so that this takes no time); some run the wrong law itself.
"""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest
import xarray as xr

from tests.papers.numbers import computed, core, least, stored
from tests.papers.wrong import backwards, chosen, each, later, numbers, put, theory, times
from tests.papers.wrong_randomness import NOISY, OPEN, PERCEPTRONS, STOCHASTIC
from tokenflock.observables import Energy
from tokenflock.papers.perspective import gradient_flow, orthogonal
from tokenflock.reproduction.claim import NotRun
from tokenflock.reproduction.item import find
from tokenflock.solvers import RK4
from tokenflock.spaces import Sphere

MEANFIELD = {
    "fig1": [
        numbers(
            "speeds of USA ten percent too large",
            each(times("rest/speed", 1.1), times("rest/lopsided", 1.1)),
            "unbalanced",
            "lopsided-other",
        ),
        numbers(
            "an energy with a half in front",
            each(
                times("many/simple/energy", 0.5),
                times("many/double/energy", 0.5),
                times("bound/ratio", 0.5),
            ),
            "most",
            "bound",
        ),
        numbers("tokens that never moved", backwards("alone/distinct/x", "time"), "distinct"),
    ],
    "fig2": [
        theory(
            "a Hessian by the wrong clock",
            "two_cluster_growth",
            lambda right: lambda *given, **more: 2 * right(*given, **more),
            "hessian",
        ),
        theory(
            "the window of another matrix",
            "trap_window",
            lambda right: lambda value: tuple(1.1 * end for end in right(value)),
            "low-exact",
            "high-exact",
        ),
        numbers(
            "clusters counted with a gap too many",
            put("sweep/cluster_count", lambda count, part: count + 1),
            "inside",
        ),
    ],
    "fig3": [
        numbers(
            "an energy without the tokens' own part",
            put("optimum/uniform/energy", lambda energy, part: energy - np.e / 400),
            "uniform",
        ),
        numbers(
            "the mean square of one coordinate for that of all",
            times("late/great circle/outside", 2.0),
            "pace-circle",
            "quartic-circle",
        ),
        numbers(
            "tokens that gather at the wrong axis",
            put("optimum/near poles/x", lambda x, part: np.roll(x, 1, axis=-1)),
            "near-poles",
        ),
    ],
    "fig4": [
        numbers(
            "a and b exchanged",
            put("ratio", lambda ratio, part: 1 / np.maximum(ratio, 1e-12)),
            "flow",
            "optimiser",
            "fine",
            "coarse",
            "broken",
        ),
    ],
    "fig5": [
        theory(
            "the published integral, sin^(d-1) for sin^(d-2)",
            "minimiser_tilt",
            lambda right: lambda d: right(d + 1),
            "slope",
            "shape",
            "alpha-3",
            "alpha-4",
            "alpha-8",
        ),
        numbers(
            "the conjectured shape as the minimiser",
            put("density/energy", lambda energy, part: part.fitted),
            "shape-energy",
        ),
    ],
    "fig6": [
        theory(
            "cosh c whatever the masses",
            "antipodal_energy",
            lambda right: lambda c, p=0.5: right(c, np.full_like(p, 0.5)),
            "energy",
        ),
        numbers(
            "pairs on the wrong axis",
            put("runs/distinct/x", lambda x, part: np.roll(x, 1, axis=-1)),
            "axis-distinct",
        ),
    ],
    "fig7": [
        theory(
            "the end of the trap for the crossing",
            "maximiser_crossing",
            lambda right: np.tanh,
            "crossing",
        ),
        theory(
            "cosh c whatever the masses",
            "antipodal_energy",
            lambda right: lambda c, p=0.5: right(c, np.full_like(p, 0.5)),
            "before",
        ),
        numbers(
            "a descent for the ascent",
            put("ends/energy", lambda energy, part: 1 / energy),
            "trapped",
        ),
    ],
    "dissipation": [
        numbers(
            "SA without the weight Z of its metric",
            put("dissipated", lambda value, part: part.unweighted),
            "balance-sa",
            "balance-sa-repulsive",
            "balance-sa-matrix",
        ),
        numbers("mass that leaks", times("mass", 1 - 1e-9), "mass"),
    ],
    "ott-antonsen": [
        theory(
            "a clock twice as fast",
            "poisson_order",
            lambda right: lambda t, r: right(2 * t, r),
            "order",
            "moments",
            "density",
        ),
    ],
    "fast-sums": [
        numbers(
            "a series without the factor 2 of its modes k > 0",
            each(times("agreement/velocity", 1e14), times("large/off", 1e14)),
            "velocity-2",
            "velocity-3",
            "large-2",
            "large-3",
        ),
        numbers("an order chosen too low", times("order/off", 100.0), "tolerance"),
    ],
    "particle-limit": [
        numbers("cells of half a quantile", times("quantiles", 1.5), "quantiles"),
        numbers(
            "samples as good as quantiles",
            put("independent", lambda far, part: far / np.sqrt(part.n)),
            "independent-slope",
        ),
    ],
    "growth": [
        theory(
            "rates of USA for all laws",
            "growth_rate",
            lambda right: (
                lambda k, beta, d, law="USA", kappa=np.inf: right(k, beta, d, "USA", kappa)
            ),
            "sa",
            "sinkhorn",
        ),
        theory(
            "rates without noise",
            "growth_rate",
            lambda right: lambda k, beta, d, law="USA", kappa=np.inf: right(k, beta, d, law),
            "usa-with-noise",
        ),
        numbers(
            "degree 3 a little slower",
            put("tied", lambda rates, part: rates * np.array([1, 0.999])),
            "switch-2",
            "switch-3",
        ),
    ],
    "noisy-transition": [
        theory(
            "noise of strength 2/kappa",
            "critical_noise",
            lambda right: lambda beta, d: 2 * right(beta, d),
            "threshold-2-1",
            "threshold-3-4",
        ),
        theory(
            "the bend of another dimension",
            "tricritical_beta",
            lambda right: lambda d: right(d + 1),
            "tricritical-2",
            "tricritical-3",
        ),
    ],
}

PERSPECTIVE = {
    "fig1": [
        numbers(
            "layers counted from the end",
            each(backwards("mean_cosine", "layer"), backwards("pair_density", "layer")),
            "mean",
            "near-one",
            "mean-on",
            "near-one-on",
        ),
        numbers(
            "a histogram without its diagonal",
            times("histogram_with_diagonal", 0.0),
            "diagonal",
        ),
    ],
    "fig2": [
        theory(
            "the range of attraction at twice the beta",
            "attraction_range",
            lambda right: lambda beta, *more: right(2 * beta, *more),
            "printed-threshold",
        ),
        theory(
            "the curve of half as many tokens",
            "equiangular_cosine",
            lambda right: lambda t, n, beta: right(t, n=n // 2, beta=beta),
            "early-cosine",
            "bound-informative",
        ),
        numbers(
            "a triangle that is stable for positive beta",
            times("triangle_zero", -1.0),
            "triangle",
        ),
    ],
    "fig3": [
        theory(
            "the curve for n = 128, as the published notebook draws it over systems of n = 32",
            "transition_curve",
            lambda right: lambda t, n=32, delta=1e-3: right(t, n=128, delta=delta),
            "curve-10",
            "curve-30",
        ),
        theory(
            "layers of half the step",
            "layer_crossing",
            lambda right: lambda beta, n, delta, h: right(beta, n=n, delta=delta, h=h / 2),
            "onset",
        ),
    ],
    "fig4": [
        theory(
            "lifetimes of the clock 2t",
            "lifetime",
            lambda right: lambda k, beta: right(k, beta) / 2,
            "lifetime-2-4",
            "lifetime-3-9",
        ),
        numbers(
            "clusters counted with a gap too many",
            put("counts/cluster_count", lambda count, part: count + 1),
            "count-4",
            "count-9",
        ),
        numbers(
            "layers that drift like the flow",
            put("lifetimes/layer_rate", lambda rate, part: 1.1 * rate),
            "drift",
        ),
    ],
    "fig5": [
        numbers(
            "time counted in layers",
            each(*(put(f"{panel}/time", lambda time, part: 10 * time) for panel in "abcd")),
            "a-front",
            "b-front",
            "c-onset",
            "d-onset",
        ),
        numbers(
            "a kernel of beta = 0 everywhere",
            each(
                put("c/pair_density", lambda p, part: p.isel(beta=0)),
                put("d/pair_density", lambda p, part: p.isel(beta=0)),
            ),
            "c-many",
            "d-many",
        ),
    ],
    "fig6": [
        theory(
            "the curvature at another beta",
            "interaction_curvature",
            lambda right: lambda tau, beta: right(tau, 1.01 * beta),
            "formula-2",
            "formula-6",
        ),
        theory(
            "a range from the sine alone",
            "attraction_range",
            lambda right: lambda beta, *more: np.arcsin(1 / np.sqrt(1 + beta)),
            "zero-2",
            "zero-6",
        ),
    ],
    "table1": [
        numbers(
            "tokens that return to their places",
            put("identity/x", lambda x, part: np.concatenate([x[:, :-1], x[:, :1]], axis=1)),
            "hull",
            "corners",
        ),
        numbers(
            "a decay like 1/t",
            times("minus/x", float(np.sqrt(2))),
            "minus",
        ),
    ],
    "films": [
        theory(
            "the rate of the flow for that of layers",
            "layer_terminal_rate",
            lambda right: lambda h: 2.0,
            "sphere-rate",
        ),
        numbers(
            "an energy of the wrong sign",
            each(times("sphere/energy", -1.0), times("circle/energy", -1.0)),
            "energy-sphere",
            "energy-circle",
        ),
    ],
    "equivariance": [
        numbers(
            "a law that knows the place of a token",
            chosen("kept", lambda value: 1e-3, symmetry=["order", "heads", "coincident"]),
            "order",
            "heads",
            "coincident",
        ),
        numbers(
            "a comparison that sees nothing",
            put("broken", lambda value, part: part.kept),
            "sensitive",
        ),
    ],
    "mean-field-limit": [
        theory(
            "a curvature without its exponential",
            "interaction_curvature",
            lambda right: lambda tau, beta: np.cos(tau),
            "spread",
            "gather",
        ),
        numbers(
            "an error of order 1/n^2",
            put("grids/W1", lambda far, part: far / part.n),
            "order",
        ),
    ],
    "extremal-measures": [
        theory(
            "degrees counted from one",
            "kernel_eigenvalue",
            lambda right: lambda k, beta, d: right(np.add(k, 1), beta, d),
            "eigenvalues",
            "positive",
            "uniform-energy",
        ),
        theory(
            "samples without the pairs of a token with itself",
            "sampled_energy",
            lambda right: lambda n, beta, d: right(10**9, beta, d),
            "independent",
        ),
    ],
    "gradient-flow": [
        numbers(
            "the printed slip of (3.7), a factor 1 for beta",
            put("variation/factor", lambda factor, part: factor / part.beta),
            "log-partition",
        ),
        numbers(
            "a rate without Z",
            chosen("flows/predicted", lambda rate: 0.9 * rate, law="SA"),
            "sa",
        ),
        numbers("orbits that never part", put("orbits/gap", lambda gap, part: 0.0), "orbits-3"),
    ],
    "small-beta": [
        numbers(
            "tokens that move apart",
            backwards("zero/consensus_distance", "time"),
            "zero-2",
            "zero-3",
            "zero-5",
        ),
        numbers(
            "a second order in beta",
            put("perturbed/gap", lambda gap, part: gap**2),
            "first-order-sa",
            "first-order-usa",
        ),
        numbers("half of an eigenvalue", times("saddles/axes", 0.5), "saddles-sharp"),
    ],
    "large-beta": [
        theory(
            "the printed threshold n^2/pi^2",
            "saddle_threshold",
            lambda right: lambda n, angle=np.pi / 2: n**2 / np.pi**2,
            "threshold-half",
            "threshold-full",
        ),
        theory(
            "the range of attraction in another dimension",
            "attraction_range",
            lambda right: lambda beta, d: right(beta, d + 1),
            "range",
        ),
        numbers("stable saddles", times("critical/growth", -1.0), "saddles", "contrast"),
    ],
    "sphere-consensus": [
        theory(
            "a pair by the clock 2t",
            "merging_time",
            lambda right: lambda *given, **more: right(*given, **more) / 2,
            "pair-sa-1",
            "pair-sa-4",
        ),
        numbers(
            "a start that never meets",
            put("reached", lambda time, part: np.where(np.arange(20) > 0, time, np.nan)),
            "consensus-sa-1",
            "consensus-usa-4",
        ),
    ],
    "two-time-scales": [
        theory(
            "a pair followed to another cosine",
            "merging_time",
            lambda right: lambda angle, beta, delta: right(angle, beta, 10 * delta),
            "merging",
            "merging-all",
        ),
        numbers(
            "lifetimes of the wrong exponent",
            put("polygons/rate", lambda rate, part: np.sqrt(rate)),
            "exponent-2",
            "exponent-3",
        ),
    ],
    "cone-collapse": [
        theory(
            "the rate of the flow for that of layers",
            "layer_terminal_rate",
            lambda right: lambda h: 2.0,
            "rate-layers",
        ),
        theory(
            "the rate of SA for that of USA",
            "terminal_rate",
            lambda right: lambda beta, unnormalised=False: right(beta),
            "rate-usa",
        ),
        numbers("(D.15) as printed, the constant 1", times("pair/spread", 0.25), "spread"),
    ],
    "hemisphere": [
        theory(
            "Wendel's sum one term short",
            "hemisphere_probability",
            lambda right: lambda n, d: right(n, d - 1),
            "wendel-3-2",
            "wendel-4-3",
            "wendel-32-16",
        ),
    ],
    "orthogonal": [
        numbers(
            "a solver of first order",
            put("order/off", lambda off, part: float(off[0]) * part.h / float(part.h[0])),
            "order",
        ),
        numbers("tokens off the curve", times("flow/off", 1e6), "sa-1", "sa-4", "usa-1", "usa-4"),
    ],
    "high-dimension": [
        theory(
            "the curve for n = 128",
            "equiangular_cosine",
            lambda right: lambda t, n, beta: right(t, 128 if n == 32 else n, beta),
            "middle",
        ),
        numbers(
            "deviations that do not fall with d",
            put("greatest", lambda far, part: far.isel(d=0)),
            "slope",
            "deviation-1024",
        ),
    ],
    "kuramoto": [
        numbers(
            "a Kuramoto model of half the coupling",
            put("ott-antonsen/r", lambda r, part: r[np.arange(len(r)) // 2]),
            "ott-antonsen",
        ),
        numbers(
            "a sum over the others only",
            put("identities/usa_sum", lambda off, part: 1 / 8),
            "usa-sum",
        ),
    ],
    "bbgky": [
        theory(
            "a speed without 1/n",
            "initial_correlation_speed",
            lambda right: lambda n, beta: n * right(n, beta),
            "correlation",
            "correlation-flow",
        ),
        numbers(
            "pairs as independent as tokens",
            put("pair", lambda count, part: part.one),
            "pair-law-moves",
        ),
    ],
    "repulsion": [
        numbers(
            "an energy without the tokens' own part",
            put("simplex/energy", lambda energy, part: energy - np.exp(2) / (2 * 2 * 4)),
            "simplex-usa",
            "simplex-least",
        ),
        numbers(
            "a bipyramid that is taken for a sharp configuration",
            put("bipyramid/gram", lambda gram, part: 1.25 * np.eye(5) - 0.25),
            "bipyramid-sharp",
        ),
    ],
}

SMALL_GPT = {
    "ladder": [
        numbers(
            "rungs in the wrong order",
            backwards("loss", "rung"),
            "gain-head",
            "gain-multi-head",
            "gain-residual",
        ),
        numbers(
            "a bigram that sees the letter it predicts",
            times("bigram_on_its_text", 0.5),
            "bigram",
        ),
    ],
    "training": [
        numbers(
            "a training that ends in the collapse",
            put("mean_cosine", lambda value, part: value.where(part.step < 600, 0.9)),
            "recovery-pre",
            "recovery-post",
        ),
        numbers(
            "tokens that never collapse",
            times("mean_cosine", 0.5),
            "collapse-pre",
            "collapse-post",
        ),
    ],
    "norms": [
        numbers(
            "a model that collapses",
            chosen("mean_cosine", lambda value: 0.99, weights="trained"),
            "apart-pre",
            "apart-post",
            "apart-peri",
            "apart-ngpt",
        ),
        numbers(
            "fresh weights that make no difference",
            chosen("mean_cosine", lambda value: 0.1 * value, weights="untrained"),
            "far-apart",
            "same-place",
        ),
        numbers(
            "near tokens that have nothing in common",
            put("same_letter", lambda value, part: part.same_letter_anyhow),
            "letters-pre",
            "letters-post",
        ),
    ],
    "sharing": [
        numbers(
            "a model that gains by passing on",
            backwards("loss_at", "factor"),
            "deeper-pre",
            "deeper-post",
        ),
        numbers(
            "own and shared layers exchanged",
            put("loss_own", lambda loss, part: 2 * part.loss_shared),
            "price-pre",
            "price-post",
        ),
        numbers(
            "one cluster in the end",
            put("cluster_count", lambda count, part: 1.0),
            "clusters-pre",
            "clusters-post",
        ),
    ],
    "flow": [
        numbers(
            "an approach of second order",
            put("distance", lambda far, part: far**2),
            "order-pre",
            "order-ngpt",
        ),
        numbers("a step that is small", times("distance", 1e-3), "step-pre", "step-ngpt"),
    ],
    "films": [
        numbers(
            "words one place off",
            put("trained/word", lambda word, part: np.roll(word, 1)),
            "blanks",
        ),
    ],
}

CAUSAL = {
    "fig2": [
        numbers(
            "tokens that wander",
            each(
                put("runs/place", lambda place, part: place + 0.1 * part.time / (1 + part.time)),
                put("long/place", lambda place, part: place + 0.1 * part.time / (1 + part.time)),
            ),
            "hold",
            "hold-long",
        ),
        numbers(
            "centres that are pulled twice as hard",
            put("runs/place", lambda place, part: 2 * place - place.isel(time=0)),
            "hold",
        ),
        numbers(
            "all tokens at the first",
            put("runs/place", later(20, lambda place: place[:, :1, :1])),
            "at-least",
            "still",
        ),
        numbers(
            "tokens that never gather",
            put("runs/place", later(74, lambda place: place[:, :1])),
            "at-most",
        ),
        numbers(
            "one cluster in the end",
            put("runs/place", later(100, lambda place: 0 * place)),
            "still",
        ),
        theory(
            "caps of half the size",
            "strong_centres",
            lambda right: lambda delta, d, n: right(delta / 2, d, n),
            "strong",
        ),
    ],
    "consensus": [
        numbers(
            "a first token that drifts",
            put("flow/still", lambda still, part: 1e-6),
            "still",
        ),
        numbers(
            "a token that stays at the antipode",
            put("flow/far", lambda far, part: np.maximum(far, 1.9)),
            "consensus",
            "rate",
        ),
        theory(
            "two tokens that both move",
            "pair_time",
            lambda right: lambda *given: right(*given) / 2,
            "pair",
        ),
        numbers(
            "attention without the token itself",
            put("rest/eigenvalue", lambda rate, part: -1.0),
            "eigenvalues",
        ),
        numbers("equal distances", put("rest/mode", lambda mode, part: 1.0), "mode"),
        numbers(
            "values that are not projected",
            each(
                times("values/simple/first", 1e4),
                put("values/simple/cosine", lambda cosine, part: 0.5),
                times("values/double/cosine", -1.0),
            ),
            "simple",
            "double",
        ),
        numbers(
            "a first token by Euler's method",
            put("values/simple/first", lambda off, part: 1e-2),
            "first-alone",
        ),
    ],
    "parking": [
        theory(
            "caps of twice the angle",
            "strong_centres",
            lambda right: lambda delta, d, n: right(2 * delta, d, n),
            "strong-2-20",
            "strong-2-200",
            "strong-3-20",
            "strong-3-200",
            "strong-4-200",
        ),
        theory(
            "cars on a line of length 2 pi - delta",
            "renyi_centres",
            lambda right: lambda delta: right(delta) * (1 - delta / (2 * np.pi)),
            "parking",
        ),
    ],
    "middle": [
        numbers("a law without its factor beta m", times("rates/mean", 0.5), "rate-1", "rate-2"),
        numbers("modes that do not grow", times("rates/mean", -1.0), "rate-3"),
        theory(
            "the influence at twice the depth",
            "position_influence",
            lambda right: lambda s, t, *more: right(s, 2 * t, *more),
            "influence",
            "end",
        ),
        theory(
            "a critical depth without its factor 2",
            "middle_critical_time",
            lambda right: lambda *given: right(*given) / 2,
            "critical",
        ),
        numbers(
            "positions counted from the end",
            backwards("chain/influence", "s"),
            "beginning",
            "first",
        ),
        numbers(
            "an influence that only falls",
            put("chain/influence", lambda value, part: 2 - part.s.values + 0 * value.values),
            "middle",
        ),
        numbers(
            "positions and times that are mixed up",
            each(backwards("full/cosine", "k"), times("full/second", 0.9)),
            "full-end",
            "second",
        ),
    ],
}

NORMALIZATION = {
    "curves": [
        theory(
            "the curve for twice as many tokens",
            "normalised_flow",
            lambda right: lambda t, n, *given, **more: right(t, 2 * n, *given, **more),
            "rho-post",
            "rho-pre",
            "rho-mix",
            "rho-peri",
            "rho-ngpt",
            "rho-sqrt",
            "radius-moving",
        ),
        numbers("tokens that leave the sphere", times("curves/radius", 1.001), "radius-fixed"),
        theory(
            "speeds without the token's own share",
            "initial_speed",
            lambda right: lambda n, *given, **more: right(n + 1, *given, **more),
            "speeds",
        ),
        numbers(
            "Peri-LN without its second norm",
            chosen("start/speed", lambda speed: speed / 2, scheme=["peri"]),
            "peri-first",
        ),
    ],
    "terminal": [
        numbers(
            "an exponent of -1",
            each(
                put("slow/gap", lambda gap, part: np.sqrt(gap)),
                put("equal/gap", lambda gap, part: np.sqrt(gap)),
            ),
            "square-pre",
            "square-mix",
            "square-peri",
            "local-pre",
            "local-mix",
            "local-peri",
        ),
        numbers("radii that grow like t/2", times("slow/least_radius", 0.5), "radius"),
        numbers(
            "rates of the distance for those of its square",
            put("fast/gap", lambda gap, part: np.sqrt(gap)),
            "rate-post",
            "rate-ngpt",
            "rate-sqrt",
        ),
        numbers(
            "a pair that clusters, and a radius that grows like t",
            each(
                put("antipodal/cosine", lambda cosine, part: 0.9),
                put("antipodal/radius", lambda radius, part: 1 + part.time),
            ),
            "antipodal",
            "antipodal-radius",
        ),
    ],
    "random-weights": [
        numbers(
            "outputs of size n^(-1/4)",
            put("outputs/square", lambda square, part: np.sqrt(square)),
            "output-64",
            "output-256",
        ),
        numbers("layers counted from the end", backwards("layers/cosine", "layer"), "early"),
        numbers(
            "Pre-LN in the place of Post-LN",
            backwards("layers/cosine", "scheme"),
            "early",
        ),
        numbers(
            "a collapse of all",
            put("layers/cosine", lambda cosine, part: cosine.where(part.layer < 16, part.square)),
            "late",
        ),
        numbers("sublayers of half the length", times("layers/square", 0.4), "peri-radius"),
        numbers("tokens that leave the sphere", times("layers/square", 1.001), "sphere"),
    ],
}

METASTABILITY = {
    "kinetic": [
        numbers(
            "a clock that runs twice as fast",
            times("moments/met", 0.5),
            "moments-sa",
            "moments-usa",
            "last-sa",
            "last-usa",
            "beyond",
        ),
        numbers(
            "an energy with a half in front",
            each(times("sa/energy", 0.5), times("usa/energy", 0.5)),
            "energies-sa",
            "plateau-sa",
            "energies-usa",
            "plateau-usa",
        ),
        numbers(
            "runs read from their end",
            each(backwards("sa/energy", "time"), backwards("usa/energy", "time")),
            "climb-sa",
            "climb-usa",
        ),
        numbers(
            "both clocks taken for one",
            chosen(
                "moments/met", lambda met: 54.0 * met, law="USA in the clock of arXiv 2312.10794"
            ),
            "clock",
        ),
        numbers(
            "token 3 joins at once, and the last merge follows",
            chosen("moments/met", lambda met: 0 * met + 1.0, law="SA", pair=[2]),
            "order",
        ),
        numbers(
            "a last merge without its wait",
            chosen("moments/met", lambda met: 0.5 * met, law="SA", pair=[3]),
            "wait",
        ),
        numbers(
            "SA without its denominator",
            chosen("moments/met", lambda met: 2 * met, law="SA", pair=[3]),
            "within",
        ),
    ],
    "staircase": [
        numbers(
            "4 joins the first three before 5",
            chosen("middle", lambda energy: 0 * energy + 17 / 25, plateau=[13]),
            "level-13",
        ),
        numbers(
            "an energy without the tokens' own part",
            put("middle", lambda energy, part: energy - 0.2),
            "level-7",
            "level-11",
        ),
        theory(
            "clusters that move as if they were light",
            "closed_form",
            lambda right: lambda beta, name: 1.5 * right(beta, name),
            "time-2-and-3",
            "time-4-and-5",
            "time-all",
        ),
        numbers(
            "half of the exponent",
            put("met", lambda met, part: np.sqrt(met)),
            "exponent",
        ),
        numbers("a mean that SA would move", put("drift", lambda drift, part: 1e-3), "mean"),
        numbers("a last frame before the last merge", times("energy", 13 / 25), "end"),
    ],
    "caps": [
        theory(
            "the closed form of another number of tokens",
            "equiangular_time",
            lambda right: lambda gamma, n, *given, **more: right(gamma, n + 1, *given, **more),
            "closed-form-sa",
        ),
        numbers(
            "half of the exponent",
            each(
                put("alone/left", lambda left, part: np.sqrt(left)),
                put("crowd/left", lambda left, part: left**0.3),
            ),
            "closed-form-usa",
            "exponent-sa",
            "exponent-usa",
            "stays-sa",
            "stays-usa",
        ),
        numbers("tokens that hardly meet", times("crowd/tight", 1000.0), "meets-sa", "meets-usa"),
        numbers("a lemma with the bound of e^(-beta)", times("lemma/share", 10.0), "lemma"),
    ],
    "survival": [
        theory(
            "a pair by the clock 2t",
            "merging_time",
            lambda right: lambda *given, **more: right(*given, **more) / 2,
            "pairs-2",
            "pairs-3",
            "pairs-8",
            "mean-2",
            "mean-3",
            "mean-8",
        ),
        theory(
            "the lifetime at twice the beta",
            "polygon_lifetime",
            lambda right: lambda k, beta: right(k, 2 * beta),
            "tail-2",
            "tail-3",
        ),
        numbers(
            "late pairs that wait half as long again",
            put("pairs/met", lambda met, part: met + np.maximum(met - 30, 0) / 2),
            "tail-2",
            "tail-3",
        ),
        numbers(
            "systems that wait three times as long",
            times("crowds/met", 4.0),
            "crowd-2",
            "crowd-3",
        ),
        numbers("a pair of equal masses always", times("last/said", 1.01), "last"),
    ],
}

PERTURBATIONS = {
    f"{paper}/{stem}": wrongs
    for paper, items in (
        ("causal", CAUSAL),
        ("dynamic-metastability", METASTABILITY),
        ("meanfield-models", MEANFIELD),
        ("normalization", NORMALIZATION),
        ("perspective", PERSPECTIVE),
        ("small-gpt", SMALL_GPT),
        ("stochastic-depth", STOCHASTIC),
        ("noisy-transformers", NOISY),
        ("open-problems", OPEN),
        ("perceptrons", PERCEPTRONS),
    )
    for stem, wrongs in items.items()
}
ITEMS = {item.name: item for item in find(())}


def red(claims) -> set[str]:
    return {claim.id for claim in claims if claim.verdict == "fails"}


def test_every_item_has_a_perturbation():
    assert set(PERTURBATIONS) == set(ITEMS)
    assert all(wrong.red for wrongs in PERTURBATIONS.values() for wrong in wrongs)


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_the_numbers_that_are_kept_hold(name):
    assert {claim.verdict for claim in ITEMS[name].load().claims(stored(name))} == {"holds"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        pytest.param(name, wrong, id=f"{name}: {wrong.words}")
        for name, wrongs in PERTURBATIONS.items()
        for wrong in wrongs
    ],
)
def test_what_is_wrong_turns_red(monkeypatch, name, wrong):
    home, data = ITEMS[name].load(), stored(name)
    if wrong.theory is not None:
        called, make = wrong.theory
        monkeypatch.setattr(home, called, make(getattr(home, called)))
    claims = home.claims(wrong.numbers(data))
    assert set(wrong.red) <= red(claims)


def lost(part: xr.Dataset) -> xr.Dataset:
    """A part whose numbers are none, and whose counts are absurd."""
    none = {"f": np.nan, "i": 10**6, "u": 10**6, "b": False}
    return part.assign(
        {
            name: (value.dims, np.full(value.shape, none[value.dtype.kind]))
            for name, value in part.data_vars.items()
            if value.dtype.kind in none
        }
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PERTURBATIONS)
def test_no_claim_holds_of_numbers_that_are_none(name):
    """A run that left the numbers is no run without violations: claims fail, or break."""
    data = stored(name)
    if isinstance(data, xr.Dataset):
        data = lost(data)
    else:
        parts = {node.path: lost(node.to_dataset(inherit=False)) for node in data.subtree}
        data = xr.DataTree.from_dict(parts)
    try:
        claims = ITEMS[name].load().claims(data)
    except (ValueError, ArithmeticError, IndexError, RuntimeError):
        return  # which makes the item fail as a whole
    assert [claim.id for claim in claims if claim.verdict == "holds"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PERTURBATIONS)
def test_the_numbers_that_are_kept_are_those_of_today(name):
    """As many claims, about the same, with numbers as far from red: only the rounding of another
    machine may differ.
    """
    home = ITEMS[name].load()
    try:
        today = home.claims(computed(ITEMS[name]))
    except NotRun as reason:
        pytest.skip(str(reason))
    kept = home.claims(stored(name))
    assert [claim.id for claim in today] == [claim.id for claim in kept]
    assert red(today) == red(kept) == set()


def test_what_is_kept_is_what_claims_read():
    """Leaving out what no claim reads changes no claim, and nothing is left to leave out."""
    home = ITEMS["meanfield-models/fig4"].load()
    data = stored("meanfield-models/fig4")
    more = data.assign(unread=("d2", np.zeros(data.sizes["d2"])))
    assert set(least(home, more).variables) == set(data.variables)
    assert core(home.claims(least(home, more))) == core(home.claims(data))


@pytest.fixture
def perturb(monkeypatch):
    """Put something wrong in place; what was compiled before is forgotten, then and afterwards."""

    def put(home, name, wrong):
        monkeypatch.setattr(home, name, wrong)
        jax.clear_caches()

    yield put
    monkeypatch.undo()
    jax.clear_caches()


@pytest.mark.slow
def test_an_energy_with_the_wrong_beta(perturb):
    right = Energy.measure
    perturb(
        Energy,
        "measure",
        lambda self, x, w: right(eqx.tree_at(lambda one: one.beta, self, 1.1 * self.beta), x, w),
    )
    assert red(gradient_flow._variation_claims(gradient_flow._variations(3))) == {
        "first-variation",
        "log-partition",
    }


@pytest.mark.slow
def test_a_flow_without_its_tangent_projection(perturb):
    perturb(Sphere, "tangent", lambda self, x, v: v)
    assert {"sa-1", "sa-4", "usa-1", "usa-4"} <= red(orthogonal._flow_claims(orthogonal._flow()))


@pytest.mark.slow
def test_runge_kutta_with_a_frozen_field(perturb):
    def frozen(self, dynamics, t, x, w, key):
        k1 = dynamics.velocity(t, x, w)
        return dynamics.space.retract(x, self.h * k1)

    perturb(RK4, "step", frozen)
    data = xr.DataTree.from_dict({"order": orthogonal._order(), "layers": orthogonal._layers()})
    assert red(orthogonal._solver_claims(data)) == {"order"}
