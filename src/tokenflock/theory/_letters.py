"""What the letters of a closed form mean: in its own words, else as everywhere."""

from __future__ import annotations

import re

USUAL = {  # unless a docstring says otherwise after `Letters:`
    "A": "matrix of the attention form, beta Q^T K",
    "M": "resolution",
    "V": "value matrix",
    "a": "number of the attention form, beta q k",
    "alpha": "step of nGPT",
    "angle": "angle in radians",
    "beta": "inverse temperature",
    "c": "minus the first eigenvalue of D",
    "cosine": "cosine between clusters",
    "covariance": "covariance matrix",
    "d": "dimension",
    "d1": "first eigenvalue of D",
    "d2": "second eigenvalue of D",
    "decay": "strength of the recency bias",
    "delta": "1 - cosine at which tokens count as one",
    "eigenvalue": "eigenvalue of D",
    "gamma": "cosine between tokens",
    "gamma0": "cosine between tokens at time 0",
    "gamma1": "cosine between tokens at the end",
    "h": "step of a layer",
    "k": "degree of the ripple",
    "kappa": "inverse noise; inf: none",
    "lambda1": "first eigenvalue of D",
    "lambda2": "second eigenvalue of D",
    "m": "mass of one cluster",
    "masses": "masses of the clusters",
    "mean": "mean",
    "model": "SA, USA or Sinkhorn",
    "most": "layers after which the search ends",
    "n": "number of tokens",
    "p": "mass of one cluster",
    "r": "order parameter",
    "r0": "order parameter at time 0",
    "rho": "cosine between tokens",
    "rho0": "cosine between tokens at time 0",
    "s": "position in the context, from 0 to 1",
    "scaled": "times e^(-beta)",
    "scheme": "post, pre, mix, peri, ngpt or sqrt",
    "switch": "time at which mix goes from post to pre",
    "t": "time",
    "tau": "angle between two tokens",
    "theta": "angle in radians",
    "u": "mass to the left, from 0 to 1",
    "unnormalised": "USA instead of SA",
    "v": "value",
    "variance": "variance at time 0",
}
_ITEM = r"((?:\([^()]*\)|<[^<>]*>|\.(?=\S)|[^,;.(<])+)"


def meaning(doc: str, name: str) -> str:
    """What an argument is, from the docstring of its closed form; empty where nobody says.

    >>> meaning("A form. Letters: k degree (0 to 9), x = theta_2 - theta_1.", "x")
    'theta_2 - theta_1'
    >>> meaning("A form.", "beta")
    'inverse temperature'
    """
    text = " ".join(doc.partition(">>>")[0].split()).partition("Letters:")[2]
    text = re.split(r"\.(?= |$)|Source:", text)[0].strip()
    found = re.search(rf"(?:^|[,;] |\band ){name} (?:= )?(?=[a-z<|](?!nd )){_ITEM}", text)
    if found is None or found[1].startswith(("as in", "is ")):
        return USUAL.get(name, "")
    return re.sub(r"^(?:the|a|an) ", "", found[1].strip())
