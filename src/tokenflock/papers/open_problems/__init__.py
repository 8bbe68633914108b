"""Open problems, attacked with this library.

A study of this library's own: questions that the papers leave open. Each item has a question, a
method, a number with its error, and a verdict in its claims: supported, refuted or undecided. What
is derived here is said to be; a verdict is about what was measured, and no proof.
"""

REFERENCE = (
    "tokenflock's own study of questions in arXiv 2312.10794, 2410.06833, 2507.22857, 2601.21942,"
    " 2606.05140"
)
QUESTION = (
    "Which questions that the papers leave open can be supported or refuted by running the models?"
)
COVER = "sharpness"
