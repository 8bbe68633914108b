"""A small GPT on characters: validation loss, and tokens per second beside an equal PyTorch model.

python benchmarks/gpt.py --text tinyshakespeare.txt --out benchmarks/results/gpt.json

4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, no dropout (nanoGPT reports 1.88
for this setting). Both models train on the same windows in turns, so that other work on the machine
hits both; the best turn of each counts, and PyTorch runs with all cores and with one, whichever is
faster.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from torch import nn
from torch.nn import functional as F

from tokenflock import gpt
from tokenflock.gpt.checkpoint import fresh
from tokenflock.gpt.text import Characters, read, split
from tokenflock.gpt.training import offsets, optimiser, steps

TURN = 20  # steps in one turn


class Layer(nn.Module):
    def __init__(self, shape: gpt.Shape):
        super().__init__()
        d = shape.width
        self.heads = shape.heads
        self.norms = nn.ModuleList(nn.LayerNorm(d, bias=False) for _ in range(2))
        self.qkv, self.mix = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        batch, time_, d = x.shape
        q, k, v = (
            one.view(batch, time_, self.heads, -1).transpose(1, 2)
            for one in self.qkv(self.norms[0](x)).split(d, dim=2)
        )
        y = (
            F.scaled_dot_product_attention(q, k, v, is_causal=True)
            .transpose(1, 2)
            .reshape(batch, time_, d)
        )
        x = x + self.mix(y)
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Torch(nn.Module):
    """The same model in PyTorch: learned positions, tied readout, pre-norm, no biases."""

    def __init__(self, shape: gpt.Shape):
        super().__init__()
        self.token, self.place = (
            nn.Embedding(shape.vocab, shape.width),
            nn.Embedding(shape.context, shape.width),
        )
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.depth))
        self.norm = nn.LayerNorm(shape.width, bias=False)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.token.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def copied(model: gpt.GPT, shape: gpt.Shape) -> Torch:
    """PyTorch's model with our weights, so that both start from the same loss."""
    other = Torch(shape)

    def put(place, value):
        place.data.copy_(torch.from_numpy(np.array(value)))

    put(other.token.weight, model.token)
    put(other.place.weight, model.place)
    for layer, block in zip(other.layers, model.blocks):
        put(layer.qkv.weight, block.attention.qkv.T)
        put(layer.mix.weight, block.attention.mix.T)
        put(layer.up.weight, block.perceptron.up.T)
        put(layer.down.weight, block.perceptron.down.T)
    return other


class Theirs:
    """Turns of training in PyTorch: fused AdamW, clipping, the same windows and the same schedule
    of rates.
    """

    def __init__(self, model: Torch, schedule: gpt.Schedule, data: np.ndarray, context: int):
        self.model, self.schedule, self.context = model, schedule, context
        self.data = torch.from_numpy(data.astype(np.int64))
        self.optimiser = torch.optim.AdamW(
            [
                {
                    "params": [p for p in model.parameters() if p.dim() >= 2],
                    "weight_decay": schedule.decay,
                },
                {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
            ],
            betas=schedule.momentum,
            fused=True,
        )
        self.rate = optax.warmup_cosine_decay_schedule(
            0.0, schedule.rate, schedule.warmup, schedule.steps, schedule.last_rate
        )
        self.rates = np.asarray(jax.vmap(self.rate)(jnp.arange(schedule.steps + 1)))

    def turn(self, first: int, last: int) -> float:
        total = 0.0
        places = torch.arange(self.context + 1)
        for step in range(first, last):
            starts = offsets(
                self.schedule.seed,
                range(step, step + 1),
                self.schedule.batch,
                len(self.data) - self.context,
            )
            found = self.data[torch.from_numpy(starts[0].astype(np.int64))[:, None] + places]
            for group in self.optimiser.param_groups:
                group["lr"] = float(self.rates[step + 1])
            loss = self.model(found[:, :-1], found[:, 1:])
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.clip)
            self.optimiser.step()
            total += loss.item()
        return total / (last - first)


class Ours:
    def __init__(self, model: gpt.GPT, schedule: gpt.Schedule, data: np.ndarray, context: int):
        self.model, self.state = model, optimiser(schedule).init(eqx.filter(model, eqx.is_array))
        self.fixed = schedule, context, jnp.asarray(data)

    def turn(self, first: int, last: int) -> float:
        self.model, self.state, loss = steps(self.fixed, self.model, self.state, first, last)
        return loss


def speeds(
    shape: gpt.Shape, schedule: gpt.Schedule, data: np.ndarray, turns: int
) -> dict[str, object]:
    """Best tokens per second of each, in turns; the first turn warms up and compiles."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = fresh(shape)
    others = {
        threads: Theirs(copied(model, shape), schedule, data, shape.context)
        for threads in {cores, 1}
    }
    runners = {"ours": Ours(model, schedule, data, shape.context)} | {
        f"torch_{k}_threads": one for k, one in others.items()
    }
    best = dict.fromkeys(runners, 0.0)
    losses = {}
    for turn in range(turns + 1):
        for name, runner in runners.items():
            if name != "ours":
                torch.set_num_threads(int(name.split("_")[1]))
            began = time.perf_counter()
            losses[name] = runner.turn(turn * TURN, turn * TURN + TURN)
            taken = time.perf_counter() - began
            if turn > 0:
                best[name] = max(best[name], TURN * schedule.batch * shape.context / taken)
    theirs = max(value for name, value in best.items() if name != "ours")
    return {
        "tokens_per_second": best,
        "ratio": best["ours"] / theirs,
        "turns": turns,
        "losses_after_turns": losses,
    }


def trained(text: str, rung: str, steps: int) -> dict[str, float]:
    shape, schedule = gpt.preset("cpu", rung=rung, steps=steps)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        last = gpt.train(
            folder, text, shape, schedule, tell=lambda now: now.val and print(rung, now, flush=True)
        )
        return {
            "val_loss": last.history[-1][2],
            "train_loss": last.history[-1][1],
            "seconds": time.perf_counter() - began,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--text", type=Path, help="tiny Shakespeare; the manual of Python unless given"
    )
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--device", default=f"CPU, {os.cpu_count()} cores")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = read(options.text)
    alphabet = Characters.of(text)
    shape, schedule = gpt.preset("cpu", vocab=alphabet.size, chunk=TURN)
    data, _ = split(alphabet.encode(text), shape.context)
    found = {
        "device": options.device,
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "torch": torch.__version__,
        "text": options.text.name if options.text else "pydoc topics",
        "characters": len(text),
        "steps": options.steps,
    }
    found |= speeds(shape, schedule, data, options.turns)
    print(json.dumps(found, indent=1), flush=True)
    for rung in ("bigram", "gpt"):
        found[rung] = trained(text, rung, options.steps)
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
