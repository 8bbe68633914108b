# %% [markdown]
# # The circle and Kuramoto
#
# In the plane a token is an angle, and attention at $\beta=0$ is Kuramoto's model of oscillators
# that fall into step. Much is solved exactly here, so theory and code can be compared to many
# digits.
#
# Write $x_i=(\cos\theta_i,\sin\theta_i)$. The tangent part of $x_j$ at $x_i$ is
# $\sin(\theta_j-\theta_i)$, so self-attention (SA) becomes (7.1) of arXiv 2312.10794,
#
# $$\dot\theta_i=\frac{\sum_j e^{\beta\cos(\theta_i-\theta_j)}\sin(\theta_j-\theta_i)}
# {\sum_j e^{\beta\cos(\theta_i-\theta_j)}},$$
#
# and at $\beta=0$ it is (7.2) there: Kuramoto's model of $n$ equal oscillators,
# $\dot\theta_i=\frac1n\sum_j\sin(\theta_j-\theta_i)$. We check both against the library's velocity,
# in double precision, which JAX has to be asked for.

# %%
import numpy as np

from tokenflock.dynamics import Kuramoto, SelfAttention
from tokenflock.precision import precision

rng = np.random.default_rng(0)
theta = rng.uniform(-np.pi, np.pi, 24)
x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
tangent = np.stack([-np.sin(theta), np.cos(theta)], axis=1)


def angular_speed(law):
    """How fast each angle turns: the velocity along the circle."""
    with precision("float64"):
        return np.sum(np.asarray(law.velocity(0.0, x, np.full(24, 1 / 24))) * tangent, axis=1)


apart = theta[:, None] - theta
kernel = np.exp(5 * np.cos(apart))
by_hand = -(kernel * np.sin(apart)).sum(1) / kernel.sum(1)
off_5 = np.abs(angular_speed(SelfAttention(beta=5.0)) - by_hand).max()
off_0 = np.abs(angular_speed(SelfAttention(beta=0.0)) - angular_speed(Kuramoto())).max()
print(f"SA at beta = 5 against (7.1): {off_5:.1e};  SA at beta = 0 against Kuramoto: {off_0:.1e}")
assert max(off_5, off_0) < 1e-12

# %% [markdown]
# ## One number tells everything
#
# Kuramoto's *order parameter* is $r=|\bar x|$, the length of the mean token: 0 for tokens spread
# evenly, 1 at consensus. Let tokens begin as a Poisson kernel, a bump on the circle whose mean of
# $\cos k\theta$ is $r_0^k$. Ott and Antonsen (2008) found that it stays a Poisson kernel, with
#
# $$\dot r=\tfrac12 r(1-r^2),\qquad r(t)=\frac{r_0}{\sqrt{r_0^2+(1-r_0^2)e^{-t}}}.$$
#
# So infinitely many equations became one. 256 tokens at the quantiles obey it to about
# $r(4)^{256}=4\cdot10^{-10}$: the mean of $\cos256\theta$ is the first that 256 points get wrong.
# At $\beta=1$ the same start leaves the family.

# %% Order parameter of 256 tokens (marks) and Ott and Antonsen's solution (line), from $r_0=0.3$.
import tokenflock as flock
from tokenflock.observables import OrderParameter
from tokenflock.plots import look, panels
from tokenflock.solvers import RK4
from tokenflock.theory import poisson_order, poisson_quantile

start = poisson_quantile((np.arange(256) + 0.5) / 256, 0.3)
tokens = np.stack([np.cos(start), np.sin(start)], axis=1)
figure, axes = panels(1, 1, size=(6, 3))
with look(figure) as theme:
    for beta, mark, colour in ((0.0, "o", theme.palette[0]), (1.0, "s", theme.palette[2])):
        law, r = SelfAttention(beta=beta), OrderParameter()
        run = flock.simulate(law, tokens, t=4, frames=21, solver=RK4(h=0.02), observe=[r])
        r = run.order_parameter.values
        axes[0].plot(run.time, r, mark, color=colour, markersize=4, label=rf"$\beta={beta:g}$")
        off = np.abs(r - poisson_order(run.time.values, 0.3)).max()
        print(f"beta = {beta:g}: farthest from the formula {off:.1e}")
        assert off < 1e-8 if beta == 0 else off > 1e-3
    exact = poisson_order(run.time.values, 0.3)
    axes[0].plot(run.time, exact, color=theme.soft, label="Ott and Antonsen")
    axes[0].set(xlabel="time $t$", ylabel="order parameter $r$", ylim=(0, 1.03))
    axes[0].legend(loc="lower right")
figure

# %% [markdown]
# ## Beyond $\beta=0$: modes, and polygons as saddles
#
# For $\beta>0$ the kernel has all harmonics, $e^{\beta\cos\theta}=\sum_kI_k(\beta)e^{ik\theta}$
# with Bessel functions $I_k$. A ripple $\cos k\theta$ of the uniform measure grows at the rate
# $k^2I_k(\beta)/(\beta I_0(\beta))$ (from Section 7 by linearising). At $\beta=0$ only $k=1$
# grows: one cluster. At $\beta=5$ the fastest is $k=3$: three clusters come first.
#
# Then they wait. $k$ equal clusters at the corners of a regular polygon are at rest, but not
# stable: the Jacobian there has positive eigenvalues. They are small, and the inverse of the
# largest is how long the clusters last. `spectrum` computes it by automatic differentiation and
# agrees with the closed form.

# %%
from tokenflock.starts import Polygon
from tokenflock.theory import fastest_mode, growth_rate, polygon_growth, polygon_lifetime

