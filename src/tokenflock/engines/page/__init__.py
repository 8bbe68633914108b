"""The engine of a page: a law, a solver, observables and starts as JavaScript."""

from tokenflock.engines.page.program import Program, formula, piece, program, start_program

__all__ = ["Program", "formula", "piece", "program", "start_program"]
