# %% [markdown]
# # Which way does attention go at infinite beta?
#
# At $\beta=\infty$ a token follows the one it likes best. Where it likes two alike, the equation
# has several solutions; does large finite $\beta$ choose one (Problem 6 of arXiv 2312.10794)?
#
# **Known**: the system is $\dot z_i=\frac1{|C_i|}\sum_{j\in C_i}(z_j-z_i)$ with
# $C_i=\arg\max_j\langle z_i,z_j\rangle$, (9.4) to (9.6) with $Q=K=V=I$. In Example 9.3,
# $z_1=(1,1)$, $z_2=(-1,1)$, $z_3=0$, the third token may follow the first, the second, or both.
# **Attack**: begin beside that tie, at $z_3=(\varepsilon,0)$, with softmax weights in place of
# $C_i$. Write $z_3=(u,v)$. Then
#
# $$\dot u=a\,(\tanh\beta u-u),\qquad\dot v=a\,(1-v),\qquad a=\frac{2\cosh\beta u}
# {2\cosh\beta u+e^{-\beta(v-u^2-v^2)}},$$
#
# so while $\beta u$ is small $u=\varepsilon(1-v)^{-(\beta-1)}$ (derived here). Take
# $\varepsilon=e^{-c\beta}$: it goes to zero, and yet $z_3$ should leave the tie at the height
# $v=1-e^{-c}$, for any $c$ that you like.

# %% The way of $z_3$ for four $c$ at $\beta=160$; the height where it leaves tends to $1-e^{-c}$.
import numpy as np

from tokenflock.plots import look, panels

betas, cs = np.array([20.0, 40.0, 80.0, 160.0]), (0.25, 0.5, 1.0, 2.0)


def velocity(z):
    """Of the third token at z = (u, v), for all betas and c: the first two pull."""
    u, v = z
    b = betas[:, None]
    pull = 1 / (1 + np.exp(b * (u**2 + v**2 - v)) / (2 * np.cosh(b * u)))
    return np.array([pull * (np.tanh(b * u) - u), pull * (1 - v)])


z, h, path = np.array([np.exp(-np.outer(betas, cs)), np.zeros((4, 4))]), 2.5e-3, []
for _ in range(2400):  # RK4 to t = 6
    path.append(z)
    a = velocity(z)
    b = velocity(z + h / 2 * a)
    c = velocity(z + h / 2 * b)
    z = z + h / 6 * (a + 2 * b + 2 * c + velocity(z + h * c))
path = np.array(path)  # time, (u, v), beta, c
out = np.argmax(path[:, 0] > 1 / betas[:, None], axis=0)
left = -np.log1p(-np.take_along_axis(path[:, 1], out[None], axis=0)[0])  # where u = 1/beta
linear = (np.outer(betas, cs) - np.log(betas)[:, None]) / (betas[:, None] - 1)
figure, axes = panels(1, 2, size=(3.4, 2.8))
with look(figure) as theme:
    for k, (colour, c) in enumerate(zip(theme.palette, cs, strict=False)):
        axes[0].plot(*path[:, :, -1, k].T, color=colour, label=f"$c={c:g}$")
        axes[1].plot(1 / betas, left[:, k], "o-", color=colour, markersize=4)
        axes[1].plot(0, c, "x", color=colour)
        print(f"c = {c:g}: -log(1 - v) where it leaves {left[:, k].round(3)},"
              f" linear theory {linear[:, k].round(3)}")  # fmt: skip
    assert np.abs(left - linear)[-1].max() < 0.01
    assert (np.abs(left - cs)[-1] < np.abs(left - cs)[0]).all()
    axes[0].set(xlabel="$u$", ylabel="$v$", xlim=(-0.05, 1.05))
    axes[0].legend(loc="lower right", fontsize="small")
    axes[1].set(xlabel=r"$1/\beta$", ylabel=r"$-\log(1-v)$ where it leaves")
figure

# %% [markdown]
# So every solution that waits in the tie for a while and then goes to one side is a limit of
# softmax attention. Does this matter to starts that are not chosen? Ties are rare, but $\beta=10$
# is not $\infty$. Take 1,000 random starts of six tokens in the plane, all of which move, and count
# those whose tokens at $t=4$ are not within $0.1$ of where $\beta=\infty$ brings them. The control
# is the library's `Hardmax` on one start.

# %% Share of random starts that end elsewhere than at $\beta=\infty$, against $\beta$.
import tokenflock as flock
from tokenflock.dynamics import Hardmax
from tokenflock.solvers import Euler


def ends(z, beta, h=0.02, t=4.0):
    """Where all starts z (start, token, coordinate) are at time t."""
    for _ in range(round(t / h)):
        S = z @ z.transpose(0, 2, 1)
        S = S - S.max(axis=2, keepdims=True)
        A = np.exp(beta * S) if np.isfinite(beta) else (S > -1e-9).astype(float)
        z = z + h * (A / A.sum(axis=2, keepdims=True) @ z - z)
    return z


starts = np.random.default_rng(0).normal(size=(1000, 6, 2))
hard = ends(starts, np.inf)
control = flock.simulate(Hardmax(), starts[0], t=4, frames=2, solver=Euler(h=0.02)).x.values[-1]
assert np.abs(control - hard[0]).max() < 1e-8
grid = np.array([10.0, 20.0, 40.0, 80.0, 160.0])
other = np.array([(np.abs(ends(starts, b) - hard).max(axis=(1, 2)) > 0.1).mean() for b in grid])
error = np.sqrt(other * (1 - other) / len(starts))
slope = np.polyfit(np.log(grid), np.log(other), 1, w=other / error)[0]
print("share elsewhere", other.round(3), "+-", error.round(3), f"; power of beta {slope:.2f}")
assert (np.diff(other) < 0).all()
figure, axes = panels(1, 1, size=(5.2, 2.8))
with look(figure) as theme:
    axes[0].errorbar(grid, other, 2 * error, fmt="o", color=theme.palette[0])
    axes[0].plot(grid, other[0] * (grid / 10) ** slope, "--", color=theme.soft,
                 label=rf"$\beta^{{{slope:.2f}}}$")  # fmt: skip
    axes[0].set(xlabel=r"$\beta$", ylabel="share elsewhere", xscale="log", yscale="log")
    axes[0].legend()
figure

# %% [markdown]
# **Verdict**: refuted that large $\beta$ chooses a solution at a tie: with
# $\varepsilon=e^{-c\beta}$ every waiting time is a limit, so the choice is made by the start, not
# by the temperature. Supported that random starts do not care in the end: the share of those that
# end elsewhere than at $\beta=\infty$ falls, about like $\beta^{-0.64}$ from 10 to 160. Nothing
# says that the power is the same beyond. **Open**: Problem 6 itself, a principle that picks one
# solution, and the true clock: under (9.3) with $V=I$ the effective $\beta$ is $\beta e^{2t}$,
# which grows while a token waits. **Next**: noise in place of $\varepsilon$; $V\ne I$; the exponent
# for more tokens and dimensions.
