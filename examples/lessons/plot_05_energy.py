# %% [markdown]
# # Energy, gradient flows and Wasserstein geometry
#
# Tokens climb an energy. Attention without its denominator (USA) climbs straight up in the geometry
# of optimal transport; attention with it (SA) climbs the same hill in a geometry of its own.
#
# Leave out the denominator $Z_i$ of (SA) and divide by $n$ instead. That is (USA) of arXiv
# 2312.10794, unnormalised self-attention:
# $\dot x_i=P_{x_i}\frac1n\sum_je^{\beta\langle x_i,x_j\rangle}x_j$. Both laws raise the energy
# (3.5), here of tokens (Remark 3.8):
#
# $$\mathsf{E}_\beta=\frac1{2\beta n^2}\sum_{i,j}e^{\beta\langle x_i,x_j\rangle},\qquad
#   \frac{d\mathsf{E}_\beta}{dt}=\frac1n\sum_im_i|\dot x_i|^2,\qquad
#   m_i=\begin{cases}1&\text{USA}\\Z_i/n&\text{SA.}\end{cases}$$
#
# That is (3.6) and Lemma 3.7. It is the mark of a *gradient flow*, $\dot x=\nabla\mathsf{E}_\beta$:
# tokens go where the energy rises fastest, and it rises at the rate of their squared speed. What
# counts as speed is the *metric* $\frac1n\sum_im_i\langle a_i,b_i\rangle$ of two motions $a$ and
# $b$. For USA it is the usual one. For SA moving token $i$ costs $Z_i/n$ times as much, which
# depends on where the tokens are.

# %%
import numpy as np
from scipy.integrate import simpson
from scipy.optimize import linear_sum_assignment

import tokenflock as flock
from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.observables import Dissipation, Energy
from tokenflock.plots import look, panels
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import dirac_energy, pair_speed, polygon_energy, uniform_energy

beta, n = 2.0, 24
options = {"t": 8, "frames": 401, "solver": RK4(h=0.02), "observe": [Energy(), Dissipation()]}
runs = {law: flock.simulate(law(beta=beta), Uniform(n=n, d=3), seed=2, **options)
        for law in (SelfAttention, Unnormalised)}  # fmt: skip
for law, run in runs.items():
    climbed = run.energy.values[-1] - run.energy.values[0]
    summed = simpson(run.dissipation.values, x=run.time.values)
    print(f"{law.__name__:13s} climbed {climbed:.8f}, integral of the squared speed {summed:.8f}")
    assert abs(climbed / summed - 1) < 1e-5  # Simpson's error at steps of 0.02
    assert (np.diff(run.energy.values) >= -1e-12).all()

# %% [markdown]
# ## Top and bottom of the hill
#
# Proposition 3.4: over all measures on the sphere the uniform one has the least energy,
# $\lambda_0/2\beta$ with $\lambda_0$ the mean of $e^{\beta\langle x,y\rangle}$ over all $y$, and a
# single point the most, $e^\beta/2\beta$. The reason is that $e^{\beta\langle x,y\rangle}$ is a
# positive definite kernel: each of its eigenvalues on spherical harmonics is above zero.

# %%
low, high = uniform_energy(beta, d=3), dirac_energy(beta)
for run in runs.values():
    assert low <= run.energy.values.min() and run.energy.values.max() <= high * (1 + 1e-9)
# On the circle evenly spaced tokens are uniform to all digits once there are a few dozen.
assert abs(polygon_energy(64, beta) / uniform_energy(beta, d=2) - 1) < 1e-12
print(f"uniform {low:.4f} <= start {runs[SelfAttention].energy.values[0]:.4f} <= point {high:.4f}")

