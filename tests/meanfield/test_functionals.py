"""Energies of densities, where a closed form tells them."""

import numpy as np
import pytest

from tokenflock.dynamics import Sinkhorn
from tokenflock.meanfield import Ripple, evolve
from tokenflock.theory import kernel_eigenvalue


@pytest.mark.parametrize(("beta", "d"), [(3.0, 3), (0.5, 5)])
def test_the_transport_energy_of_the_uniform_measure(beta, d):
    """u is constant there and u^2 lambda_0 = 1, so that -(1/beta) int log u is log lambda_0 over
    2 beta.
    """
    run = evolve(Sinkhorn(beta), Ripple(amplitude=0.0), t=0.01, frames=2, d=d, points=16)
    exact = np.log(kernel_eigenvalue(0, beta, d)) / (2 * beta)
    np.testing.assert_allclose(run.energy, exact, rtol=1e-10)
