"""What turns the claims about random layers, noise, feed-forward parts and open problems red."""

from __future__ import annotations

import numpy as np

from tests.papers.wrong import chosen, each, numbers, put, theory, times

STOCHASTIC = {
    "pair": [
        theory(
            "a curvature drift of R^d instead of the sphere",
            "drift",
            lambda right: lambda R, beta, d, m=0.5: right(R, beta, d, m) + (1 - 1 / d) * R,
            "drift-0.5-far",
            "drift-0.5-near",
            "drift-4-far",
            "drift-4-near",
        ),
        theory(
            "noise of each token by itself, not common to both",
            "variance",
            lambda right: lambda R, beta, d, m=0.5: 2 * (1 - R**2) / d,
            "variance-0.5-far",
            "variance-4-far",
            "variance-0.5-near",
            "variance-4-near",
        ),
        theory(
            "the rate of the flow for that of fresh values",
            "consensus_exponent",
            lambda right: lambda d: -2.0,
            "consensus-3",
            "consensus-8",
        ),
        theory(
            "cosh for cosh^2",
            "antipodal_exponent",
            lambda right: lambda beta, d: ((d - 1) / np.cosh(beta) - 2) / d,
            "antipodal-0.5",
            "antipodal-1",
            "antipodal-2",
        ),
        theory(
            "cosh^2(beta) = d",
            "critical_beta",
            lambda right: lambda d: right(2 * d + 1),
            "critical",
        ),
        numbers("values of half the size", times("exponents/antipodal", 0.25), "antipodal-0.5"),
    ],
    "antipodal": [
        numbers(
            "pairs that forget the common noise",
            times("pairs/share", 0.0),
            "share-2-1",
            "share-2-4",
            "share-3-1",
            "share-3-4",
            "share-8-2",
            "share-8-4",
        ),
        numbers(
            "opposite places that always attract",
            put("pairs/share", lambda share, part: 0.5),
            "share-8-0.5",
            "share-8-1",
        ),
        numbers(
            "starts that are not uniform on the circle",
            times("limit/share", 1.01),
            "circle",
        ),
        numbers(
            "dimensions in the wrong order",
            put("limit/share", lambda share, part: share.isel(d=slice(None, None, -1))),
            "dimension",
        ),
        numbers(
            "a share that falls as beta grows",
            put("limit/share", lambda share, part: 0 * share + 1 / (1 + share.beta)),
            "growing",
        ),
    ],
    "clusters": [
        numbers(
            "each cluster with its own noise",
            put("unbalanced/equal", lambda gap, part: part.unequal),
            "equal-rest",
        ),
        theory(
            "clusters of unequal mass that hear the same",
            "gap_of_clusters",
            lambda right: lambda beta, m: 0.0,
            "pushed-1",
            "pushed-2",
        ),
        theory(
            "an exponent of other tokens",
            "antipodal_exponent",
            lambda right: lambda beta, d: right(beta, d) + 0.2,
            "between-1",
            "between-2",
        ),
        numbers(
            "tokens of a cluster at the rate of consensus",
            put("balanced/inside", lambda rate, part: -7 / 8),
            "inside-1",
        ),
        numbers("a cluster at half the rate", times("balanced/inside", 0.5), "inside-2"),
        theory(
            "a time for equal masses a little off",
            "leaving_time",
            lambda right: lambda beta, d, m, h=0.0: right(beta, d, 0.45, h),
            "leaving",
        ),
    ],
    "homogenised": [
        theory(
            "the logistic curve of infinite d",
            "expected_logit",
            lambda right: lambda t, d: right(t, 10**9),
            "logit-16",
            "logit-64",
        ),
        theory(
            "layers of infinitely small steps",
            "expected_logit",
            lambda right: lambda t, d: right(t, d) + t * (1 - np.log(1.1) / 0.1),
            "logit-64",
        ),
        theory(
            "a clock twice as fast",
            "expected_logit",
            lambda right: lambda t, d: right(2 * t, d),
            "logit-16",
            "logit-64",
        ),
        numbers(
            "noise of its own for every token",
            times("logistic/logit_variance", 1 / 16),
            "spread-16",
            "spread-64",
        ),
        theory(
            "a drift that forgets the sphere",
            "simplex_drift",
            lambda right: lambda gamma, f, g, d: gamma + (1 - gamma) * g,
            "drift-0.5-0.3",
            "drift-0.5-2",
            "drift-0.5-8",
        ),
        theory(
            "tokens that listen to themselves alone",
            "simplex_drift",
            lambda right: lambda gamma, f, g, d: right(gamma, 1.0, 0.0, d),
            "drift-0-0.3",
            "drift-0-2",
            "drift-0-8",
        ),
        theory(
            "cosines that a random matrix keeps",
            "projected_cosine",
            lambda right: lambda R, d: R,
            "projected-4",
            "projected-16",
        ),
        numbers(
            "a matrix of half as many rows",
            times("matrices/mean", 0.95),
            "projected-16",
        ),
    ],
    "synchronisation": [
        numbers(
            "independent noise",
            times("additive/rate", -1.0),
            "common-3",
            "common-8",
        ),
        theory(
            "a kernel without its slope",
            "feeding_exponent",
            lambda right: lambda name, d: -(d - 1) / d,
            "feeding-identity-8",
            "feeding-relu-8",
            "feeding-tanh-8",
            "feeding-tanh-24",
        ),
        numbers(
            "no dissipation on average",
            put("mean/mean", lambda gap, part: part["mean"].isel(time=0)),
            "dissipation",
        ),
        numbers(
            "a geometric mean that is the mean",
            put("mean/typical", lambda gap, part: part["mean"]),
            "typical",
        ),
    ],
}