# %% [markdown]
# ## The geometry of mass
#
# $W_2(\mu,\nu)^2$, the squared *Wasserstein distance*, is the least mean squared distance by which
# $\mu$ is carried to $\nu$. A moving measure has a speed in it: $(\frac1n\sum|\dot x_i|^2)^{1/2}$
# for tokens. For USA its square equals $d\mathsf{E}/dt$: USA *is* the gradient flow of
# $\mathsf{E}_\beta$ for $W_2$. For SA it does not: near others $Z_i$ is large and moving is dear,
# so SA slows crowds down. The distance for which SA is a gradient flow weighs each step by $Z$
# (Section 3.4; arXiv 2501.03096). Since $e^{-\beta}\le Z_i/n\le e^\beta$, the two distances differ
# by a factor of at most $e^{\beta/2}$.
#
# Between two sets of $n$ tokens of equal mass the cheapest way of carrying is a matching, which is
# found exactly (`meanfield.wasserstein` also takes other masses and densities).


# %% The climb, and squared $W_2$ speed over $dE/dt$: 1 for USA, down to $e^{-\beta}=0.135$ for SA.
def w2(x, y):
    chord = np.linalg.norm(x[:, None] - y, axis=2)
    cost = (2 * np.arcsin(np.minimum(chord / 2, 1))) ** 2  # squared angles
    return np.sqrt(cost[linear_sum_assignment(cost)].mean())


with look() as theme:
    figure, (left, right) = panels(1, 2, size=(3.6, 2.7))
    for colour, (law, run) in zip(theme.palette, runs.items()):
        x, times = run.x.values, run.time.values
        at = np.arange(10, 200, 10)
        speed = [w2(x[k - 1], x[k + 1]) / (times[k + 1] - times[k - 1]) for k in at]
        ratio = np.array(speed) ** 2 / run.dissipation.values[at]
        name = "SA" if law is SelfAttention else "USA"
        left.plot(times, run.energy, color=colour, label=name)
        right.plot(times[at], ratio, ".-", color=colour, label=name)
        if law is Unnormalised:
            assert np.abs(ratio - 1).max() < 0.01  # differences over 0.04
        else:
            assert (0.99 * np.exp(-beta) < ratio).all() and (ratio < np.exp(beta)).all()
            assert abs(ratio[0] - 1) > 0.1
    for level in (low, high):
        left.axhline(level, color=theme.soft, lw=0.7, ls="--")
    left.set(xlabel="time", ylabel="energy", title=rf"$\beta$ = 2, n = {n}, d = 3")
    right.set(xlabel="time", ylabel="speed$^2$ / (dE/dt)", ylim=(0, 1.6))
    left.legend(loc="center right")
    right.legend()
figure

# %% [markdown]
# ## The same hill, two ways up
#
# On the circle tokens are angles. USA is steepest ascent in them. SA divides each component of the
# gradient by its own $Z_i$, so it turns aside, but never down: with $\kappa=\max Z_i/\min Z_i$ the
# cosine with the gradient is at least $2\sqrt\kappa/(1+\kappa)$ (Kantorovich's inequality). To
# compare the ways and not the clocks, plot angles against the height that has been reached.


# %%
def turning(theta, divide, beta=4.0):
    """(d theta/dt, energy scaled to one at the top, Z) of tokens on the circle."""
    gap = theta[:, None] - theta[None]
    weight = np.exp(beta * (np.cos(gap) - 1))  # the factor e^-beta only sets the clock of USA
    Z = weight.mean(axis=1)
    return -(weight * np.sin(gap)).mean(axis=1) / (Z if divide else 1), weight.mean(), Z


def climb(theta, divide, h=0.05, steps=1200):
    path = [theta]
    for _ in range(steps):
        half = theta + h / 2 * turning(theta, divide)[0]
        theta = theta + h * turning(half, divide)[0]
        path.append(theta)
    return np.array(path), np.array([turning(theta, divide)[1] for theta in path])


first = np.sort(np.random.default_rng(5).uniform(-2.6, 2.6, 12))
straight, (aside, _, Z) = turning(first, False)[0], turning(first, True)
cosine = straight @ aside / np.linalg.norm(straight) / np.linalg.norm(aside)
kappa = Z.max() / Z.min()
print(f"kappa = {kappa:.2f}: cosine {cosine:.3f}, bound {2 * np.sqrt(kappa) / (1 + kappa):.3f}")
assert 2 * np.sqrt(kappa) / (1 + kappa) <= cosine < 0.99
nudge = 1e-5 * np.eye(12)  # the gradient by differences: E is scaled by 2 beta
slope = [(turning(first + e, False)[1] - turning(first - e, False)[1]) / 2e-5 for e in nudge]
assert np.allclose(12 * np.array(slope) / (2 * 4.0), straight, atol=1e-8)

