"""Clustering in causal attention masking, and lost in the middle.

Karagodin, Polyanskiy, Rigollet; arXiv 2411.04990. With it arXiv 2605.09213, on causal attention
with a bias towards near tokens.
"""

REFERENCE = (
    "N. Karagodin, Y. Polyanskiy, P. Rigollet, Clustering in causal attention masking, arXiv"
    " 2411.04990; lost in the middle: arXiv 2605.09213"
)
QUESTION = (
    "Who leads when tokens hear only those before them, and which positions does the last"
    " one listen to?"
)
COVER = "fig2"
