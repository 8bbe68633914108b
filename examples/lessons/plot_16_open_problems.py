# %% [markdown]
# # Open problems
#
# What is not proved can still be measured. Here is what the papers leave open, what a computer
# says about each, and how to make an attack of your own that others can trust. Problems are
# numbered as in arXiv 2312.10794 unless said.
#
# - **How long do clusters of random tokens last?** Problem 1. Known for
#   separated clusters (arXiv 2410.06833). [Lifetimes](../problems/plot_lifetimes.py): shorter
#   than $e^{2\beta}$ up to $\beta=4$, undecided beyond.
# - **How sharp is the front of the phase diagram?** After Figure 3 and Problem 2 there. Known:
#   its place for $d\to\infty$. [Sharp front](../problems/plot_sharp_front.py): $d^{-1/2}$,
#   supported.
# - **Stable states for $-\frac23<\beta<-0.16$?** Left open by arXiv 2507.22857, which solves
#   Problem 3. [Negative beta](../problems/plot_negative_beta.py): undecided.
# - **How long do tokens stay independent, and what is the equation for pairs (BBGKY)?** Problem 4.
#   Known: the slope at $t=0$, exercise 2. [Chaos](../problems/plot_chaos.py): for a time
#   $\log n/2g$ from a uniform start, supported; for all times if the start has a direction.
# - **One curve for random $Q$ and $K$?** Problem 2. Known: with $V=I$ all tokens meet (Theorem
#   6.3). [Random matrices](../problems/plot_random_matrices.py): the curve of $\beta=0$ within 0.09
#   up to $\beta=1$, refuted at $\beta=2$.
# - **Does Sinkhorn's attention cluster?** Remark 3.5. Known: growth rates.
#   [Sinkhorn](../problems/plot_sinkhorn.py): supported.
# - **Does noisy softmax attention order with a jump?** After arXiv 2606.05140: without softmax it
#   does. [Softmax jump](../problems/plot_softmax_jump.py): refuted near $\kappa_c$.
# - **Opposite clusters of more than two tokens?** After arXiv 2601.21942, known for two.
#   [Antipodal many](../problems/plot_antipodal_many.py): four yes, three no.
# - **Which solution has the $\beta=\infty$ system?** Problem 6: three from one start, exercise 3.
#   [Hardmax](../problems/plot_hardmax.py): that large $\beta$ chooses one is refuted.
#
# Verdicts are about what was measured. None is a proof.
#
# ## How an attack is made
#
# 1. **A number.** Turn the question into one that a run can answer: a share, an exponent, a sign.
# 2. **A control.** Run the method where the answer is known. If it cannot find the triangle at
#    $\beta=-1$, its silence at $\beta=-0.5$ means nothing.
# 3. **An error.** Say what the run could not have seen.
# 4. **A verdict**: supported, refuted or undecided. And what to try next.
#
# Take the third question. Three equal clusters at 120 degrees have the eigenvalue
# $(\frac12+\frac34\beta)e^{-\beta/2}$ under USA, so they are stable exactly below $-\frac23$. The
# number: the rate at which a start near the triangle leaves it.

# %% Distance from the triangle for starts near it: below $\beta=-\frac23$ they return.
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import Unnormalised
from tokenflock.plots import look, panels
from tokenflock.solvers import RK4
from tokenflock.starts import Given
from tokenflock.theory import triangle_eigenvalue

angle = 2 * np.pi * np.arange(3) / 3 + [1e-3, -1e-3, 0.0]
start = Given(np.stack([np.cos(angle), np.sin(angle)], axis=1))
figure, axes = panels(1, 1, size=(6.4, 2.8))
with look(figure) as theme:
    for colour, beta in zip(theme.palette, (-1.0, -0.8, -0.6, -0.4), strict=False):
        run = flock.simulate(Unnormalised(beta=beta), start, t=12, frames=61, solver=RK4(h=0.05))
        order = np.linalg.norm(run.x.values.mean(axis=1), axis=1)  # 0 at the triangle
        axes[0].semilogy(run.time, order, color=colour, label=rf"$\beta={beta:g}$")
        early = run.time.values <= 4
        rate = np.polyfit(run.time.values[early], np.log(order[early]), 1)[0]
        exact = float(triangle_eigenvalue(beta))
        print(f"beta = {beta:g}: rate {rate:+.3f}, eigenvalue {exact:+.3f}")
        assert abs(rate - exact) < 5e-3  # the start is 1e-3 from the triangle
    axes[0].set(xlabel="time $t$", ylabel="order parameter")
    axes[0].legend(loc="lower left")
