"""Programs for a page: the library's own equations as a text of JavaScript."""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.page import trace
from tokenflock.engines.page.emit import emit
from tokenflock.engines.page.fields import Field, given, stored
from tokenflock.engines.page.graph import Buffer, Graph
from tokenflock.engines.page.translate import closed
from tokenflock.engines.page.writing import ARRAYS, number
from tokenflock.errors import UserError, require
from tokenflock.observables.observable import Observable
from tokenflock.precision import precision
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.starts.start import Start

SHORT = 100  # constants that are written as text
KINDS = {"f64": "<f8", "f32": "<f4", "int": "<i4", "u32": "<u4", "bool": "u1"}


@dataclass(frozen=True)
class Program:
    """A program for a page.

    `source` is JavaScript that evaluates to an object with functions (`step`, `observe`, `draw`);
    `manifest` says what they take and give.
    """

    source: str
    manifest: dict[str, Any]


def program(
    dynamics: Dynamics, solver: Solver, observables: Sequence[Observable] = (), *, d: int
) -> Program:
    """One step of a law by a solver, and observables, as JavaScript for any number of tokens.

    The source evaluates to `{step, observe, project}`. `step(state, params)` returns the tokens
    after a step, `observe[name](state, params)` a value, `project(state, params)` the tokens
    brought to where the law's tokens live; all return arrays that the program owns and fills anew
    at the next call. A state is `{n, t, h, x, w, key, index}`, `params` an array for
    each parameter of the manifest.

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.solvers import Layer
    >>> made = program(SelfAttention(beta=4.0), Layer(h=0.1), d=2)
    >>> made.manifest["parameters"]
    [{'name': 'beta', 'shape': [], 'default': [4.0]}]
    >>> "exp(" in made.source
    True
    """
    if not isinstance(solver, FixedStep):
        name = type(solver).__name__
        raise UserError(f"solver must be one of a fixed step for a page, got {name}; use Layer()")
    return piece(dynamics, trace.act_of(solver), observables, d=d)


def piece(
    dynamics: Dynamics,
    act: trace.Act,
    observables: Sequence[Observable] = (),
    *,
    d: int,
    arrays: Sequence[str] = (),
) -> Program:
    """A piece of a step of a law as JavaScript, with observables: what `program` gives, for any
    function of the law and a moment that moves tokens.

    A page puts such pieces together. `arrays` name what the state holds beside the tokens, in the
    order of `Moment`: what a sublayer `said`, and the `noise`.
    """
    own = dynamics.dimension
    require(own in (None, d), "d", f"{own}, the dimension of the law", d)
    values, refused = {}, {}
    with precision("float64"):
        law = trace.split(dynamics, d)
        body, noisy = _step(law, act, arrays)
        project, _ = _seen(law, trace.projection(law))
        names = _names(observables)
        for name, observable in zip(names, observables):
            try:
                values[name] = _seen(law, trace.observation(law, observable))
            except UserError as error:
                refused[name] = str(error)
    manifest = {
        "parameters": [_parameter(parameter) for parameter in law.parameters],
        "d": d,
        "n": law.n if isinstance(law.n, int) else None,
        "observables": [{"name": name, "shape": shape} for name, (_, shape) in values.items()],
        "noise": noisy,
        "refused": refused,
    }
    bodies = "".join(f"observe[{name!r}] = {text};\n" for name, (text, _) in values.items())
    text = f"const step = {body};\nconst project = {project};\nconst observe = {{}};\n{bodies}"
    return Program(_module(f"{text}return {{ step, observe, project }};"), manifest)


def formula(function: Callable[..., Any], names: Sequence[str]) -> str:
    """A number that depends on numbers of these names, as JavaScript: a text that evaluates to a
    function of them.

    >>> import jax.numpy as jnp
    >>> "exp(" in formula(lambda a, b: jnp.exp(a) * b, ["a", "b"])
    True
    """
    with precision("float64"):
        graph = Graph(emit)
        inputs = [_scalar(graph, name, "f64") for name in names]
        (array,) = closed(graph, trace.formula(function, len(names)), inputs)
        made = stored(graph, array)
        lines = graph.emit([made])
    body = _function(graph, f"({', '.join(names)})", ["const n = 1;"], [*lines, _first(made)])
    return _module(f"return {body};")


def _first(made: Buffer) -> str:
    return f"return {made.name}[0];"