print("fastest ripple at beta = 1, 5, 9:", fastest_mode(np.array([1.0, 5.0, 9.0])))
assert fastest_mode(5.0) == 3 and abs(growth_rate(3, 5.0) - 0.6826783336) < 1e-9
for k in (2, 3, 4):
    rate = float(flock.spectrum(SelfAttention(beta=4.0), Polygon(n=k)).rate[0])
    print(f"{k} clusters, beta = 4: rate {rate:.6f}, lifetime {polygon_lifetime(k, 4.0):.1f}")
    assert abs(rate / polygon_growth(k, 4.0) - 1) < 1e-9

# %% 64 random tokens at $\beta=5$: three groups by $t=8$, two merge at 13, and the last two wait.
from tokenflock.plots import trajectories
from tokenflock.starts import Uniform

law, solver = SelfAttention(beta=5.0), RK4(h=0.1)
trajectories(flock.simulate(law, Uniform(n=64, d=2), t=40, solver=solver, seed=2))

# %% [markdown]
# A state with an unstable direction is reached from almost no start. Polygons are only examples of
# states at rest. That *every* one of them but consensus is unstable, so that all tokens meet, is
# proved on the circle for $\beta\ge-0.16$ (arXiv 2507.22857; Theorem 4.3 of arXiv 2312.10794 had
# $\beta\le1$).

# %% Live: at $\beta=0$ this is Kuramoto. Drag $\beta$ to 5: three groups form first, and wait.
flock.lab(SelfAttention(beta=0.0), Uniform(n=64, d=2), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. At $\beta=0$ show that $r$ never falls.

# %% [markdown] tags=["answer"]
# With $\dot x_i=P_{x_i}\bar x$,
#
# $$\frac{d}{dt}|\bar x|^2=\frac2n\sum_i\langle\bar x,P_{x_i}\bar x\rangle
# =\frac2n\sum_i|P_{x_i}\bar x|^2\ge0,$$
#
# because $P_{x_i}$ is an orthogonal projection. This is gradient ascent of $r^2/2$, (7.3) of
# arXiv 2312.10794. On random tokens:

# %% tags=["answer"]
law, solver = SelfAttention(beta=0.0), RK4(h=0.01)
random = flock.simulate(law, Uniform(n=24, d=2), t=4, frames=401, solver=solver, seed=3)
mean = random.x.mean("particle").values
height = np.einsum("tnd,td->tn", random.x.values, mean)
speed = 2 * ((mean**2).sum(1)[:, None] - height**2).mean(1)  # (2/n) sum |P_x mean|^2
climbed = (mean[-1] ** 2).sum() - (mean[0] ** 2).sum()
print(
    f"r^2 climbed {climbed:.6f}; the integral of the right side {np.trapezoid(speed, dx=0.01):.6f}"
)
assert abs(np.trapezoid(speed, dx=0.01) / climbed - 1) < 1e-4  # trapezoidal rule, step 0.01

# %% [markdown]
# 2. Give each oscillator its own frequency, with a Lorentzian density of half width
#    $\Delta=\frac12$. From which coupling $K$ on do they synchronise, and how well at $K=2$?

# %% [markdown] tags=["answer"]
# For a Poisson kernel of each frequency Ott and Antonsen get
# $\dot r=-\Delta r+\frac K2r(1-r^2)$. So order appears at $K_c=2\Delta=1$ and is
# $r=\sqrt{1-2\Delta/K}$ beyond: $r=0.7071$ at $K=2$. With 200 oscillators $r$ is off by a few
# hundredths. Tokens of a Transformer have one frequency in common: order at every $K>0$.

# %% tags=["answer"]
omega = 0.5 * np.tan(np.pi * ((np.arange(200) + 0.5) / 200 - 0.5))
orders = {}
for K in (0.5, 2.0):
    law, options = Kuramoto(coupling=K, omega=omega), {"solver": RK4(h=0.02), "seed": 1}
    tail = flock.simulate(law, Uniform(n=200, d=2), t=60, observe=[OrderParameter()], **options)
    orders[K] = float(tail.order_parameter[-100:].mean())
    print(f"K = {K:g}: order {orders[K]:.3f}")
assert orders[0.5] < 0.2 and abs(orders[2.0] - np.sqrt(0.5)) < 0.05

# %% [markdown]
# 3. Attention at $\beta=4$ begins with 2, 3 or 4 equal clusters at the corners of a polygon.
#    Which waits longest, and what decides?

# %% [markdown] tags=["answer"]
# Two opposite clusters: their rate is $2/(1+e^{2\beta})$, so they last 1491 at $\beta=4$; three
# last 39, four 3.5. What decides is the distance to the nearest neighbour: forces carry
# $e^{\beta(\cos-1)}$, which is $e^{-2\beta}$ for opposite clusters and $e^{-1.5\beta}$ for three.

# %% tags=["answer"]
print(polygon_lifetime(np.array([2, 3, 4]), 4.0))
assert abs(polygon_lifetime(2, 4.0) / ((1 + np.exp(8)) / 2) - 1) < 1e-12

# %% [markdown]
# ## Where next
#
# [Optimal measures](plot_10_optimal_measures.py): what the energy wants if tokens may go
# anywhere. Checked claims: `tokenflock reproduce perspective/kuramoto`. Sources: Section 7 of
# arXiv 2312.10794; Ott and Antonsen, Chaos 18 (2008); arXiv 2405.18273 and 2507.22857 (all
# $\beta$).
