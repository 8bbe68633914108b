"""Dynamic metastability in the self-attention model.

Geshkovski, Koubbi, Polyanskiy, Rigollet; arXiv 2410.06833.
"""

REFERENCE = (
    "B. Geshkovski, H. Koubbi, Y. Polyanskiy, P. Rigollet, Dynamic metastability in the"
    " self-attention model, arXiv 2410.06833"
)
QUESTION = (
    "How long do tokens wait in separate clusters before they merge, and in which steps does"
    " the energy climb?"
)
COVER = "staircase"