NOISY = {
    "diagrams": [
        theory(
            "the coupling of the paper taken for kappa",
            "stability_threshold",
            lambda right: lambda beta, d: right(beta, d) / 2,
            "leaves-2",
            "leaves-3",
            "leaves-8",
        ),
        numbers(
            "branches that bend the wrong way",
            each(*(put(f"below{d}/kappa", lambda k, part: 2 - k) for d in (2, 3, 8))),
            "continuous-2",
            "continuous-3",
            "continuous-8",
        ),
        numbers(
            "rates of the wrong sign",
            each(*(put(f"below{d}/stable", lambda s, part: 1 - s) for d in (2, 3, 8))),
            "stable-2",
            "stable-3",
            "stable-8",
        ),
        numbers(
            "a free energy without its entropy",
            each(*(put(f"above{d}/first", lambda k, part: 1.0) for d in (2, 3, 8))),
            "first-2",
            "first-3",
            "first-8",
            "first-number",
        ),
        numbers(
            "a fold beyond the first-order point",
            each(*(put(f"above{d}/fold", lambda k, part: 0.99) for d in (2, 3, 8))),
            "fold-2",
            "fold-3",
            "fold-8",
            "fold-number",
        ),
        numbers(
            "a state that is not at rest", put("above2/off", lambda o, part: 1e-3), "stationary"
        ),
    ],
    "landau": [
        numbers(
            "the first-order point at the fold",
            put("first", lambda k, part: part.fold),
            "depth",
        ),
        numbers(
            "order parameters that are squares",
            put("first_order", lambda m, part: m**2),
            "square",
            "begins",
        ),
        numbers(
            "a jump that is found one percent too large at one beta",
            chosen("first_order", lambda m: 1.01 * m, beta=2.6),
            "square",
        ),
        numbers(
            "betas in the wrong order",
            put("first", lambda k, part: k.isel(beta=slice(None, None, -1))),
            "earlier",
        ),
    ],
    "modes": [
        theory(
            "the kernel of the next degree",
            "kernel_eigenvalue",
            lambda right: lambda k, beta, d: right(k + 1, beta, d),
            "leaves-2",
            "leaves-3",
            "born-2",
            "born-3",
        ),
        numbers(
            "rates without the odd changes",
            each(*(put(f"degree{k}/rate", lambda r, part: r - 2 * abs(r)) for k in (2, 3))),
            "unstable-2",
            "unstable-3",
        ),
        numbers(
            "bumps of unequal height",
            each(*(put(f"degree{k}/order", lambda m, part: 0.1) for k in (2, 3))),
            "centred-2",
            "centred-3",
        ),
    ],
    "particles": [
        numbers(
            "noise of twice the strength",
            each(times("slow/order", 0.6), times("jump/order", 0.6)),
            "slow-0",
            "jump-0",
        ),
        numbers("an order two percent too large", times("jump/order", 1.02), "jump-0"),
        numbers("tokens that do not see each other", times("quiet/square", 0.5), "quiet"),
    ],
    "hysteresis": [
        numbers(
            "order that depends on kappa alone",
            put("loop/order", lambda m, part: 0.4),
            "up",
            "rises",
            "down",
            "both",
            "falls",
        ),
    ],
}

