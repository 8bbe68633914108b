"""What is proved, in closed form: `from tokenflock.theory import transition_curve`."""

from typing import Any

from tokenflock.catalogue import lazy

_member, __dir__ = lazy("theory")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name.startswith("__"):
        raise AttributeError(name)
    from tokenflock.theory._guard import guarded

    return guarded(_member(name))
