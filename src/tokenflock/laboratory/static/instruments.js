// The instruments: what the library measures, drawn live, with theory beside it where there is some.

const Instruments = (() => {
  const EDGE = { left: 46, right: 12, top: 10, bottom: 26 };

  function box(pen) {
    return { left: EDGE.left, right: pen.width - EDGE.right, top: EDGE.top, bottom: pen.height - EDGE.bottom };
  }

  function axes(pen, tone, frame, { x, y, label, log }) {
    for (const tick of y.ticks) {
      const at = y.of(tick);
      pen.line([frame.left, at, frame.right, at], { colour: tone.faint, width: 1 });
      pen.text(frame.left - 6, at + 4, shown(tick, 3), { colour: tone.soft, size: 10.5, align: "right" });
    }
    // a letter stands beside the axis, a word below it in place of the last numbers: no curve is there
    const beside = label.length < 2, free = beside ? Infinity : frame.right - 6 * label.length - 14;
    for (const tick of x.ticks) {
      const at = x.of(tick);
      pen.line([at, frame.bottom, at, frame.bottom + 4], { colour: tone.soft, width: 1 });
      if (at > free) continue;
      pen.text(at, frame.bottom + 16, shown(log ? 10 ** tick : tick, 3), { colour: tone.soft, size: 10.5, align: "center" });
    }
    pen.line([frame.left, frame.bottom, frame.right, frame.bottom], { colour: tone.soft, width: 1 });
    pen.text(beside ? frame.right + 4 : frame.right, frame.bottom + (beside ? 3 : 16), label, { colour: tone.soft, size: 10.5, align: beside ? "left" : "right" });
  }

  function scale(low, high, from, to, count) {
    const span = high - low || 1;
    return { of: (v) => from + (v - low) / span * (to - from), back: (p) => low + (p - from) / (to - from) * span, ticks: niceTicks(low, high, count) };
  }

  function bounds(values, floor = null, ceiling = null) {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    if (floor !== null && Number.isFinite(floor)) low = Math.min(low, floor);
    if (ceiling !== null && Number.isFinite(ceiling)) high = Math.max(high, ceiling);
    if (!Number.isFinite(low)) return [0, 1];
    const pad = 0.04 * (high - low || Math.abs(high) || 1);
    return [low - pad, high + pad];
  }

  // Curves against time. series: [{points, colour, dash, name}], levels: [{at, name}]
  function timeChart(pen, tone, scene, { series, levels = [], marks = [], range = null, steps = false }) {
    pen.clear(tone.paper);
    const frame = box(pen), log = scene.log;
    const time = (t) => (log ? Math.log10(Math.max(t, scene.first)) : t);
    const ends = [time(log ? scene.first : 0), Math.max(time(scene.last), time(log ? scene.first : 0) + 1e-9)];
    const values = series.flatMap((one) => one.points.filter((_, k) => k % 2 === 1)).concat(levels.map((level) => level.at));
    const [least, high] = range || bounds(values), low = levels.some((level) => level.room) ? least - 0.17 * (high - least) : least; // room for words below
    const x = scale(ends[0], ends[1], frame.left, frame.right, 5), y = scale(low, high, frame.bottom, frame.top, 4);
    axes(pen, tone, frame, { x, y, label: log ? `${scene.label} (log)` : scene.label, log });
    for (const mark of marks) { const at = x.of(time(mark)); if (at >= frame.left) pen.line([at, frame.bottom, at, frame.bottom - 7], { colour: tone.warm, width: 1.5 }); }
    for (const level of levels) {
      const at = y.of(level.at);
      pen.line([frame.left, at, frame.right, at], { colour: tone.warm, width: 1.2, dash: [5, 4] });
      pen.text(level.end ? frame.right - 6 : frame.left + 6, at + (level.below ? 13 : -5), level.name, { colour: tone.warm, size: 10.5, align: level.end ? "right" : "left" });
    }
    for (const one of series) {
      const points = [];
      let before = null;
      for (let k = 0; k + 1 < one.points.length; k += 2) {
        const px = x.of(time(one.points[k])), py = y.of(one.points[k + 1]);
        if (px > frame.right + 0.5) break;
        if (steps && before !== null) points.push(px, before);
        points.push(px, py); before = py;
      }
      pen.line(points, { colour: one.colour, width: 1.8, dash: one.dash || null });
    }
    let legend = frame.left + 8;
    for (const one of series.filter((each) => each.name)) {
      pen.line([legend, frame.top + 3, legend + 16, frame.top + 3], { colour: one.colour, width: 2, dash: one.dash || null });
      pen.text(legend + 20, frame.top + 7, one.name, { colour: tone.soft, size: 10.5 });
      legend += 30 + 5.6 * one.name.length;
    }
    if (scene.now !== null && series.length) {
      const at = x.of(time(scene.now));
      if (at >= frame.left && at <= frame.right) pen.line([at, frame.top, at, frame.bottom], { colour: tone.ink, width: 0.8, alpha: 0.5 });
    }
    return { timeAt: (left) => { const value = x.back(Math.max(frame.left, Math.min(frame.right, left))); return log ? 10 ** value : value; } };
  }

  function histogram(pen, tone, counts) {
    pen.clear(tone.paper);
    const frame = box(pen);
    const most = counts ? Math.max(...counts, 1e-9) : 1;
    const x = scale(-1, 1, frame.left, frame.right, 4), y = scale(0, Math.sqrt(most) * 1.05, frame.bottom, frame.top, 3);
    y.ticks = [0, most / 10, most].map(Math.sqrt);
    const labelled = { ...y, of: (v) => y.of(v) };
    for (const tick of labelled.ticks) {
      pen.line([frame.left, y.of(tick), frame.right, y.of(tick)], { colour: tone.faint, width: 1 });
      pen.text(frame.left - 6, y.of(tick) + 4, shown(tick * tick, 2), { colour: tone.soft, size: 10.5, align: "right" });
    }
    if (counts) {
      const wide = (frame.right - frame.left) / counts.length;
      counts.forEach((share, k) => { if (share > 0) pen.rect(frame.left + k * wide, y.of(Math.sqrt(share)), Math.max(wide - 0.6, 0.8), frame.bottom - y.of(Math.sqrt(share)), { fill: tone.accent, alpha: 0.85 }); });
    }
    axes(pen, tone, frame, { x, y: { ticks: [], of: y.of }, label: "", log: false });
  }

  function modes(pen, tone, values, levels) { // [rate, frequency, ...], the fastest first
    pen.clear(tone.paper);
    const frame = box(pen), rates = Array.from(values).filter((_, k) => k % 2 === 0), finite = rates.filter(Number.isFinite);
    const [low, high] = bounds(finite.concat(levels.map((level) => level.at)), 0, 0);
    const x = scale(0, Math.max(1, rates.length - 1), frame.left + 6, frame.right - 6, 5), y = scale(low, high, frame.bottom, frame.top, 4);
    axes(pen, tone, frame, { x: { ...x, ticks: [] }, y, label: "mode", log: false });
    pen.line([frame.left, y.of(0), frame.right, y.of(0)], { colour: tone.soft, width: 1 });
    for (const level of levels) {
      pen.line([frame.left, y.of(level.at), frame.right, y.of(level.at)], { colour: tone.warm, width: 1.2, dash: [5, 4] });
      pen.text(frame.right - 6, y.of(level.at) + 13, level.name, { colour: tone.warm, size: 10.5, align: "right" });
    }
    rates.forEach((rate, k) => { if (Number.isFinite(rate)) pen.circle(x.of(k), y.of(rate), 2.4, { fill: rate > 1e-9 ? tone.warm : tone.accent }); });
  }

  function matrix(pen, tone, values, n, order, held) {
    pen.clear(tone.paper);
    const side = Math.min(pen.width - 24, pen.height - 16), left = (pen.width - side) / 2, top = 8;
    if (!values || values.length !== n * n) { pen.text(pen.width / 2, pen.height / 2, scopeText(n), { colour: tone.soft, size: 12, align: "center" }); return; }
    let most = 0;
    for (const value of values) most = Math.max(most, value);
    const cell = side / n;
    pen.rect(left, top, side, side, { fill: tone.faint, alpha: 0.5 });
    order.forEach((i, row) => order.forEach((j, column) => {
      const share = values[i * n + j] / (most || 1);
      if (share > 0.01) pen.rect(left + column * cell, top + row * cell, cell + 0.3, cell + 0.3, { fill: tone.accent, alpha: Math.min(1, Math.sqrt(share)) });
    }));
    const row = held === null ? -1 : order.indexOf(held);
    if (row >= 0) pen.line([left, top + row * cell, left + side, top + row * cell, left + side, top + (row + 1) * cell, left, top + (row + 1) * cell, left, top + row * cell], { colour: tone.warm, width: 1.2 });
  }

  // Words in an empty panel, a line for each text.
  function words(pen, tone, ...lines) {
    pen.clear(tone.paper);
    lines.forEach((line, k) => pen.text(pen.width / 2, pen.height / 2 + 17 * (k - (lines.length - 1) / 2), line, { colour: tone.soft, size: 12, align: "center" }));
    return null;
  }

  function scopeText(n) { return n > 160 ? "shown up to n = 160" : "this law has no attention matrix"; }

  // Numbers of theory, as the library tabulated them over beta; between two of them a straight line.
  function tabulated(table, beta) {
    if (!table || !(beta >= table.beta[0] && beta <= table.beta[table.beta.length - 1])) return null;
    let k = 1;
    while (k < table.beta.length - 1 && table.beta[k] < beta) k += 1;
    const share = (beta - table.beta[k - 1]) / (table.beta[k] - table.beta[k - 1]);
    return table.log[k - 1] + share * (table.log[k] - table.log[k - 1]);
  }

  return { words, timeChart, histogram, modes, matrix, tabulated, bounds };
})();
