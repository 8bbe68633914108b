"""Many systems at the speed of the chip: one GPU program per system, the whole time loop inside the
kernel (Pallas, Triton).

The body calls the same solver step, the same force and the same observables as every other engine;
tokens never leave the chip. Coordinates are padded with zeros and tokens with zero weights to
powers of two, which changes nothing. Matrix products are done by `with_split_products`: single
precision on tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from tokenflock.dynamics._matrices import Switching
from tokenflock.dynamics._padding import padded, widen
from tokenflock.engines._split_products import Halves, Lookup, halves, whole, with_split_products
from tokenflock.engines.job import Job, Parts, Paths, Values, advance, fill, without
from tokenflock.observables.minimum_cosine import MinimumCosine
from tokenflock.observables.observable import Observable, on_sphere
from tokenflock.shapes import Array
from tokenflock.spaces import Sphere

MOST_TOKENS, MOST_COORDINATES, WIDEST_MATRIX = 128, 256, 128  # what fits on chip
WIDEST_WHOLE = 64  # side of the matrices that are split into halves on chip
SPARE = 7 * 1024  # bytes of shared memory that a program takes beside matrices and tokens
SHARED = {  # bytes of shared memory for a program, by compute capability (CUDA C++ guide, K.1)
    "8.0": 163 * 1024,
    "8.7": 163 * 1024,
    "9.0": 227 * 1024,
    "10.0": 227 * 1024,
}
LEAST_SHARED = 99 * 1024  # of all other cards that are served


def refusal(job: Job, n: int, d: int, random_matrices: bool = False) -> str | None:
    """Why this engine cannot do a job, or None if it can."""
    if job.until is not None:
        return "the resident engine looks at frames only, and not for events"
    matrices = random_matrices or any(np.ndim(leaf) >= 2 for leaf in jax.tree.leaves(job.law))
    if not isinstance(job.law.space, Sphere):
        return f"the resident engine serves dynamics on the sphere, not {type(job.law).__name__}"
    if job.law.noisy:
        return "the resident engine has no random numbers on chip"
    if job.dtype != "float32":
        return "the resident engine works in float32"
    if any(
        isinstance(leaf, Switching)
        for leaf in jax.tree.leaves(job.law, is_leaf=lambda leaf: isinstance(leaf, Switching))
    ):
        return "the resident engine takes matrices that do not change in time"
    foreign = _foreign((job.law, job.observables))
    if foreign is not None:
        return f"the resident engine cannot do {foreign} on chip"
    if any(observable.dims for observable in job.observables):
        return "the resident engine takes observables that are one number"
    if matrices and d > WIDEST_MATRIX:
        return f"matrices of side {d} do not fit on chip (d <= {WIDEST_MATRIX})"
    many = sum(np.ndim(leaf) >= 2 for leaf in jax.tree.leaves(job.law)) + 2 * random_matrices
    room, needed = shared_memory(), matrix_memory(many, d)
    if needed > room:
        return (
            f"{many} matrices of side {d} need {needed // 1024} KiB of shared memory, of which the"
            f" device has {room // 1024}"
        )
    if n > MOST_TOKENS or d > MOST_COORDINATES:
        return (
            f"n = {n}, d = {d} does not fit on chip (n <= {MOST_TOKENS}, d <= {MOST_COORDINATES})"
        )
    return None


def shared_memory() -> int:
    """Return the bytes of shared memory that one program may take on the device: what the device
    tells, else the size that is documented for it. Where there is no GPU, those of an H200.
    """
    device = jax.devices()[0]
    if device.platform != "gpu":
        return SHARED["9.0"]
    told = getattr(device, "shared_memory_per_block_optin", None)
    return int(told or SHARED.get(str(getattr(device, "compute_capability", "")), LEAST_SHARED))


def matrix_memory(count: int, d: int) -> int:
    """Return the bytes of shared memory that large matrices need at least: all of them in halves,
    and one more while its layout changes.

    On an H200 two of side 128 run beside up to 128 tokens; three of side 96 to 128 failed to
    compile beside 32 tokens or fewer.
    """
    return 4 * padded(d) ** 2 * (count + 1) if count and d > WIDEST_WHOLE else 0


def _foreign(parts: object) -> str | None:
    """The name of a part, however deep, that the kernel cannot be made of."""

    def strange(leaf: object) -> bool:
        return getattr(leaf, "on_chip", True) is False

    return next(
        (type(leaf).__name__ for leaf in jax.tree.leaves(parts, is_leaf=strange) if strange(leaf)),
        None,
    )


def run(job: Job, x: jax.Array, swept: list[jax.Array], *, interpret: bool) -> Values:
    """Observables of every system at every frame, as arrays on the device."""
    # for the products that `with_split_products` leaves: three of rounded halves as well, a recipe
    # that exists on the GPU only
    with jax.default_matmul_precision("highest" if interpret else "TF32_TF32_F32_X3"):
        strides = jnp.asarray(np.concatenate([job.strides, [0]]), jnp.int32)
        values = _launch(
            job.parts,
            job.paths,
            x,
            jnp.asarray(job.w, job.dtype),
            strides,
            swept,
            job.delta,
            interpret,
        )
    return {observable.name: value for observable, value in zip(job.observables, values)}


@eqx.filter_jit
def _launch(
    parts: Parts,
    paths: Paths,
    x: jax.Array,
    w: jax.Array,
    strides: jax.Array,
    swept: list[jax.Array],
    delta: float | None,
    interpret: bool,
) -> list[jax.Array]:
    """Pad everything to powers of two, start one program per system."""
    count, n, d = x.shape
    wide, tall = padded(d), padded(n)
    x = jnp.pad(x, ((0, 0), (0, tall - n), (0, wide - d)))
    x = x.at[:, n:, 0].set(1.0)  # a padded token is a unit vector of weight zero
    w = jnp.pad(w, (0, tall - n))
    arrays, static = eqx.partition(
        jax.tree.map(partial(widen, d=d, wide=wide), without(parts, paths)), eqx.is_array
    )
    leaves, tree = jax.tree.flatten(arrays)
    numbers = [_on_chip(leaf, lead=0) for leaf in leaves]
    numbers += [_on_chip(widen(values, d, wide, lead=1), lead=1) for values in swept]
    flat, places = jax.tree.flatten(numbers)
    large = [4 * wide**2 for number in numbers if isinstance(number, Halves)]
    room = shared_memory() - SPARE
    keeps = sum(large) + 16 * tall * wide <= room  # beside tokens in halves, several times
    frames = strides.shape[0]
    call = pl.pallas_call(
        partial(
            _kernel,
            layout=_Layout(tree, static, paths, len(leaves), places, bool(large), keeps),
            frames=frames,
            delta=delta,
        ),
        out_shape=[jax.ShapeDtypeStruct((count, frames), jnp.float32) for _ in parts[2]],
        grid=(count,),
        interpret=interpret,
        compiler_params=triton.CompilerParams(
            num_warps=8 if large and not keeps else 2 if tall * wide <= 1024 else 4, num_stages=1
        ),
    )
    return call(x, w, strides, *flat)


def _on_chip(a: jax.Array, lead: int) -> jax.Array | Halves:
    """Large matrices in halves, which are read at every step; all else as it is."""
    large = a.ndim - lead == 2 and min(a.shape[lead:]) > WIDEST_WHOLE
    return halves(a) if large else a


def _read(number: Any, at: Any) -> Any:
    """What references hold at a place."""
    if not isinstance(number, Halves):
        return number[at]
    shape = jax.ShapeDtypeStruct(number.high.shape[-2:], jnp.float32)
    return Lookup(shape, lambda: Halves(*(ref[at] for ref in number)))


def _kept(number: Any) -> Any:
    """The same, where a matrix that is read later is read now."""
    if not isinstance(number, Lookup):
        return number
    value = number.read()
    return Lookup(number.shape, lambda: value)


class _Layout(NamedTuple):
    """How the references that a kernel gets make up a law, a solver and observables."""

    tree: Any
    static: Parts
    paths: Paths
    shared: int  # numbers that all systems share; the rest differ between systems
    places: Any  # which references make up a number
    large: bool  # whether there are matrices in halves
    keeps: bool  # whether they fit into shared memory

    @property
    def inputs(self) -> int:
        """How many references are read."""
        return self.places.num_leaves

    def read(self, refs: Sequence[Any], who: Any) -> list[Any]:
        """The numbers of one system; large matrices are read where they are used."""
        numbers = jax.tree.unflatten(self.places, list(refs[: self.inputs]))
        return [
            _read(number, ... if at < self.shared else who) for at, number in enumerate(numbers)
        ]

    def reader(self, refs: Sequence[Any], who: Any) -> Callable[[], list[Any]]:
        """How they are read at every step: large matrices that fit now, to lie in shared memory
        from then on; the rest anew, for in registers it would not fit.
        """
        if not self.keeps:
            return partial(self.read, refs, who)
        kept = [_kept(number) for number in self.read(refs, who)]

        def read() -> list[Any]:
            pairs = zip(kept, self.read(refs, who))
            return [first if isinstance(first, Lookup) else number for first, number in pairs]

        return read

    def parts(self, numbers: Sequence[Any]) -> Parts:
        """The parts that they make."""
        arrays = jax.tree.unflatten(self.tree, list(numbers[: self.shared]))
        return fill(eqx.combine(arrays, self.static), self.paths, list(numbers[self.shared :]))


def _settled(
    observables: Sequence[Observable],
    values: Sequence[jax.Array],
    x: jax.Array,
    w: jax.Array,
    delta: float,
) -> Array:
    """Whether all observables are final: their values show it, or the least cosine does."""
    shown = [observable.at_rest(value) for observable, value in zip(observables, values)]
    known = [rest for rest in shown if rest is not None]
    if len(known) == len(shown):  # each knows its own threshold
        return reduce(jnp.logical_and, known)
    return on_sphere(MinimumCosine(), x, w) >= 1 - delta


def _step(layout: _Layout, w: Array, x: Array, number: Array, *numbers: Any) -> Any:
    """(x, number of the step) after a step."""
    law, solver, _ = layout.parts(numbers)
    return advance(solver, law, w, None, x.dtype)((x, number))


def _look(layout: _Layout, w: Array, x: Array, *numbers: Any) -> list[Array]:
    """The observables of a frame."""
    return [on_sphere(observable, x, w) for observable in layout.parts(numbers)[2]]


def _kernel(
    x_ref: Any,
    w_ref: Any,
    stride_ref: Any,
    *refs: Any,
    layout: _Layout,
    frames: int,
    delta: float | None,
) -> None:
    """One system from its first frame to its last."""
    who = pl.program_id(0)
    x, w = x_ref[who], w_ref[...]
    outs = refs[layout.inputs :]
    read, split = layout.reader(refs, who), partial(with_split_products, ahead=layout.keeps)

    def advance_once(_, carry):
        return split(partial(_step, layout, w))(*carry, *read())

    def write(frame, values):
        for out, value in zip(outs, values):
            out[who, frame] = value

    def record(frame, x, settled):
        """Write the observables of a frame; returns them and whether they are final."""
        numbers = read()
        # NaN where a token is, which a count would not show; once it is, it stays: the end tells
        lost = jax.lax.cond(
            frame == frames - 1,
            lambda: 0 * jnp.sum(jnp.where(w[:, None] > 0, x, 0)),
            lambda: 0 * frame.astype(jnp.float32),  # a branch must compute something
        )
        seen = split(partial(_look, layout, w))(x, *numbers)
        values = tuple(value.astype(jnp.float32) + lost for value in seen)
        write(frame, values)
        if delta is None:
            return values, settled
        observables = layout.parts([whole(number) for number in numbers])[2]
        return values, _settled(observables, values, x, w, delta)

    def go_on(carry):
        frame, _, _, settled, _ = carry
        return (frame < frames) & ~settled

    def go(carry):
        frame, x, step, settled, _ = carry
        values, settled = record(frame, x, settled)
        # the first step stands beside the record: both use x x^T, which is computed once; steps
        # with large matrices fill the registers by themselves
        beside = 0 if layout.large else 1
        carry = advance_once(0, (x, step)) if beside else (x, step)
        x, step = jax.lax.fori_loop(beside, stride_ref[frame], advance_once, carry)
        return frame + 1, x, step, settled, values

    zeros = tuple(jnp.float32(0) for _ in outs)
    frame, *_, values = jax.lax.while_loop(
        go_on, go, (jnp.int32(0), x, jnp.int32(0), jnp.array(False), zeros)
    )
    if delta is not None:  # consensus is for ever: the last values stand for the rest
        jax.lax.fori_loop(frame, frames, lambda frame, _: write(frame, values), None)
