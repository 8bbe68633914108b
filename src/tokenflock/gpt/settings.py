"""What a model and its training are made of, as plain values: they go into config.json beside the
weights.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from tokenflock.errors import (
    UserError,
    require,
    require_known,
    require_number,
    require_switch,
    require_whole,
)

RUNGS = ("bigram", "head", "multi-head", "feed-forward", "residual", "gpt")
POSITIONS = ("learned", "sinusoidal", "rotary")
NORMS = ("pre", "post", "peri", "ngpt")
# more layers are not compiled in minutes; attention in a longer context fills a machine
MOST = {"vocab": 2**31, "context": 2**16, "width": 2**31, "heads": 2**31, "depth": 256}


@dataclass(frozen=True)
class Shape:
    """The shape of a model. Lower rungs of the ladder read only what they have."""

    vocab: int = 65
    context: int = 64  # tokens that it sees
    width: int = 128
    heads: int = 4
    depth: int = 4  # layers
    dropout: float = 0.0
    positions: str = "learned"
    norm: str = "pre"
    shared: bool = False  # one layer, iterated
    rung: str = "gpt"

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            require_whole(name, getattr(self, name), 1, most)
        require_number("dropout", self.dropout)
        require_switch("shared", self.shared)
        require(
            self.width % self.heads == 0,
            "heads",
            f"a divisor of the width {self.width}",
            self.heads,
        )
        require(0 <= self.dropout < 1, "dropout", "from 0 to below 1", self.dropout)
        for name, members in (("positions", POSITIONS), ("norm", NORMS), ("rung", RUNGS)):
            require(
                getattr(self, name) in members,
                name,
                " or ".join(members),
                repr(getattr(self, name)),
            )
        even = self.positions == "learned" or (self.width // self.heads) % 2 == 0
        require(
            even,
            "heads",
            f"such that width / heads is even for {self.positions} positions",
            self.heads,
        )

    @property
    def layers(self) -> int:
        """How many layers a text passes: none in a bigram, one in the rungs that are one layer."""
        return {"bigram": 0, "residual": self.depth, "gpt": self.depth}.get(self.rung, 1)


@dataclass(frozen=True)
class Schedule:
    """How a model is trained. The defaults are those of nanoGPT for characters."""

    steps: int = 2000
    batch: int = 12
    rate: float = 1e-3  # peak learning rate
    last_rate: float = 1e-4  # where the cosine ends
    warmup: int = 100
    decay: float = 0.1  # weight decay, of matrices only
    # few tokens per step: a longer memory for the second moment
    momentum: tuple[float, float] = (0.9, 0.99)
    clip: float = 1.0  # of the norm of the gradient
    seed: int = 0
    every: int = 250  # steps between validations and checkpoints
    chunk: int = 25  # steps per call of the compiled function

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "every", "chunk"):
            require_whole(name, getattr(self, name), 1)
        for name in ("rate", "last_rate", "decay", "clip"):
            require_number(name, getattr(self, name))
        require_whole("warmup", self.warmup, 0)
        require_whole("seed", self.seed, -(2**63))
        require(0 <= self.seed < 2**31, "seed", "from 0 to below 2^31", self.seed)
        require(self.rate > 0, "rate", "above 0", self.rate)
        require(self.clip > 0, "clip", "above 0", self.clip)
        pair = isinstance(self.momentum, (list, tuple)) and len(self.momentum) == 2
        require(pair, "momentum", "two numbers, e.g. (0.9, 0.99)", f"{self.momentum!r:.80}")
        for value in self.momentum:
            require_number("momentum", value)
        object.__setattr__(self, "momentum", tuple(self.momentum))  # JSON knows lists only


def told(kind: type[Any], values: Any) -> Any:
    """A `Shape` or a `Schedule` from what config.json says of it.

    >>> told(Shape, {"width": 16}).width
    16
    """
    name = kind.__name__.lower()
    require(isinstance(values, dict), name, "an object of names and values", f"{values!r:.80}")
    require_known(name, values, [field.name for field in fields(kind)])
    return kind(**values)


def least_memory(shape: Shape, schedule: Schedule) -> float:
    """Bytes that training takes at least: weights, gradients, two moments, and one layer of tokens.

    >>> least_memory(Shape(), Schedule()) < 1e9
    True
    """
    layers = 1 if shape.shared else shape.layers
    weights = 12.0 * layers * shape.width**2 + 2.0 * (shape.vocab + shape.context) * shape.width
    tokens = float(schedule.batch) * shape.context * (shape.width + shape.heads * shape.context)
    return 4 * (4 * weights + tokens)


# what a shape says to each rung: lower ones read no more
READS = {
    "bigram": ("vocab", "context", "rung"),
    "head": ("vocab", "context", "rung", "width"),
    "multi-head": ("vocab", "context", "rung", "width", "heads"),
    "feed-forward": ("vocab", "context", "rung", "width", "heads"),
    "residual": ("vocab", "context", "rung", "width", "heads", "depth"),
    "gpt": tuple(field.name for field in fields(Shape)),
}
BEARS = {"bigram": 10, "head": 3, "multi-head": 3}  # how much larger a rate lower rungs bear
# how much longer a warm-up it wants: else some seeds never leave the collapse of the first steps
WARMS = {"post": 3}
PRESETS = {
    "cpu": (
        Shape(),
        Schedule(rate=3e-3),
    ),  # a few minutes on two cores; so small a model bears a larger rate still
    "quick": (
        Shape(context=48, width=64, depth=2, heads=2),
        Schedule(steps=300, batch=16, rate=3e-3, warmup=20, every=100),
    ),
    "gpu": (  # a minute on one GPU; beyond 2,000 steps it learns a million characters by heart
        Shape(context=256, width=384, heads=6, depth=6, dropout=0.2),
        Schedule(steps=2000, batch=64, warmup=100, every=250, chunk=50),
    ),
}


def preset(name: str, **changes: Any) -> tuple[Shape, Schedule]:
    """A preset with some values changed; what is None stays.

    >>> preset("cpu", steps=10, norm="post")[0].norm
    'post'
    """
    if name not in PRESETS:
        raise UserError(f"preset must be {' or '.join(PRESETS)}, got {name!r}")
    of_shape, of_schedule = ({field.name for field in fields(kind)} for kind in (Shape, Schedule))
    for key in changes:
        if key not in of_shape | of_schedule:
            raise UserError(_unknown(key, sorted(of_shape | of_schedule)))
    given = {key: value for key, value in changes.items() if value is not None}
    shape, schedule = PRESETS[name]
    read = READS.get(given.get("rung", "gpt"), of_shape)
    for key in sorted(of_shape.intersection(given).difference(read)):
        raise UserError(f"{key} must be left out with rung={given['rung']!r}, got {given[key]!r}")
    rung, norm = given.get("rung", "gpt"), given.get("norm", "pre")
    schedule = replace(
        schedule,
        rate=BEARS.get(rung, 1) * schedule.rate,
        decay=0.0 if rung == "bigram" else schedule.decay,
        warmup=WARMS.get(norm, 1) * schedule.warmup,
    )
    return (
        replace(shape, **{key: value for key, value in given.items() if key in of_shape}),
        replace(schedule, **{key: value for key, value in given.items() if key in of_schedule}),
    )


def _unknown(key: str, names: list[str]) -> str:
    near = get_close_matches(key, names, n=1, cutoff=0.5)
    instead = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    return f"neither shape nor schedule has {key!r}; {instead}"
