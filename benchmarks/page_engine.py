"""Milliseconds a step of programs for pages takes in node, on one core.

    python benchmarks/page_engine.py

Processor time is counted, not time on the clock, so that a busy machine changes little.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenflock.dynamics import Fast, SelfAttention
from tokenflock.engines.page import Program, program, start_program
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

RUN = """
const cases = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const answers = cases.map(({ step, start, params, n, work }) => {
  const made = (0, eval)(step), drawn = (0, eval)(start).draw(n, 0, 0);
  const w = new Float64Array(n).fill(1 / n), p = params.map((k) => Float64Array.from(k));
  const s = { n, t: 0, h: 0.1, x: drawn.x, w, key: drawn.key, index: 0 };
  const count = Math.max(3, Math.ceil(work));
  const run = (steps) => { for (let k = 0; k < steps; k++) s.x = made.step(s, p); };
  run(Math.ceil(count / 3));
  const before = process.cpuUsage();
  run(count);
  const spent = process.cpuUsage(before);
  return (spent.user + spent.system) / 1000 / count;
});
console.log(JSON.stringify(answers));
"""


def milliseconds(cases: list[tuple[Program, int, int, float]]) -> list[float]:
    """Of a step of each program: (program, n, d, steps to make)."""
    node = shutil.which("node")
    if node is None:
        sys.exit("node is not installed: no page can be run")
    jobs = [
        {
            "step": made.source,
            "start": start_program(Uniform(n=d + 1, d=d), d=d).source,
            "params": [parameter["default"] for parameter in made.manifest["parameters"]],
            "n": n,
            "work": steps,
        }
        for made, n, d, steps in cases
    ]
    with tempfile.TemporaryDirectory() as folder:
        script, given = Path(folder) / "run.js", Path(folder) / "cases.json"
        script.write_text(RUN, encoding="utf-8")
        given.write_text(json.dumps(jobs), encoding="utf-8")
        done = subprocess.run(
            [node, str(script), str(given)], capture_output=True, text=True, check=True
        )
    return json.loads(done.stdout)


def main() -> None:
    law, fast = SelfAttention(beta=4.0), Fast(SelfAttention(beta=4.0))
    counts = (32, 256, 1024, 2000)
    attention = program(law, Layer(), d=3)
    cases = [(attention, n, 3, 2e7 / n**2) for n in counts]
    cases += [(program(fast, Layer(), d=d), 20_000, d, 20) for d in (2, 3)]
    times = milliseconds(cases)
    for (_, n, d, _), spent in zip(cases, times):
        name = "SA" if n in counts else "Fast SA"
        print(f"{name}, n = {n:6,}, d = {d}: {spent:8.3f} ms a step, {1000 / spent:8.0f} a second")


if __name__ == "__main__":
    main()
