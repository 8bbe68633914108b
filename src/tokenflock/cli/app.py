"""The commands, each imported only when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cyclopts import App

from tokenflock import __version__
from tokenflock.catalogue import include
from tokenflock.cli.console import console
from tokenflock.errors import UserError

COMMANDS = {
    "tour": "a short guided run: simulate, tell what happened, write a figure and a film",
    "reproduce": "rerun papers: every figure, and a verdict on every claim, on one page",
    "verify": "judge the claims of papers, without figures",
    "simulate": "follow one system of tokens and save it",
    "phase": "a phase diagram: many systems for each beta, means and errors over time",
    "sweep": "a grid of systems from a spec, into a store that survives whatever happens",
    "spectrum": "eigenvalues of a state at rest: what grows, and how fast",
    "lyapunov": "Lyapunov exponents along one run",
    "steer": "look for a Transformer that carries clouds of tokens to targets",
    "branch": "stationary states of a noisy law, followed while its noise or beta changes",
    "rerun": "run a saved result again, as it was or with changes",
    "plot": "draw a saved run",
    "probe": "run a real Transformer on text and measure its tokens layer by layer",
    "gpt": "train a small GPT from scratch, sample from it, and watch its tokens",
    "lab": "the lab: every law live in one HTML page, to drag, watch and send",
    "film": "make a film of a saved run (mp4, gif, or a page that plays)",
    "theory": "evaluate a closed form",
    "list": "what there is: dynamics, their parts, starts, solvers, observables and more",
    "cite": "print the references of a saved run",
}
_HELP = """Transformers as interacting particle systems.

Example: `tokenflock simulate --dynamics self-attention --beta 4 --n 32 --d 2 --t 30 --out run.nc`

Laws of your own, in a file: `tokenflock --import my_laws.py simulate --dynamics my-law --n 32`
"""


def imported(tokens: Sequence[str]) -> list[str]:
    """The tokens without `--import FILE`, whose laws, starts, ... are in the catalogue then."""
    left, files, rest = [], [], iter(tokens)
    for token in rest:
        name, equals, value = token.partition("=")
        if name == "--import":
            files.append(value if equals else next(rest, ""))
        else:
            left.append(token)
    for file in files:
        if not file or file.startswith("--"):
            raise UserError("--import needs a Python file; write e.g. --import my_laws.py")
        if not Path(file).exists():
            raise UserError(f"--import {file}: there is no such file here; check its path")
        include(Path(file))
    return left


def build(tokens: Sequence[str]) -> App:
    """The application. Only the command that the tokens name is loaded.

    The others are shown by their one line.
    """
    app = App(
        name="tokenflock",
        version=__version__,
        help=_HELP,
        help_format="markdown",
        console=console,
    )
    named = next((token for token in tokens if not token.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name == named:
            from importlib import import_module

            home = import_module(f"tokenflock.cli.{'listing' if name == 'list' else name}")
            app.command(home.command(tokens[tokens.index(name) + 1 :]), name=name)
        else:
            app.command(_stub, name=name, help=summary[0].upper() + summary[1:] + ".")
    return app


def _stub() -> None:
    """Stands for a command in the list of commands; the real one is loaded by name."""
    raise AssertionError("a stub is never called")
