"""tokenflock: the laboratory for Transformers as interacting particle systems.

    import tokenflock as flock
    from tokenflock.dynamics import SelfAttention
    from tokenflock.starts import Uniform

    run = flock.simulate(SelfAttention(beta=4.0), Uniform(n=32, d=2), t=30, seed=0)

Nothing heavy is imported until it is used.
"""

from importlib import import_module as _import

_HOMES = {
    "simulate": "verbs.simulate",
    "flow": "verbs.simulate",
    "flow_map": "verbs.flow_map",
    "jacobian": "verbs.jacobian",
    "spectrum": "verbs.jacobian",
    "lyapunov": "verbs.lyapunov",
    "rerun": "verbs.rerun",
    "ensemble": "verbs.ensemble",
    "phase_diagram": "verbs.phase_diagram",
    "sweep": "sweeps.run",
    "member": "verbs.member",
    "measure": "verbs.measure",
    "merges": "verbs.merges",
    "dwell_times": "verbs.merges",
    "steer": "steering.search",
    "probe": "probing.layers",
    "lab": "laboratory.lab",
    "reproduce": "reproduction.reproduce",
    "save": "verbs.save_load",
    "load": "verbs.save_load",
    "cite": "verbs.cite",
    "references": "verbs.cite",
    "UserError": "errors",
    "SimulationError": "errors",
}
_FOLDERS = (
    "dynamics",
    "starts",
    "solvers",
    "observables",
    "events",
    "spaces",
    "matrices",
    "theory",
    "meanfield",
    "sweeps",
    "steering",
    "probing",
    "gpt",
    "plots",
    "papers",
)

__all__ = [*_HOMES, *_FOLDERS]
__version__ = "0.1.0"


def __getattr__(name: str):
    if name in _HOMES:
        return _import("tokenflock.errors").public(__name__, f"{__name__}.{_HOMES[name]}", name)
    if name in _FOLDERS:
        return _import(f"tokenflock.{name}")
    raise AttributeError(f"module 'tokenflock' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