def start_program(start: Start, *, d: int) -> Program:
    """A start as JavaScript for any number of tokens: the source evaluates to `{draw}`.

    `draw(n, high, low, params)` gives `{x, key}`: the tokens of the seed 2^32 high + low as
    `simulate` draws them (up to rounding of float32), and the key of the noise. `params` are the
    numbers of the start, an array for each parameter of the manifest, which also says the least n.

    >>> from tokenflock.starts import Gaussian
    >>> start_program(Gaussian(n=8, d=3, scale=0.5), d=3).manifest["parameters"]
    [{'name': 'scale', 'shape': [], 'default': [0.5]}]
    """
    numbers = {
        field.name: getattr(start, field.name)
        for field in dataclasses.fields(start)
        if type(getattr(start, field.name)) is float
    }
    try:
        return _drawn(start, d, numbers)
    except UserError:
        if not numbers:
            raise
    return _drawn(start, d, {})  # its numbers decide what is drawn: they stay as they are


def _drawn(start: Start, d: int, numbers: dict[str, float]) -> Program:
    """The program of a start whose numbers of these names may change."""
    name = type(start).__name__
    try:
        equations = trace.drawing(start, d, list(numbers))
        graph = Graph(emit)
        values = [given(graph, f"p{k}", (), "f32") for k, _ in enumerate(numbers)]
        results = closed(graph, equations, [given(graph, "key", (2,), "u32"), *values])
        require(results[0].shape[1] == d, "d", f"{results[0].shape[1]}", d)
        tokens, noise = (stored(graph, array) for array in results)
        lines = graph.emit([tokens, noise])
    except (UserError, TypeError) as error:
        line = str(error).partition("\n")[0]
        raise UserError(f"the start {name} is drawn by the library alone: {line}") from error
    head = ["const key = Uint32Array.of(high, low);"]
    head += [f"const p{k} = Float32Array.from(params[{k}]);" for k, _ in enumerate(numbers)]
    end = f"return {{ x: Float64Array.from({tokens.name}), key: {noise.name}.slice() }};"
    arguments = "(n, high, low, params)" if numbers else "(n, high, low)"
    body = _function(graph, arguments, head, [*lines, end])
    parameters = [
        {"name": name, "shape": [], "default": [value]} for name, value in numbers.items()
    ]
    manifest = {"start": name, "d": d, "least": d + 1, "parameters": parameters}
    return Program(_module(f"const draw = {body};\nreturn {{ draw }};"), manifest)


def _parameter(parameter: trace.Parameter) -> dict[str, Any]:
    shape, numbers = list(parameter.value.shape), parameter.value.reshape(-1).tolist()
    return {"name": parameter.name, "shape": shape, "default": numbers}


def _names(observables: Sequence[Observable]) -> list[str]:
    names = [observable.name for observable in observables]
    twice = {name for name in names if names.count(name) > 1}
    require(not twice, "observables", "of different names", sorted(twice))
    return names


def _inputs(graph: Graph, law: trace.Law) -> list[Field]:
    """The parameters, tokens and weights as the page gives them."""
    values = [
        given(graph, f"p{k}", parameter.value.shape, "f64")
        for k, parameter in enumerate(law.parameters)
    ]
    return [*values, given(graph, "x", (law.n, law.d), "f64"), given(graph, "w", (law.n,), "f64")]


def _step(law: trace.Law, act: trace.Act, arrays: Sequence[str]) -> tuple[str, bool]:
    """The function of one step, and whether it needs a key."""
    graph = Graph(emit)
    numbers = [_scalar(graph, "t", "f64"), _scalar(graph, "h", "f64")]
    random = [given(graph, "key", (2,), "u32"), _scalar(graph, "index", "int")]
    more = [given(graph, name, (law.n, law.d), "f64") for name in arrays]
    equations = trace.step(law, act, len(arrays))
    (array,) = closed(graph, equations, [*_inputs(graph, law), *numbers, *random, *more])
    made = _owned(graph, array)
    lines = graph.emit([made])
    used = "\n".join(lines)
    head = _head(law, used, ("t", "h", "key", "index", *arrays))
    spare = f"{made.name}_spare"
    swap = f"if (x === {made.name}) {made.name} = {spare};"
    body = [swap, *lines, f"return {made.name};"]
    return _function(graph, "(s, p)", head, body, {spare: made}), _uses(used, "key")


def _scalar(graph: Graph, name: str, dtype: str) -> Field:
    return Field((), dtype, lambda index: graph.name(name, dtype))


