"""Compiled loops for CPUs, made of the equations of a law, a solver and observables: several
systems side by side in the lanes of a vector register.
"""
