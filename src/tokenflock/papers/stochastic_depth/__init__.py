"""Fresh weights in every layer: tokens that hear the same noise.

Fedorov, Sander, Elie, Marion, Laurière, arXiv 2601.21942; Koubbi, Geshkovski, Rigollet, arXiv
2604.01978; Agazzi, Bruno, Mosig García, Saviozzi, Romito, arXiv 2604.26898. The three are known
here by their abstracts and by the models that these describe; formulas that an abstract does not
state are derived here, and said to be.
"""

REFERENCE = (
    "L. Fedorov et al., arXiv 2601.21942; H. Koubbi, B. Geshkovski, P. Rigollet, arXiv 2604.01978;"
    " A. Agazzi et al., arXiv 2604.26898"
)
QUESTION = (
    "Do tokens meet when every layer has fresh random weights, so that all of them hear the"
    " same noise?"
)
COVER = "pair"
