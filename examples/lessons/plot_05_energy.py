# %% [markdown]
# # Energy, gradient flows and Wasserstein geometry
#
# Tokens climb an energy. Attention without its denominator (USA) climbs straight up in the geometry
# of optimal transport; attention with it (SA) climbs the same hill in a geometry of its own.
#
# Leave out the denominator $Z_i$ of (SA), divide by $n$ instead: that is (USA) of arXiv 2312.10794.
# Both raise the energy (3.5), here of tokens (Remark 3.8):
#
# $$\mathsf E_\beta=\frac1{2\beta n^2}\sum_{i,j}e^{\beta\langle x_i,x_j\rangle},\qquad
#   \frac{d\mathsf E_\beta}{dt}=\frac1n\sum_im_i|\dot x_i|^2,\qquad
#   m_i=\begin{cases}1&\text{USA}\\Z_i/n&\text{SA.}\end{cases}$$
#
# That is (3.6) and Lemma 3.7. It is what a *gradient flow* is: $\dot x=\nabla\mathsf E_\beta$, the
# gradient taken in the metric $\frac1n\sum_im_i\langle a_i,b_i\rangle$, and the rate of the climb
# is the squared speed in that metric. The metric is flat for USA. For SA it depends on where the
# tokens are.

# %%
import numpy as np
from scipy.integrate import simpson

import tokenflock as flock
from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.meanfield import wasserstein
from tokenflock.observables import Dissipation, Energy
from tokenflock.plots import look, panels
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import dirac_energy, pair_speed, polygon_energy, uniform_energy

beta, n = 2.0, 24
options = {"t": 8, "frames": 401, "solver": RK4(h=0.01), "observe": [Energy(), Dissipation()]}
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
# $\lambda_0/2\beta$, and a single point the most, $e^\beta/2\beta$. The reason is that
# $e^{\beta\langle x,y\rangle}$ is a positive definite kernel: each of its eigenvalues on spherical
# harmonics is above zero.

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
# $W_2(\mu,\nu)$ is the least cost of carrying $\mu$ to $\nu$ when distance counts squared. A curve
# of measures has a speed in it, and for tokens that move by $\dot x_i$ it is
# $(\frac1n\sum|\dot x_i|^2)^{1/2}$. For USA its square equals $d\mathsf E/dt$: USA *is* the
# gradient flow of $\mathsf E_\beta$ for $W_2$. For SA it does not: near others $Z_i$ is large,
# moving is dear, so SA slows crowds down. The distance for which SA is a gradient flow weighs each
# step by $Z$ (Section 3.4; arXiv 2501.03096). Since $e^{-\beta}\le Z_i/n\le e^\beta$, the two
# distances differ by a factor of at most $e^{\beta/2}$.

# %% The climb, and squared $W_2$ speed over $dE/dt$: 1 for USA, down to $e^{-\beta}=0.135$ for SA.
with look() as theme:
    figure, (left, right) = panels(1, 2, size=(3.6, 2.7))
    for colour, (law, run) in zip(theme.palette, runs.items()):
        x, times = run.x.values, run.time.values
        at = np.arange(10, 200, 10)
        speed = [wasserstein(x[k - 1], x[k + 1]) / (times[k + 1] - times[k - 1]) for k in at]
        ratio = np.array(speed) ** 2 / run.dissipation.values[at]
        name = "SA" if law is SelfAttention else "USA"
        left.plot(times, run.energy, color=colour, label=name)
        right.plot(times[at], ratio, ".-", color=colour, label=name)
        if law is Unnormalised:
            assert np.abs(ratio - 1).max() < 0.01  # differences over 0.04
        else:
            assert (np.exp(-beta) < ratio).all() and (ratio < np.exp(beta)).all()
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
# Three tokens on the circle, up to rotation, are a point of a plane:
# $u=(\theta_1-\theta_2)/\sqrt2$, $v=(\theta_1+\theta_2-2\theta_3)/\sqrt6$. In these coordinates USA
# is steepest ascent, at right angles to the level lines. SA crosses them at other angles, always
# upwards: $Z_i$ of three tokens differ by a factor of at most 2, so the cosine with the gradient is
# at least $2\sqrt2/3=0.943$ (Kantorovich's inequality), that is within 19 degrees of it.


# %%
def velocity(u, v, beta, divide):
    theta = np.stack([u / np.sqrt(2) + v / np.sqrt(6), -u / np.sqrt(2) + v / np.sqrt(6),
                      -2 * v / np.sqrt(6)])  # fmt: skip
    gap = theta[:, None] - theta[None]
    weight = np.exp(beta * np.cos(gap))
    turn = -(weight * np.sin(gap)).sum(axis=1) / (weight.sum(axis=1) if divide else 3)
    along = (turn[0] - turn[1]) / np.sqrt(2), (turn[0] + turn[1] - 2 * turn[2]) / np.sqrt(6)
    return np.stack(along), weight.sum(axis=(0, 1)) / (18 * beta)


grid = np.meshgrid(np.linspace(-4, 4, 161), np.linspace(-4, 4, 161))
(usa, E), (sa, _) = (velocity(*grid, 3.0, divide) for divide in (False, True))
up = np.stack(np.gradient(E, 0.05)[::-1])  # dE/du, dE/dv by differences


def cosine(a, b):
    return (a * b).sum(axis=0) / np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))


steep = np.sqrt((up**2).sum(axis=0)) > 0.02
steep[[0, -1]] = steep[:, [0, -1]] = False  # one-sided differences there
least = [cosine(field[:, steep], up[:, steep]).min() for field in (usa, sa)]
print(f"least cosine with the gradient: USA {least[0]:.4f}, SA {least[1]:.4f}")
assert least[0] > 0.999 and 2 * np.sqrt(2) / 3 < least[1] < 0.98

# %% Ways up at $\beta=3$: USA (blue) at right angles to the level lines, SA (red) not.
with look() as theme:
    figure, (ax,) = panels(1, 1, size=(4.6, 4.2))
    ax.contour(*grid, np.log(E), levels=18, colors=theme.soft, linewidths=0.5)
    for field, colour in ((usa, theme.palette[0]), (sa, theme.palette[2])):
        seeds = [(1.9 * np.cos(a), 1.9 * np.sin(a)) for a in np.arange(12) * np.pi / 6 + 0.1]
        ax.streamplot(*grid, *field, start_points=seeds, color=colour, linewidth=1,
                      integration_direction="forward", arrowsize=0.8)  # fmt: skip
    ax.set(xlabel="u", ylabel="v", aspect="equal", title="consensus is the peak in the middle")
figure

# %% Live: USA. Beside it lesson [3](plot_03_sphere.py) has SA: drag $\beta$ and compare the clocks.
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
print(skew)
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
# 3. Print has $\mathcal X[\mu]=\nabla\log\int\beta^{-1}e^{\beta\langle x,y\rangle}d\mu(y)$ in
#    (3.7). Is that right?

# %% [markdown] tags=["answer"]
# A factor is missing: $\nabla\log Z=\beta\mathcal X$, so $\mathcal X=\beta^{-1}\nabla\log Z$. By
# differences:

# %% tags=["answer"]
y = np.array([0.3, 1.0, 2.5])


def log_z(theta):
    return np.log(np.mean(np.exp(beta * np.cos(theta - y))))


weight = np.exp(beta * np.cos(0.7 - y))
X = -(weight * np.sin(0.7 - y)).sum() / weight.sum()
assert abs((log_z(0.7 + 1e-5) - log_z(0.7 - 1e-5)) / 2e-5 - beta * X) < 1e-8
