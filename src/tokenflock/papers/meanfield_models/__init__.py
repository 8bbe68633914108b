"""Analysis of mean-field models arising from self-attention dynamics in transformer architectures
with layer normalization.

Burger, Kabri, Korolev, Roith, Weigand; arXiv 2501.03096, Philosophical Transactions of the Royal
Society A 383, 20240233, 2025.
"""

REFERENCE = (
    "M. Burger, S. Kabri, Y. Korolev, T. Roith, L. Weigand, arXiv 2501.03096, Phil. Trans. R. Soc."
    " A 383 (2025) 20240233"
)
QUESTION = (
    "Which measures of tokens have the most and the least energy, and where does the flow of"
    " attention end?"
)
COVER = "fig3"