OPEN = {
    "cluster-number": [
        theory(
            "caps of radius 1/beta",
            "exponent",
            lambda right: lambda d: 2 * right(d),
            *(f"{name}-{d}" for name in ("full", "causal") for d in (2, 3, 4, 5)),
        ),
        numbers(
            "as many clusters whatever beta is",
            each(
                *(
                    put(f"{name}/{d}/count", lambda count, part: 7.0)
                    for name in ("full", "causal")
                    for d in (2, 3, 4, 5)
                )
            ),
            *(f"{name}-{d}" for name in ("full", "causal") for d in (2, 3, 4, 5)),
        ),
    ],
    "causal-limits": [
        theory(
            "a resting angle of another matrix",
            "resting",
            lambda right: lambda: right() + 1e-3,
            "rest",
            "eigenvalues",
        ),
        theory("a barrier at 90 degrees", "barrier", lambda right: lambda: np.pi / 2, "basin"),
        numbers("a state that repels", times("rest/eigenvalue", -1.0), "stable", "eigenvalues"),
        numbers(
            "tokens that all end at the top eigenvector",
            each(times("grid/end", 0.0), times("random/end", 0.0)),
            "basin",
            "share",
        ),
    ],
    "sa-transition": [
        theory(
            "the bend of USA for that of SA",
            "softmax_bend",
            lambda right: lambda beta, d: right(beta, d) + 0.1,
            "bend-2-1",
            "bend-2-4",
            "bend-2-8",
            "bend-3-2",
        ),
        numbers("a branch that bends back", times("branches/lowest", 0.99), "forwards"),
        numbers("a bend of the wrong sign", times("formula/bend", -1.0), "negative"),
        numbers("a ratio twice as large", times("formula/ratio", 2.0), "supremum", "attained"),
    ],
    "negative-beta": [
        numbers(
            "polygons of another kernel",
            put("polygons/threshold", lambda beta, part: -0.5),
            "triangle",
            "others",
        ),
        numbers(
            "starts that are trapped in the open range",
            times("starts/share", 0.9),
            "met-3-0.6",
            "met-3-0.4",
            "met-5-0.6",
            "met-5-0.4",
        ),
        numbers(
            "a trap that half of the starts leave",
            put("starts/share", lambda share, part: (1 + share) / 2),
            "trapped",
        ),
        numbers("a search that sees no trap", put("starts/share", lambda s, part: 1.0), "trapped"),
    ],
    "antipodal-many": [
        numbers(
            "three tokens as two",
            put("share", lambda share, part: share.isel(n=[0, 0, 0])),
            "three",
        ),
        numbers(
            "all sides of the critical beta alike",
            put("share", lambda share, part: share.sel(cell=["low"] * 3)),
            "below",
        ),
        numbers(
            "numbers of tokens in the wrong order",
            put("share", lambda share, part: 2 * share.isel(n=[2, 1, 0])),
            "not-more",
        ),
        numbers("tokens that all meet", times("share", 0.0), "pair"),
        numbers(
            "three against one counted as two against two",
            put("even", lambda even, part: part.share.sel(n=[3] * 3)),
            "four",
            "beyond",
        ),
    ],
    "sharpness": [
        numbers(
            "fronts of the same width",
            lambda data: data.isel(d=[0, 0, 0]).assign_coords(d=data.d),
            "exponent",
            "narrower",
        ),
        theory(
            "layers for time",
            "layer_crossing",
            lambda right: lambda beta, n, delta, h: right(beta, n=n, delta=delta, h=h) / h,
            "front",
        ),
    ],
    "survival": [
        numbers(
            "waiting times of another exponent",
            each(times("runs/SA/said", 1.1), times("runs/USA/said", 1.1)),
            "told-sa",
            "told-usa",
        ),
        numbers(
            "a last pair that forgets how many tokens there were",
            each(
                *(
                    put(f"exponents/{law}/missing", lambda missing, part: 0.3)
                    for law in ("SA", "USA")
                )
            ),
            *(f"falls-{law}-{d}" for law in ("sa", "usa") for d in (2, 3, 8)),
        ),
        numbers(
            "clusters of USA that meet at the centre of SA",
            put("exponents/USA/missing", lambda missing, part: missing**0.3),
            "centre",
        ),
        numbers(
            "dimensions in the wrong order",
            put("exponents/SA/missing", lambda missing, part: missing.isel(d=[2, 1, 0])),
            "dimension",
        ),
        theory(
            "pairs that both move as one does",
            "pair_constant",
            lambda right: lambda d: 2 * right(d),
            "pairs-2",
            "pairs-3",
        ),
        numbers(
            "a mean time of another power",
            put("means/crowd", lambda mean, part: mean * part.beta),
            "mean-2",
            "mean-3",
        ),
    ],
}

