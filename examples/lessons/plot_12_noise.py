# %% [markdown]
# # Noise
#
# Noise on each token fights consensus, and where the two balance there is a phase transition.
# Noise that all tokens share does the opposite: it brings them together, or locks them in pairs.
#
# With independent noise of strength $1/\kappa$ on each token the flow is a stochastic equation
# whose drift depends on the measure of all tokens (a *McKean-Vlasov* equation), and the measure
# diffuses:
#
# $$dX_i=P_{X_i}\Bigl(\frac1n\sum_je^{\beta\langle X_i,X_j\rangle}X_j\Bigr)dt
# +\sqrt{2/\kappa}\,dW_i,\qquad\partial_t\mu+\operatorname{div}(\mathcal X[\mu]\mu)
# =\tfrac1\kappa\Delta\mu,$$
#
# here for attention without softmax (USA; section on noise of arXiv 2512.01868, whose signs are
# printed the other way round). $W_i$ are independent Brownian motions on the sphere.
#
# ## Where order begins
#
# Add a ripple $\varepsilon\langle x,e\rangle$ to the uniform measure. It grows at the rate
# $(d-1)(\lambda_1/\beta-1/\kappa)$, where the kernel $e^{\beta\langle x,y\rangle}$ multiplies such
# a ripple by $\lambda_1$ ($I_1(\beta)$ on the circle; lesson [4](plot_04_measure.py)). So the
# uniform measure is unstable exactly for $\kappa>\kappa_c=\beta/\lambda_1(\beta)$: 1.7694 for
# $\beta=1$, $d=2$.

# %%
import numpy as np

from tokenflock.dynamics import Noisy, Unnormalised
from tokenflock.meanfield import Ripple, evolve
from tokenflock.theory import critical_noise, growth_rate

kappa_c = float(critical_noise(1.0, 2))
for share in (0.9, 1.1):
    kappa = share * kappa_c
    law = Noisy(Unnormalised(beta=1.0), kappa=kappa)
    run = evolve(law, Ripple(k=1, amplitude=1e-4), t=4, frames=9, points=32)
    r = run.order_parameter.values
    rate = np.log(r[-1] / r[0]) / 4
    expected = float(growth_rate(1, 1.0, 2, "USA", kappa))
    print(
        f"kappa = {share} kappa_c: the ripple grows at {rate:+.5f}, linear theory {expected:+.5f}"
    )
    assert abs(rate - expected) < 1e-4  # what is not linear is of order 1e-8

# %% [markdown]
# ## With a jump or without
#
# Beyond $\kappa_c$ there are ordered states. `branch` follows them by Newton's method, also where
# they are unstable. For small $\beta$ order grows from zero. For $\beta>\beta_*=2.4469$ (circle)
# the branch bends back at a *fold*: order comes with a jump, and between fold and $\kappa_c$ both
# states are stable (arXiv 2606.05140; $\beta_*$ solves $I_2(\beta_*)/I_1(\beta_*)=\frac12$). Of two
# stable states the one with the lower free energy,
# $\frac1\kappa\int\rho\log\rho-\mathsf{E}_\beta$, is the likelier one for many tokens.

# %% Order against $\kappa$: grows from zero at $\beta=1$, jumps at $\beta=4$ (circle: the fold).
from tokenflock.meanfield import branch
from tokenflock.plots import bifurcation, look, panels
from tokenflock.theory import tricritical_beta

figure, axes = panels(1, 2, size=(3.6, 3))
states = {}
for ax, beta in zip(axes, (1.0, 4.0), strict=True):
    unit = float(critical_noise(beta, 2))
    law = Noisy(Unnormalised(beta=beta))
    states[beta] = branch(law, within=(0.9 * unit, 1.15 * unit), points=96)
    bifurcation(states[beta], ax=ax, title=False, legend=beta == 4)
    with look(ax):
        ax.set_title(rf"$\beta={beta:g}$")
unit = float(critical_noise(4.0, 2))
fold, equal = float(states[4.0].fold[0]) / unit, float(states[4.0].transition[0]) / unit
print(f"beta_* = {tricritical_beta(2):.4f}; at beta = 4 the fold is at {fold:.4f} kappa_c,")
print(f"and ordered states have the lower free energy from {equal:.4f} kappa_c on")
assert states[1.0].fold.size == 0 and abs(fold - 0.9444) < 1e-3 and abs(equal - 0.9551) < 1e-3
figure

# %% Live: 96 tokens at $\beta=4$ with noise. Drag $\kappa$ across $\kappa_c=0.4099$.
import tokenflock as flock
from tokenflock.starts import Uniform

flock.lab(Noisy(Unnormalised(beta=4.0), kappa=0.6), Uniform(n=96, d=2), embed=True, play=True)

# %% [markdown]
# ## Noise that all tokens share
#
# Draw the value matrix anew in every layer, the same for all tokens. As layers get thin this is a
# noise $dW\,u_i$ with one matrix $W$ and $u_i=\sum_jA_{ij}x_j$ (arXiv 2601.21942). Now tokens
# move together. Two of them come to consensus, where $1-\gamma$ falls like $e^{-(d-1)t/d}$, or
# they lock opposite each other. That state attracts if and only if $\cosh^2\beta>(d-1)/2$ (derived
# here). For $d=8$ that is $\beta>1.2389$. The cosine of two tokens is a diffusion in one dimension,
# and its scale function gives the share of pairs that end opposite: 0 at $\beta=1$, 0.286 at
# $\beta=4$ (derived here). `alone` leaves out the drift.

