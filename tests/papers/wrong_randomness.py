"""What turns the claims about random layers, noise, feed-forward parts and open problems red."""

from __future__ import annotations

import numpy as np

from tests.papers.wrong import numbers, put, theory, times

STOCHASTIC = {
    "pair": [
        theory(
            "a curvature drift of R^d instead of the sphere",
            "drift",
            lambda right: lambda R, beta, d, m=0.5: right(R, beta, d, m) + (1 - 1 / d) * R,
            "drift-0.5-far",
            "drift-0.5-near",
        ),
        theory(
            "noise of each token by itself, not common to both",
            "variance",
            lambda right: lambda R, beta, d, m=0.5: 2 * (1 - R**2) / d,
            "variance-0.5-far",
            "variance-4-far",
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

NOISY = {}

OPEN = {}

PERCEPTRONS = {}
