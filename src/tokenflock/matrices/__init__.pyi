from tokenflock.matrices.goe import GOE as GOE
from tokenflock.matrices.gaussian_entries import GaussianEntries as GaussianEntries
from tokenflock.matrices.ginibre import Ginibre as Ginibre
from tokenflock.matrices.identity import Identity as Identity
from tokenflock.matrices.matrix import MatrixLaw as MatrixLaw
from tokenflock.matrices._random import Per as Per
from tokenflock.matrices._random import RandomMatrices as RandomMatrices
from tokenflock.matrices._random import Value as Value
from tokenflock.matrices.wigner import Wigner as Wigner

__all__ = [
    "GOE",
    "GaussianEntries",
    "Ginibre",
    "Identity",
    "MatrixLaw",
    "Per",
    "RandomMatrices",
    "Value",
    "Wigner",
]
