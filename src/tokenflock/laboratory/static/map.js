// The map: phase diagrams that the library computed, beta across and time up. A click starts a run.

const PhaseMap = (() => {
  const EDGE = { left: 40, right: 10, top: 8, bottom: 28 };
  // a calm ramp from paper to ink through blue, the same in light and dark
  const RAMP = [[12, 44, 92], [31, 94, 153], [66, 146, 182], [140, 196, 187], [226, 232, 196], [252, 246, 224]];

  function ramp(share) {
    const at = Math.max(0, Math.min(1, share)) * (RAMP.length - 1), k = Math.min(RAMP.length - 2, Math.floor(at)), f = at - k;
    const mixed = RAMP[k].map((value, c) => Math.round(value + f * (RAMP[k + 1][c] - value)));
    return `rgb(${mixed.join(",")})`;
  }

  function place(pen, chart) {
    const box = { left: EDGE.left, right: pen.width - EDGE.right, top: EDGE.top, bottom: pen.height - EDGE.bottom };
    const first = chart.beta[0], last = chart.beta[chart.beta.length - 1], end = chart.time[chart.time.length - 1];
    return {
      box,
      x: (beta) => box.left + (beta - first) / (last - first) * (box.right - box.left),
      y: (t) => box.bottom - t / end * (box.bottom - box.top),
      beta: (left) => first + (left - box.left) / (box.right - box.left) * (last - first),
      t: (top) => (box.bottom - top) / (box.bottom - box.top) * end,
    };
  }

  function draw(pen, chart, tone, here) {
    pen.clear(tone.paper);
    const at = place(pen, chart), wide = (at.box.right - at.box.left) / (chart.beta.length - 1), high = (at.box.bottom - at.box.top) / (chart.time.length - 1);
    const range = chart.range;
    for (let i = 0; i < chart.beta.length; i++) for (let k = 0; k < chart.time.length; k++) {
      const share = (chart.values[i * chart.time.length + k] - range[0]) / (range[1] - range[0] || 1);
      const left = Math.floor(Math.max(at.box.left, at.x(chart.beta[i]) - wide / 2)), top = Math.floor(Math.max(at.box.top, at.y(chart.time[k]) - high / 2));
      const right = Math.ceil(Math.min(at.box.right, at.x(chart.beta[i]) + wide / 2)), bottom = Math.ceil(Math.min(at.box.bottom, at.y(chart.time[k]) + high / 2));
      pen.rect(left, top, right - left, bottom - top, { fill: ramp(1 - share) });
    }
    if (chart.transition) {
      const points = [];
      chart.transition.forEach((beta, k) => { if (beta !== null && beta >= chart.beta[0] && beta <= chart.beta[chart.beta.length - 1]) points.push(at.x(beta), at.y(chart.time[k])); else points.push(NaN, NaN); });
      pen.line(points, { colour: "#ff9d5c", width: 2 });
    }
    for (const tick of niceTicks(chart.beta[0], chart.beta[chart.beta.length - 1], 6)) pen.text(at.x(tick), at.box.bottom + 14, shown(tick, 3), { colour: tone.soft, size: 10.5, align: "center" });
    for (const tick of niceTicks(0, chart.time[chart.time.length - 1], 5)) pen.text(at.box.left - 6, at.y(tick) + 4, shown(tick, 3), { colour: tone.soft, size: 10.5, align: "right" });
    pen.text(at.box.right, at.box.bottom + 26, "β", { colour: tone.soft, size: 11, align: "right" });
    pen.text(6, at.box.top + 10, "t", { colour: tone.soft, size: 11 });
    if (here) { pen.circle(at.x(here.beta), at.y(Math.min(here.t, chart.time[chart.time.length - 1])), 5, { stroke: "#ffffff", width: 3 }); pen.circle(at.x(here.beta), at.y(Math.min(here.t, chart.time[chart.time.length - 1])), 5, { stroke: "#d03b00", width: 1.8 }); }
  }

  // What a click means: the beta and the time there, and the number that the diagram has.
  function at(pen, chart, left, top) {
    const where = place(pen, chart);
    if (left < where.box.left - 6 || left > where.box.right + 6 || top < where.box.top - 6 || top > where.box.bottom + 6) return null;
    const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
    const beta = clamp(where.beta(left), chart.beta[0], chart.beta[chart.beta.length - 1]), t = clamp(where.t(top), chart.h, chart.time[chart.time.length - 1]);
    const nearest = (list, value) => list.reduce((best, each, k) => (Math.abs(each - value) < Math.abs(list[best] - value) ? k : best), 0);
    const i = nearest(chart.beta, beta), k = nearest(chart.time, t);
    return { beta: Number(beta.toPrecision(3)), t: Math.max(chart.h, Math.round(t / chart.h) * chart.h), value: chart.values[i * chart.time.length + k] };
  }

  return { draw, at };
})();
