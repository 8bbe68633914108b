"""What the particle oracles share."""

import pytest

from tokenflock.precision import precision


@pytest.fixture
def float64():
    """Direct calls of laws and observables in double precision, as `simulate` makes them."""
    with precision("float64"):
        yield
