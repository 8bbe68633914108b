"""A mathematical perspective on Transformers.

Geshkovski, Letrouit, Polyanskiy, Rigollet; arXiv 2312.10794 (v4), Bulletin of the AMS 62(3),
427-479, 2025.
"""

REFERENCE = (
    "B. Geshkovski, C. Letrouit, Y. Polyanskiy, P. Rigollet, arXiv 2312.10794, Bull. AMS 62(3)"
    " (2025) 427-479"
)
QUESTION = (
    "Do tokens that attend to each other always end in one cluster, and how long do they"
    " stay in several before?"
)
COVER = "fig3"