figure

# %% Live: five tokens under USA inside the gap, $\beta=-0.5$: slowly, they still meet.
from tokenflock.starts import Uniform

flock.lab(Unnormalised(beta=-0.5), Uniform(n=5, d=2), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. You tried $N$ random starts and all came to consensus. How large may the share of other
#    outcomes still be?

# %% [markdown] tags=["answer"]
# If the share is $p$, no such start is seen with probability $(1-p)^N$. That is below 5 % for
# $p>1-0.05^{1/N}\approx3/N$: the rule of three. With 64 starts, 4.6 %.

# %% tags=["answer"]
print(f"N = 64: {1 - 0.05 ** (1 / 64):.3f}; N = 20,000: {1 - 0.05 ** (1 / 20_000):.1e}")
assert abs(1 - 0.05 ** (1 / 64) - 3 / 64) < 0.002

# %% [markdown]
# 2. Problem 4 asks for a closed equation of the law of $\theta_2-\theta_1$. Check the one thing
#    that is exact: for uniform independent angles under USA,
#    $\frac{d}{dt}\mathbb E\,\cos(\theta_2-\theta_1)=2I_1(\beta)/(\beta n)$ at $t=0$.

# %% [markdown] tags=["answer"]
# At $t=0$ a third token is independent of both and pulls evenly, so only the pair itself counts:
#
# $$\mathbb E[-\sin(\theta_2-\theta_1)(\dot\theta_2-\dot\theta_1)]
# =\frac2n\mathbb E[\sin^2\theta\,e^{\beta\cos\theta}]=\frac2n\frac{I_1(\beta)}{\beta}.$$
#
# Later the third token knows both, and there the hierarchy begins.

# %% tags=["answer"]
from tokenflock.theory import initial_correlation_speed

n, beta = 4, 1.5
theta = np.random.default_rng(0).uniform(0, 2 * np.pi, (200_000, n))
apart = theta[:, :, None] - theta[:, None]
speed = -(np.exp(beta * np.cos(apart)) * np.sin(apart)).mean(-1)
slope = -np.sin(theta[:, 1] - theta[:, 0]) * (speed[:, 1] - speed[:, 0])
error = slope.std() / np.sqrt(len(slope))
exact = float(initial_correlation_speed(n, beta, 2))
print(f"measured {slope.mean():.4f} +- {error:.4f}, exact {exact:.4f}")
assert abs(slope.mean() - exact) < 4 * error

# %% [markdown]
# 3. Problem 6: at $\beta=\infty$ a token follows the one it likes best. Start at $z_1=(1,1)$,
#    $z_2=(-1,1)$, $z_3=(0,0)$ (Example 9.3). What may $z_3$ do?

# %% [markdown] tags=["answer"]
# $\langle z_3,z_j\rangle=0$ for all $j$: a tie. It may follow $z_1$, follow $z_2$, or listen to
# all three. Large finite $\beta$ chooses: $z_3=0$ gives equal weights, so it moves to the mean,
# straight up, and stays in the tie of $z_1$ and $z_2$. A shift of $10^{-3}$ to one side makes it
# choose. In the rescaled system $\dot z_3=\sum_jA_{3j}(z_j-z_3)$:

# %% tags=["answer"]
for shift in (0.0, 1e-3):
    z = np.array([[1.0, 1.0], [-1.0, 1.0], [shift, 0.0]])
    for _ in range(4000):
        logits = 2000 * z[2] @ z.T
        weight = np.exp(logits - logits.max())
        z[2] += 1e-3 * (weight / weight.sum() @ z - z[2])
    print(f"beginning at {shift:g}: z_3 goes to {z[2].round(3)}")
    assert abs(z[2, 0] - (shift > 0)) < 0.05

# %% [markdown]
# ## Where next
#
# Take the **Next** of an attack, or a problem of your own: a new attack is
# [a new script](../../docs/howto/new-lesson.md). A study with claims is a file in `papers/` with
# `compute`, `draw` and `claims`; those of this library: `tokenflock reproduce open-problems`. Then
# read the [ten questions](../../docs/questions.md).
