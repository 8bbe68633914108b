"""The laboratory: one HTML page in which the library's laws run live.

`tokenflock.engines.page` writes a law, a solver's step and observables as JavaScript; this folder
puts a stage, controls and instruments around them. There is no server, and nothing is loaded.
"""
