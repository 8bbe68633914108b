from tokenflock.starts.box import Box as Box
from tokenflock.starts.cap import Cap as Cap
from tokenflock.starts.clusters import Clusters as Clusters
from tokenflock.starts.equiangular import Equiangular as Equiangular
from tokenflock.starts.gaussian import Gaussian as Gaussian
from tokenflock.starts.given import Given as Given
from tokenflock.starts.hemisphere import Hemisphere as Hemisphere
from tokenflock.starts.orthogonal import Orthogonal as Orthogonal
from tokenflock.starts.polygon import Polygon as Polygon
from tokenflock.starts.scaled import Scaled as Scaled
from tokenflock.starts.simplex import Simplex as Simplex
from tokenflock.starts.start import Start as Start
from tokenflock.starts.sunflower import Sunflower as Sunflower
from tokenflock.starts.uniform import Uniform as Uniform
from tokenflock.starts.von_mises_fisher import VonMisesFisher as VonMisesFisher

__all__ = [
    "Box",
    "Cap",
    "Clusters",
    "Equiangular",
    "Gaussian",
    "Given",
    "Hemisphere",
    "Orthogonal",
    "Polygon",
    "Scaled",
    "Simplex",
    "Start",
    "Sunflower",
    "Uniform",
    "VonMisesFisher",
]
