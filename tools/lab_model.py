"""Train the small model of the lab's last lesson and write its tokens, layer by layer.

    python tools/lab_model.py        a minute or two on one core

One layer, shared by all depths, learns to write like the manual of Python; a sentence is then
passed through it more often than it was trained for.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tokenflock.gpt import preset, probe, train
from tokenflock.laboratory.ready import MODEL
from tokenflock.laboratory.recordings import recording
from tokenflock.probing.options import Recording

HOME = Path(__file__).parents[1] / "src" / "tokenflock" / "laboratory" / "static" / MODEL
SENTENCE = "the list of all the names that are in a module"
DEPTH = 24


def main() -> None:
    """Train, probe, and replace what is there."""
    shape, schedule = preset("quick", shared=True, depth=6, steps=600)
    with tempfile.TemporaryDirectory() as folder:
        last = train(folder, None, shape, schedule)
        run = probe(folder, [SENTENCE], DEPTH, record=Recording(normalise=True))
    told = recording(run) | {
        "title": f"a GPT of one shared layer, width {shape.width}, trained on the manual of Python"
    }
    HOME.write_text(json.dumps(told) + "\n", encoding="utf-8")
    print(f"{HOME.name}, {HOME.stat().st_size / 1000:.0f} kB, after {last.step} steps")
    print(run)


if __name__ == "__main__":
    main()