# %% Twelve tokens, one start, $\beta=4$: where each is when the energy has reached a given height.
split = []
with look() as theme:
    figure, (ax,) = panels(1, 1, size=(6.4, 3.6))
    for divide, colour, name in ((False, theme.palette[1], "USA"), (True, theme.palette[0], "SA")):
        angles, height = climb(first, divide)
        assert (np.diff(height) >= -1e-12).all()
        lines = ax.plot(angles, height, color=colour, lw=1.2)
        lines[0].set_label(name)
        split.append(np.flatnonzero(np.diff(angles[-1]) > 1))  # where one cluster ends
    assert np.array_equal(*split) and len(split[0]) == 1
    ax.set(xlabel=r"angle $\theta$", ylabel="energy / top")
    ax.legend(loc="upper right")
figure

# %% [markdown]
# A token far from others has a small $Z_i$: under SA it sets out early, as the one on the right
# does. Under USA crowds close up first. At the end both have the same two clusters, and wait
# (lesson [7](plot_07_metastability.py)).

# %% Live: USA. Drag $\beta$: it speeds USA up, and slows SA (lesson 3) down.
flock.lab(Unnormalised(beta=2.0), Uniform(n=64, d=3), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. Is SA on the circle the gradient of *some* function in the usual metric?

# %% [markdown] tags=["answer"]
# No. A gradient has a symmetric Jacobian in the angles. That of USA is symmetric, that of SA is
# not.

# %% tags=["answer"]
crooked = {law: flock.jacobian(law(beta=beta), Uniform(n=5, d=2)) for law in runs}
skew = {law.__name__: np.abs(J - J.T).max() for law, J in crooked.items()}
print({name: f"{value:.1e}" for name, value in skew.items()})
assert skew["Unnormalised"] < 1e-12 and skew["SelfAttention"] > 0.01

# %% [markdown]
# 2. For $n=2$ both have the same orbits. How do the clocks compare?

# %% [markdown] tags=["answer"]
# $Z_1=Z_2=e^\beta+e^{\beta\gamma}$, so USA is SA times $Z/2$: $e^\beta$ times faster near
# consensus, where $1-\gamma$ falls like $e^{-2t}$ (SA) and $e^{-2e^\beta t}$ (USA).

# %% tags=["answer"]
gamma = np.linspace(-0.9, 0.9, 7)
ratio = pair_speed(gamma, beta, unnormalised=True) / pair_speed(gamma, beta)
assert np.allclose(ratio, (np.exp(beta) + np.exp(beta * gamma)) / 2)

# %% [markdown]
# 3. Print has $\mathcal{X}[\mu]=\nabla\log\int\beta^{-1}e^{\beta\langle x,y\rangle}d\mu(y)$ in
#    (3.7). Is that right?

# %% [markdown] tags=["answer"]
# A factor is missing: $\nabla\log Z=\beta\mathcal{X}$, so $\mathcal{X}=\beta^{-1}\nabla\log Z$. By
# differences:

# %% tags=["answer"]
y = np.array([0.3, 1.0, 2.5])


def log_z(theta):
    return np.log(np.mean(np.exp(beta * np.cos(theta - y))))


weight = np.exp(beta * np.cos(0.7 - y))
X = -(weight * np.sin(0.7 - y)).sum() / weight.sum()
assert abs((log_z(0.7 + 1e-5) - log_z(0.7 - 1e-5)) / 2e-5 - beta * X) < 1e-8

# %% [markdown]
# ## Where next
#
# Where the climb ends: lesson [6](plot_06_clustering.py). All statements of Section 3 with a
# verdict each: `tokenflock reproduce perspective/gradient-flow`.
