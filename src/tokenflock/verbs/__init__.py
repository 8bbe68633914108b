"""What one does: simulate, ensemble, phase_diagram, measure, merges, rerun, cite, save, load.

Each verb takes and returns plain objects and Datasets; use them as `tokenflock.simulate` and so on.
"""