PERCEPTRONS = {
    "widths": [
        numbers("a clock twice as fast", times("rates/rate", 2.0), "rate"),
        numbers(
            "a kernel that reaches one percent farther",
            times("wells/angle", 1.01),
            "gap-16",
            "gap-64",
            "gap-256",
            "half",
        ),
        numbers(
            "tokens that stay spread",
            put("wells/angle", lambda angle, part: np.linspace(-0.2, 0.2, 32)),
            "point",
            "together",
            "apart",
        ),
        theory(
            "a bound of a third of the size",
            "most_company",
            lambda right: lambda curvature, beta, d, n: right(curvature, beta, d, n) / 3,
            "company-2",
            "company-3",
        ),
        numbers(
            "a cluster that a weak perceptron holds",
            put("crowds/2/share", lambda share, part: 0.6),
            "weak",
        ),
    ],
    "trained": [
        numbers(
            "the feed-forward part there where it is left out",
            each(
                *(
                    put(name, lambda value, part: value.isel(part=[1, 0, 2]))
                    for name in ("mean_cosine", "cluster_count")
                )
            ),
            "closer-ngpt",
            *(
                f"{name}-{norm}"
                for name in ("gathers", "collapse", "apart")
                for norm in ("pre", "ngpt")
            ),
        ),
        numbers(
            "a part that has learned nothing",
            put("loss", lambda loss, part: loss.isel(part=[2, 1, 0])),
            "learned-pre",
            "learned-ngpt",
        ),
    ],
    "landscape": [
        numbers(
            "an energy without its potential",
            times("flow/energy", 0.9),
            "dissipation",
            "reached",
        ),
        numbers(
            "a descent for the ascent",
            put("flow/energy", lambda energy, part: 3 - energy),
            "climbs",
        ),
        numbers("tokens counted twice", times("flow/energy", 1.2), "reached"),
        numbers("a perceptron that is not felt", times("top/eigenvalue", 0.9), "attracts"),
        theory(
            "the uniform measure as minimiser",
            "linear_minimiser",
            lambda right: lambda theta: 1 + 0 * theta,
            "density",
        ),
        numbers(
            "a density for atoms",
            each(
                put("grids/carrying", lambda count, part: part.nodes / 2),
                put("grids/atoms", lambda count, part: [1, 2, 3]),
            ),
            "atoms",
            "nodes",
        ),
        numbers(
            "two starts, two ends",
            put("relu/energy", lambda energy, part: [0.5, 0.6]),
            "unique",
        ),
        numbers("mass off the support", put("relu/gap", lambda gap, part: 0.1), "certificate"),
        numbers(
            "a start that is not forgotten",
            put("linear/rho", lambda rho, part: rho * (1 + 0.1 * np.sin(part.theta))),
            "symmetric",
        ),
    ],
}
