"""Noisy Transformers: order that comes slowly, or with a jump.

Shalova, Schlichting, arXiv 2412.14813; arXiv 2510.20094; Mun, Rosenzweig, arXiv 2604.16288 and
2606.05140. Known here by their abstracts; what an abstract does not state is derived here, and said
to be. Their coupling is K = kappa / 2.
"""

REFERENCE = (
    "A. Shalova, A. Schlichting, arXiv 2412.14813; arXiv 2510.20094; K. Mun, M. Rosenzweig, arXiv"
    " 2604.16288 and 2606.05140"
)
QUESTION = (
    "Where does order begin when tokens attend to each other and are shaken by noise, and"
    " does it come slowly or with a jump?"
)
COVER = "diagrams"
