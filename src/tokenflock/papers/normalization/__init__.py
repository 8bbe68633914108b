"""Normalization in attention dynamics.

Karagodin, Ge, Polyanskiy, Rigollet; arXiv 2510.22026.
"""

REFERENCE = (
    "N. Karagodin, S. Ge, Y. Polyanskiy, P. Rigollet, Normalization in attention dynamics, arXiv"
    " 2510.22026"
)
