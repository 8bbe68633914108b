"""Perceptrons and attention: what the feed-forward part does to clusters.

Alvarez-Lopez, Geshkovski, Ruiz-Balet, arXiv 2601.21366; Isobe, Inoue, Imaizumi, arXiv 2605.07772.
Known here by their abstracts; what an abstract does not state is derived here, and said to be.
"""

REFERENCE = (
    "A. Álvarez-López, B. Geshkovski, D. Ruiz-Balet, arXiv 2601.21366; N. Isobe, D. Inoue, M."
    " Imaizumi, arXiv 2605.07772"
)
QUESTION = "What does the feed-forward part do to the clusters that attention makes?"
COVER = "landscape"
