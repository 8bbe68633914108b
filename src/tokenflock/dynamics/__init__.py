"""Laws of motion, one file each: `from tokenflock.dynamics import SelfAttention`."""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy(
    "dynamics",
    {
        "Dynamics": "tokenflock.dynamics.dynamics",
        "MeanField": "tokenflock.dynamics.dynamics",
        "AttentionLaw": "tokenflock.dynamics.dynamics",
        "GradientFlow": "tokenflock.dynamics.dynamics",
        "Clock": "tokenflock.dynamics.unnormalised",
        "Activation": "tokenflock.dynamics.neural_ode",
        "Switching": "tokenflock.dynamics._matrices",
    },
)