def _owned(graph: Graph, array: Field) -> Buffer:
    """The result in memory of its own, not just what came in."""
    buffer = stored(graph, array)
    if buffer.entries:
        return buffer

    def write(names: Sequence[str], outputs: Sequence[str]) -> list[str]:
        return [f"{outputs[0]}.set({names[0]}.subarray(0, {outputs[0]}.length));"]

    (made,) = graph.statement([buffer], write, [(buffer.shape, buffer.dtype)])
    return made


def _seen(law: trace.Law, equations: Any) -> tuple[str, list[Any]]:
    """The function of parameters, tokens and weights, and the shape of its value."""
    graph = Graph(emit)
    inputs = _inputs(graph, law)
    (array,) = closed(graph, equations, inputs)
    made = _owned(graph, array)
    lines = graph.emit([made])
    head = _head(law, "\n".join(lines), ())
    result = made.name if made.dtype == "f64" else f"Float64Array.from({made.name})"
    shape = [dim if isinstance(dim, int) else str(dim) for dim in array.shape]
    return _function(graph, "(s, p)", head, [*lines, f"return {result};"]), shape


def _uses(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}\b", text) is not None


def _head(law: trace.Law, text: str, numbers: Sequence[str]) -> list[str]:
    """Lines that take what a function uses out of its state and its parameters."""
    names = ["n", "x", *(name for name in ("w", *numbers) if _uses(text, name))]
    lines = [f"const {{ {', '.join(names)} }} = s;"]
    for k, _ in enumerate(law.parameters):
        if _uses(text, f"p{k}"):
            lines.append(f"const p{k} = p[{k}];")
    return lines


def _function(
    graph: Graph,
    arguments: str,
    head: Sequence[str],
    body: Sequence[str],
    more: dict[str, Buffer] | None = None,
) -> str:
    """A function with its own memory, which it makes anew when the number of tokens changes."""
    rooms = {**graph.allocated, **(more or {})}
    lines = [f"const {name} = {_data(*data)};" for name, data in graph.data.items()]
    lines += ["let size = -1, memory;"] if rooms else []
    lines.append(f"return function {arguments} {{")
    lines += [f"  {line}" for line in head]
    if rooms:
        made = [f"{name}: {_room(graph, buffer)}," for name, buffer in rooms.items()]
        lines += ["  if (n !== size) {", "    size = n;", "    memory = {"]
        lines += [f"      {line}" for line in made]
        lines += ["    };", "  }", f"  let {{ {', '.join(rooms)} }} = memory;"]
    lines += [f"  {line}" for line in body]
    lines.append("};")
    inner = "\n".join(f"  {line}" for line in lines)
    return f"(function () {{\n{inner}\n}})()"


def _room(graph: Graph, buffer: Buffer) -> str:
    """Memory for a buffer."""
    count = [graph.text(k) for k in buffer.shape if graph.text(k) != "1"]
    return f"new {ARRAYS[buffer.dtype]}({' * '.join(count) or '1'})"


def _data(dtype: str, numbers: Sequence[Any]) -> str:
    """An array of constants: short ones as text, long ones as their bytes."""
    kind = ARRAYS[dtype]
    if len(numbers) <= SHORT:
        return f"{kind}.of({', '.join(number(value)[0] for value in numbers)})"
    raw = base64.b64encode(np.asarray(numbers, KINDS[dtype]).tobytes()).decode()
    return f'new {kind}(Uint8Array.from(atob("{raw}"), (c) => c.charCodeAt(0)).buffer)'


def _module(body: str) -> str:
    """A text that evaluates to what its body returns, with the pieces of the runtime it calls."""
    return f'(function () {{\n"use strict";\n{_pieces(body)}{body}\n}})()'


@cache
def _runtime() -> dict[str, tuple[list[str], str]]:
    """The pieces of the runtime: name -> (what it needs, text)."""
    text = (files("tokenflock.engines.page") / "runtime.js").read_text(encoding="utf-8")
    pieces = {}
    for piece in text.split("// === ")[1:]:
        head, _, body = piece.partition("\n")
        name, *needs = head.split()
        pieces[name] = (needs, body)
    return pieces


def _pieces(body: str) -> str:
    runtime = _runtime()
    waiting = [name for name in runtime if _uses(body, rf"{name}\(?")]
    wanted: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += runtime[name][0]
    return "".join(text for name, (_, text) in runtime.items() if name in wanted)