# %%
from tokenflock.dynamics import Block
from tokenflock.observables import MinimumCosine
from tokenflock.parts import ValueNoise
from tokenflock.solvers import Layer

pairs = flock.ensemble(
    Block(noise=ValueNoise(alone=True)),
    Uniform(n=2, d=8),
    over={"beta": [1.0, 4.0]},
    repeats=256,
    t=40.0,
    frames=2,
    solver=Layer(h=0.1),
    observe=[MinimumCosine()],
    keep=True,
)
opposite = (pairs.minimum_cosine.isel(time=-1) < 0).mean("repeat")
error = np.sqrt(0.286 * 0.714 / 256)
for beta, share in zip(pairs.beta.values, opposite.values):
    print(f"beta = {beta:g}: {share:.3f} of the pairs end opposite each other")
print(f"expected 0 and 0.286, the second with a standard error of {error:.3f}")
assert opposite[0] < 0.03 and abs(opposite[1] - 0.286) < 4 * error

# %% [markdown]
# ## Exercises
#
# 1. At $\beta=4$ and $\kappa=0.98\kappa_c$, show that two different measures are stable.

# %% tags=["answer"]
from tokenflock.meanfield import VonMises, stationary

law = Noisy(Unnormalised(beta=4.0), kappa=0.98 * unit)
rest = {
    name: stationary(law, start, points=64)
    for name, start in (("flat", Ripple(amplitude=1e-3)), ("peaked", VonMises(kappa=4.0)))
}
for name, measure in rest.items():
    order, stable = float(measure.order_parameter), bool(measure.stable)
    print(f"from a {name} guess: order {order:.4f}, stable: {stable}")
assert all(bool(measure.stable) for measure in rest.values())
assert float(rest["peaked"].order_parameter) > 0.5 > 1e-6 > float(rest["flat"].order_parameter)

# %% [markdown] tags=["answer"]
# Between fold and $\kappa_c$ what you see depends on where you came from: hysteresis. The film is
# `tokenflock reproduce noisy-transformers/hysteresis`.

# %% [markdown]
# 2. Little noise: how wide is a cluster of SA on the circle at $\kappa=200$?

# %% [markdown] tags=["answer"]
# Near consensus the softmax weights are equal and
# $d\theta_i=-(\theta_i-\bar\theta)dt+\sqrt{2/\kappa} \,dW_i$, whatever $\beta$. This is an
# Ornstein-Uhlenbeck process: variance $\frac1\kappa(1-\frac1n)=0.00484$ for $n=32$. Below, one
# run to $t=200$: its error is about $\sqrt{2/(32\cdot200)}=2\,\%$. Steps of 0.02 add 1 %, and the
# curvature that was left out is of order $1/\kappa$.

# %% tags=["answer"]
from tokenflock.dynamics import SelfAttention
from tokenflock.solvers import EulerMaruyama
from tokenflock.starts import Cap

noisy = Noisy(SelfAttention(beta=1.0), kappa=200.0)
steps = EulerMaruyama(h=0.02)
run = flock.simulate(noisy, Cap(n=32, d=2, angle=0.1), t=200, frames=401, solver=steps)
mean = run.x.mean("particle")
side = (
    run.x.values[..., 0] * mean.values[:, None, 1] - run.x.values[..., 1] * mean.values[:, None, 0]
)
angle = np.arcsin(side / np.linalg.norm(mean.values, axis=1)[:, None])[20:]
print(f"variance {angle.var(axis=1).mean():.5f}, expected {(1 - 1 / 32) / 200:.5f}")
assert abs(angle.var(axis=1).mean() / ((1 - 1 / 32) / 200) - 1) < 0.1

# %% [markdown]
# 3. Where is $\kappa_c$ on $S^2$ at $\beta=1$, and as $\beta\to0$ in any dimension?

# %% [markdown] tags=["answer"]
# By Funk and Hecke,
# $\lambda_1=\frac12\int_{-1}^1te^{\beta t}dt=\cosh\beta/\beta-\sinh\beta/\beta^2=0.3679$ at
# $\beta=1$, so $\kappa_c=2.718=e$. As $\beta\to0$, $\lambda_1\approx\beta/d$ and $\kappa_c\to d$.

# %% tags=["answer"]
print(critical_noise(1.0, 3), critical_noise(1e-6, np.array([2, 3, 8])))
assert abs(critical_noise(1.0, 3) - np.e) < 1e-12
assert np.allclose(critical_noise(1e-6, np.array([2, 3, 8])), [2, 3, 8], rtol=1e-5)

# %% [markdown]
# ## Where next
#
# [Real models](plot_13_real_models.py). More:
# [gradients, spectra, branches](../../docs/gradients.md); an attack on the same question
# [with softmax](../problems/plot_softmax_jump.py).
