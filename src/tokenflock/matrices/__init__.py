"""Laws of random matrices, one file each, and how they enter attention: `from tokenflock.matrices
import Ginibre`.
"""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy(
    "matrices",
    {
        "MatrixLaw": "tokenflock.matrices.matrix",
        "RandomMatrices": "tokenflock.matrices._random",
        "Per": "tokenflock.matrices._random",
        "Value": "tokenflock.matrices._random",
    },
)
