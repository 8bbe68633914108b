# %% [markdown]
# # Does softmax attention order with a jump?
#
# With noise, attention without softmax (USA) orders with a jump for $\beta>\beta_*$ (2.447 on the
# circle). What is the counterpart of $\beta_*$ when weights are normalised?
#
# **Known** (arXiv 2606.05140, abstract): the jump of USA. **Attack**: stationary states of noisy
# SA solve $\rho\propto(e^{\beta\langle\cdot,\cdot\rangle}*\rho)^{\kappa/\beta}$. Expand about the
# uniform measure. With the kernel's eigenvalues $\lambda_k$, $a=\lambda_0/\lambda_1$ and
# $x=\lambda_2/\lambda_1$, the branch that leaves at $\kappa_c=\beta a$ obeys (derived here)
#
# $$\frac{\kappa_c/\kappa-1}{m_1^2}\to\frac{d(a-1)}{(d+2)a^2}
# \Bigl(\frac{(d-1)(a-1)x}{1-x}-(a+d)\Bigr),$$
#
# where $m_1$ is the order parameter. A positive value would mean a jump.

# %%
import numpy as np

from tokenflock.theory import log_kernel_eigenvalue


def bend(beta, d):
    """The right side: negative where order grows from zero."""
    first = log_kernel_eigenvalue(1, beta, d)
    a = np.exp(log_kernel_eigenvalue(0, beta, d) - first)
    x = np.exp(log_kernel_eigenvalue(2, beta, d) - first)
    return d * (a - 1) / ((d + 2) * a**2) * ((d - 1) * (a - 1) * x / (1 - x) - (a + d))


grid = np.geomspace(0.01, 1e4, 400)
worst = {d: float(bend(grid, d).max()) for d in (2, 3, 8, 64, 256)}
print({d: f"{value:.1e}" for d, value in worst.items()})
assert max(worst.values()) < 0

# %% [markdown]
# Negative for every $\beta$ and $d$ tried. Is the formula right? Follow the branch itself at
# $\beta=4$ and compare its bend.

# %% The bend of the formula over $\beta$, and the branch at $\beta=4$ (dot): never above zero.
from tokenflock.dynamics import Noisy, SelfAttention
from tokenflock.meanfield import branch
from tokenflock.plots import look, panels

unit = 4.0 * float(np.exp(log_kernel_eigenvalue(0, 4.0, 2) - log_kernel_eigenvalue(1, 4.0, 2)))
law, within = Noisy(SelfAttention(4.0)), (0.97 * unit, 1.05 * unit)
states = branch(law, within=within, points=96, step=0.04, most=8)
m, kappa = states.order_parameter.values, states.kappa.values / unit
small = (m > 0.005) & (m < 0.12)
measured = np.polyfit(m[small] ** 2, (1 / kappa[small] - 1) / m[small] ** 2, 1)[1]
print(f"beta = 4, circle: measured {measured:.6f}, formula {bend(4.0, 2):.6f}")
assert abs(measured / bend(4.0, 2) - 1) < 1e-3
figure, axes = panels(1, 1, size=(6.4, 2.8))
with look(figure) as theme:
    for colour, d in zip(theme.palette, (2, 3, 8), strict=False):
        axes[0].semilogx(grid, bend(grid, d), color=colour, label=f"$d={d}$")
    axes[0].plot(4.0, measured, "o", color=theme.palette[0])
    axes[0].axhline(0, color=theme.ink, lw=0.8)
    axes[0].set(xlabel=r"$\beta$", ylabel="bend of the branch", xlim=(0.1, 100))
    axes[0].legend(loc="lower right")
figure

# %% [markdown]
# **Verdict**: refuted near the bifurcation: there softmax attention orders without a jump.
# **Open**: a proof (the ratio of the two terms in the bracket stays below $((d-1)/(d+1))^2$, in
# numbers), and whether an ordered state exists far from the uniform one below $\kappa_c$.
# **Next**: start `stationary` from narrow densities below $\kappa_c$. At full size:
# `tokenflock reproduce open-problems/sa-transition`.
