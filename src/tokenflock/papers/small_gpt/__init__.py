"""From bigram to GPT: what the tokens of small trained Transformers do.

A study of this library's own, in the setting of the seminar that teaches Transformers by building
one.
"""

REFERENCE = (
    "tokenflock's own study: GPTs on characters, trained with tokenflock.gpt on the manual of"
    " Python"
)
QUESTION = (
    "What do the tokens of small trained Transformers do: do they cluster as theory says of"
    " idealised layers?"
)
COVER = "norms"
