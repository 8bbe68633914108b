"""RoBERTa and its kin: layers as in BERT, and two positions that are padding's."""

from __future__ import annotations

from tokenflock.probing.architectures.architecture import Architecture
from tokenflock.probing.architectures.bert import AFTER_ATTENTION, bert_block

ARCHITECTURE = Architecture(
    ("roberta", "xlm-roberta", "camembert"),
    tap=AFTER_ATTENTION,
    block=bert_block,
    plain_heads=True,
    reserved=2,
)
