"""Programs of pages run by node, all of them in one process."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

NODE = shutil.which("node")
RUNNER = """
"use strict";
const fs = require("fs");
const cases = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const array = (text) => {
  const bytes = Buffer.from(text, "base64");
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};
const text = (numbers) => {
  const copy = Float64Array.from(numbers);
  return Buffer.from(copy.buffer).toString("base64");
};
const answers = cases.map((c) => {
  try {
    const made = (0, eval)(c.source);
    if (c.draw) return c.draw.map((d) => {
      const drawn = made.draw(...d);
      return [text(drawn.x), text(drawn.key)];
    });
    const params = c.params.map(array);
    return c.states.map((given) => {
      const state = { ...given, x: array(given.x), w: array(given.w) };
      state.key = Uint32Array.from(given.key);
      const seen = Object.keys(made.observe).map((name) => {
        return [name, text(made.observe[name](state, params))];
      });
      const projected = text(made.project(state, params));
      for (let k = 0; k < given.steps; k++) {
        state.x = made.step(state, params);
        state.index += 1;
        state.t = state.index * state.h;
      }
      return { x: text(state.x), projected, seen: Object.fromEntries(seen) };
    });
  } catch (error) { return { error: String(error.stack) }; }
});
fs.writeFileSync(process.argv[3], JSON.stringify(answers));
"""


def encoded(numbers: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, np.float64).tobytes()).decode()


def decoded(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.float64)


def state(x, w, *, steps=1, t=0.0, h=0.1, key=(0, 0), index=0) -> dict[str, Any]:
    """What a page's step is given, and how many steps to make."""
    numbers = {"n": len(x), "t": t, "h": h, "index": index, "steps": steps}
    words = [int(word) for word in key]
    return numbers | {"x": encoded(x), "w": encoded(w), "key": words}


def case(program, states) -> dict[str, Any]:
    """A program with its own parameters, and the states to start from."""
    params = [encoded(parameter["default"]) for parameter in program.manifest["parameters"]]
    return {"source": program.source, "params": params, "states": states}


def answers(cases: list[dict[str, Any]], folder: Path) -> list[Any]:
    """What node says to each case."""
    runner, given, told = folder / "run.js", folder / "cases.json", folder / "answers.json"
    runner.write_text(RUNNER, encoding="utf-8")
    given.write_text(json.dumps(cases), encoding="utf-8")
    subprocess.run([str(NODE), str(runner), str(given), str(told)], check=True, timeout=300)
    return json.loads(told.read_text(encoding="utf-8"))


def said(names: Sequence[str], script: str, given: Any, folder: Path) -> Any:
    """What a script says of what is given, with some of the page's own scripts before it."""
    home = files("tokenflock.laboratory") / "static"
    parts = [(home / f"{name}.js").read_text("utf-8") for name in names]
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    head = f'const given = JSON.parse(require("fs").readFileSync({str(folder)!r} + "/given.json"));'
    text = "\n".join([*parts, head, script])
    (folder / "run.js").write_text(text, encoding="utf-8")
    command = [str(NODE), str(folder / "run.js")]
    done = subprocess.run(command, check=True, capture_output=True, timeout=120)
    return json.loads(done.stdout)
