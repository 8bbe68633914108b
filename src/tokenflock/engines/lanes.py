"""A small compiled loop for CPUs: sixteen systems side by side in the lanes of a vector register (numba).

It serves one family only, self-attention and unnormalised attention under the layer map with the pair density, because
phase diagrams are made of it. The laws of the catalogue hold it to the one equation: it must agree with `batch`.
Each pair of tokens costs one exponential, not two; a group of systems whose pairs have all met is done.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np

from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.unnormalised import Unnormalised
from tokenflock.engines.job import Job, Values, follow
from tokenflock.observables.pair_density import PairDensity
from tokenflock.solvers.layer import Layer

LANES = 16
TILE = 4  # tokens and coordinates come in fours


def refusal(job: Job, random_matrices: bool, n: int) -> str | None:
    """Why this engine cannot do a job, or None if it can."""
    if find_spec("numba") is None:
        return "the compiled loop needs numba (pip install numba)"
    if random_matrices or type(job.law) not in (SelfAttention, Unnormalised):
        return "the compiled loop serves SelfAttention and Unnormalised only"
    if type(job.solver) is not Layer:
        return "the compiled loop knows the solver Layer only"
    if [type(one) for one in job.observables] != [PairDensity]:
        return "the compiled loop observes the pair density only"
    if job.dtype != "float32":
        return "the compiled loop works in float32"
    if n < 2:
        return "the compiled loop needs two tokens or more"
    if any(path not in ((0, "beta"), (1, "h"), (2, 0, "delta")) for path in job.paths):
        return "the compiled loop sweeps beta, h and delta only"
    return None


def run(job: Job, x: np.ndarray, swept: list[np.ndarray]) -> Values:
    """Pair densities of every system at every frame."""
    count, n, d = x.shape
    groups = -(-count // LANES)
    spare = groups * LANES - count
    tall, wide = -(-n // TILE) * TILE, -(-d // TILE) * TILE
    lanes = np.zeros((groups * LANES, tall, wide), np.float32)
    lanes[:count, :n, :d] = x
    lanes[count:, :n, :d] = x[-1:]  # the last group is filled up with copies of the last system
    lanes[:, n:, 0] = 1.0
    lanes = np.ascontiguousarray(lanes.reshape(groups, LANES, tall, wide).transpose(0, 2, 3, 1))
    beta, h, delta = (_numbers(job, swept, path, groups, spare) for path in ((0, "beta"), (1, "h"), (2, 0, "delta")))
    w = np.zeros(tall, np.float32)
    w[:n] = job.w
    usa = isinstance(job.law, Unnormalised)
    shift = np.float32(job.law.shift if usa else 1.0)
    sign = np.float32(-1.0 if job.law.repulsive else 1.0)
    settle = job.delta is not None
    density = _compiled()(lanes, w, beta, h * sign, delta, shift, not usa, np.asarray(job.steps, np.int64), settle)
    return {job.observables[0].name: density.transpose(0, 2, 1).reshape(groups * LANES, -1)[:count]}


def _numbers(job: Job, swept: list[np.ndarray], path: tuple, groups: int, spare: int) -> np.ndarray:
    """The value at a path for every lane, (groups, LANES)."""
    count = groups * LANES - spare
    if path in job.paths:
        values = np.asarray(swept[job.paths.index(path)], np.float32)
    else:
        values = np.full(count, float(follow(job.parts, path)), np.float32)
    return np.concatenate([values, np.repeat(values[-1:], spare)]).reshape(groups, LANES)


@cache
def _compiled():
    """Compile on first use; numba keeps the result on disk."""
    import numba

    number, fast = np.float32, {"reassoc", "contract", "nsz", "arcp"}

    @numba.njit(fastmath=fast, cache=True)
    def exponentials(y, bits, out):
        """out * 2^bits-as-float = e^y, lane by lane: a polynomial on [-1/2, 1/2] and the exponent bits."""
        for l in range(LANES):
            v = min(max(y[l] * number(1.4426950408889634), number(-126.0)), number(126.0))
            r = np.floor(v + number(0.5))
            f = v - r
            p = number(1.5403530393381609e-4)
            p = p * f + number(1.3333558146428443e-3)
            p = p * f + number(9.6181291076284772e-3)
            p = p * f + number(5.5504108664821580e-2)
            p = p * f + number(2.4022650695910072e-1)
            p = p * f + number(6.9314718055994531e-1)
            p = p * f + number(1.0)
            out[l] = p
            bits[l] = (np.int32(r) + np.int32(127)) << np.int32(23)

    @numba.njit(fastmath=fast, cache=True)
    def products(X, i, j, s):
        """Inner products of tokens i..i+3 with token j."""
        for a in range(4):
            for l in range(LANES):
                s[a, l] = number(0)
        for k in range(0, X.shape[1], 4):
            for l in range(LANES):
                y0, y1, y2, y3 = X[j, k, l], X[j, k + 1, l], X[j, k + 2, l], X[j, k + 3, l]
                s[0, l] += X[i, k, l] * y0 + X[i, k + 1, l] * y1 + X[i, k + 2, l] * y2 + X[i, k + 3, l] * y3
                s[1, l] += X[i + 1, k, l] * y0 + X[i + 1, k + 1, l] * y1 + X[i + 1, k + 2, l] * y2 + X[i + 1, k + 3, l] * y3
                s[2, l] += X[i + 2, k, l] * y0 + X[i + 2, k + 1, l] * y1 + X[i + 2, k + 2, l] * y2 + X[i + 2, k + 3, l] * y3
                s[3, l] += X[i + 3, k, l] * y0 + X[i + 3, k + 1, l] * y1 + X[i + 3, k + 2, l] * y2 + X[i + 3, k + 3, l] * y3

    @numba.njit(fastmath=fast, cache=True)
    def mixtures(E, X, i, k, s):
        """sum_j E[i+a, j] X[j, k] for four rows i..i+3."""
        for a in range(4):
            for l in range(LANES):
                s[a, l] = number(0)
        for j in range(0, X.shape[0], 4):
            for l in range(LANES):
                y0, y1, y2, y3 = X[j, k, l], X[j + 1, k, l], X[j + 2, k, l], X[j + 3, k, l]
                s[0, l] += E[i, j, l] * y0 + E[i, j + 1, l] * y1 + E[i, j + 2, l] * y2 + E[i, j + 3, l] * y3
                s[1, l] += E[i + 1, j, l] * y0 + E[i + 1, j + 1, l] * y1 + E[i + 1, j + 2, l] * y2 + E[i + 1, j + 3, l] * y3
                s[2, l] += E[i + 2, j, l] * y0 + E[i + 2, j + 1, l] * y1 + E[i + 2, j + 2, l] * y2 + E[i + 2, j + 3, l] * y3
                s[3, l] += E[i + 3, j, l] * y0 + E[i + 3, j + 1, l] * y1 + E[i + 3, j + 2, l] * y2 + E[i + 3, j + 3, l] * y3

    @numba.njit(fastmath=fast, cache=True)
    def kernel(X, E, w, beta, shift, least, met, buffers):
        """E_ij = w_j e^{beta (<x_i, x_j> - shift)} for all pairs, one exponential each; weight of pairs that have met."""
        s, y, bits, scale, power = buffers
        n = X.shape[0]
        for l in range(LANES):
            met[l] = number(0)
        for i in range(0, n, 4):
            for j in range(i + 4):
                products(X, i, j, s)
                for a in range(4):
                    if j > i + a:
                        continue
                    both = number(2) * w[i + a] * w[j] if j < i + a else number(0)
                    for l in range(LANES):
                        met[l] += both if s[a, l] >= least[l] else number(0)
                        y[l] = beta[l] * (s[a, l] - shift)
                    exponentials(y, bits, power)
                    for l in range(LANES):
                        e = power[l] * scale[l]
                        E[i + a, j, l] = e * w[j]
                        E[j, i + a, l] = e * w[i + a]

    @numba.njit(fastmath=fast, cache=True)
    def layer(X, Y, E, h, divide, s, z):
        """Y = normalize(X + h A X)."""
        n, d = X.shape[0], X.shape[1]
        for i in range(0, n, 4):
            for a in range(4):
                for l in range(LANES):
                    z[a, l] = number(0)
                for j in range(n):
                    for l in range(LANES):
                        z[a, l] += E[i + a, j, l]
                for l in range(LANES):
                    z[a, l] = h[l] / z[a, l] if divide else h[l]
            for k in range(d):
                mixtures(E, X, i, k, s)
                for a in range(4):
                    for l in range(LANES):
                        Y[i + a, k, l] = X[i + a, k, l] + z[a, l] * s[a, l]
            for a in range(4):
                for l in range(LANES):
                    z[a, l] = number(0)
                for k in range(d):
                    for l in range(LANES):
                        z[a, l] += Y[i + a, k, l] * Y[i + a, k, l]
                for l in range(LANES):
                    z[a, l] = number(1) / np.sqrt(z[a, l])
                for k in range(d):
                    for l in range(LANES):
                        Y[i + a, k, l] *= z[a, l]

    @numba.njit(fastmath=fast, parallel=True, cache=True)
    def loop(x, w, beta, h, delta, shift, divide, steps, settle):
        groups, n = x.shape[0], x.shape[1]
        found = np.empty((groups, len(steps), LANES), np.float32)
        pairs = number(0)
        for i in range(n):
            for j in range(i):
                pairs += number(2) * w[i] * w[j]
        for g in numba.prange(groups):
            X, Y, E = x[g].copy(), np.empty_like(x[g]), np.empty((n, n, LANES), np.float32)
            s, z = np.empty((4, LANES), np.float32), np.empty((4, LANES), np.float32)
            y, power, met = np.empty(LANES, np.float32), np.empty(LANES, np.float32), np.empty(LANES, np.float32)
            bits = np.empty(LANES, np.int32)
            least = number(1) - delta[g]
            frame = 0
            for step in range(steps[-1] + 1):
                kernel(X, E, w, beta[g], shift, least, met, (s, y, bits, bits.view(np.float32), power))
                if step == steps[frame]:
                    final = settle
                    for l in range(LANES):
                        found[g, frame, l] = met[l] / pairs
                        final = final and met[l] > pairs * number(0.999999)
                    frame += 1
                    if final:
                        found[g, frame:] = number(1)
                        break
                if step < steps[-1]:
                    layer(X, Y, E, h[g], divide, s, z)
                    X, Y = Y, X
        return found

    return loop
