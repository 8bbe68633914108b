"""Normalization in attention dynamics.

Karagodin, Ge, Polyanskiy, Rigollet; arXiv 2510.22026.
"""

REFERENCE = (
    "N. Karagodin, S. Ge, Y. Polyanskiy, P. Rigollet, Normalization in attention dynamics, arXiv"
    " 2510.22026"
)
QUESTION = (
    "What does the place of the norm in a Transformer decide: how fast tokens meet, or"
    " whether they do?"
)
COVER = "curves"
