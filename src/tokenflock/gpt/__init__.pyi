from tokenflock.gpt.bigram import Bigram as Bigram
from tokenflock.gpt.gpt import GPT as GPT
from tokenflock.gpt.multi_head import ManyHeads as ManyHeads
from tokenflock.gpt.head import OneHead as OneHead
from tokenflock.gpt.residual import Residual as Residual
from tokenflock.gpt.settings import Schedule as Schedule
from tokenflock.gpt.settings import Shape as Shape
from tokenflock.gpt.feed_forward import Thinking as Thinking
from tokenflock.gpt.watching import Watcher as Watcher
from tokenflock.gpt.ladder import build as build
from tokenflock.gpt.checkpoint import load as load
from tokenflock.gpt.settings import preset as preset
from tokenflock.gpt.probing import probe as probe
from tokenflock.gpt.flowing import refine as refine
from tokenflock.gpt.sampling import sample as sample
from tokenflock.gpt.training import train as train
from tokenflock.gpt.training import validate as validate

__all__ = [
    "Bigram",
    "GPT",
    "ManyHeads",
    "OneHead",
    "Residual",
    "Schedule",
    "Shape",
    "Thinking",
    "Watcher",
    "build",
    "load",
    "preset",
    "probe",
    "refine",
    "sample",
    "train",
    "validate",
]
