// The panels beside the stage: one canvas each, drawn with a pen, saved as png or svg.

const Panels = (() => {
  const MATRIX = 160; // tokens up to which the attention matrix is shown

  // name, title, what it draws, and which observables of the library it needs
  const LIST = [
    { name: "histogram", title: "inner products of pairs", draw: drawHistogram, needs: ["histogram"] },
    { name: "energy", title: "energy", draw: drawEnergy, needs: ["energy"], timed: true },
    { name: "clusters", title: "clusters, merges marked", draw: drawClusters, needs: ["cluster_count", "cluster_labels"], timed: true },
    { name: "order", title: "order parameter", draw: drawOrder, needs: ["order_parameter", "mean_cosine"], timed: true },
    { name: "attention", title: "attention matrix, by cluster", draw: drawAttention, needs: ["attention"], tall: true },
  ];

  function scene(lab) {
    const frames = lab.history.frames, last = frames.length ? frames[frames.length - 1].t : 1;
    const first = frames.length > 1 ? Math.max(frames[1].t, 1e-6) : 1e-2;
    return { log: lab.log, first, last: Math.max(last, first * 1.0001), now: lab.shownFrame() ? lab.shownFrame().t : null };
  }

  function drawHistogram(pen, tone, lab) { Instruments.histogram(pen, tone, lab.seen("histogram")); return null; }

  function drawEnergy(pen, tone, lab) {
    const levels = [], beta = lab.beta(), tables = (lab.theory || {})[lab.state.d];
    if (tables && lab.hasBounds() && beta !== null) {
      const top = Instruments.tabulated(tables.dirac, beta), low = Instruments.tabulated(tables.uniform, beta);
      if (top !== null) levels.push({ at: Math.exp(top), name: "one point (maximum)", below: true });
      if (low !== null) levels.push({ at: Math.exp(low), name: "uniform (least)" });
    }
    const points = lab.history.series("energy");
    if (!points.length) { pen.clear(tone.paper); pen.text(pen.width / 2, pen.height / 2, "this law has no such energy", { colour: tone.soft, size: 12, align: "center" }); return null; }
    return Instruments.timeChart(pen, tone, scene(lab), { series: [{ points, colour: tone.accent }], levels });
  }

  function drawClusters(pen, tone, lab) {
    const points = lab.history.series("cluster_count");
    const most = points.filter((_, k) => k % 2 === 1).reduce((a, b) => Math.max(a, b), 1);
    return Instruments.timeChart(pen, tone, scene(lab), { series: [{ points, colour: tone.accent }], marks: lab.history.merges.map((merge) => merge.t), range: [0, most * 1.08], steps: true });
  }

  function drawOrder(pen, tone, lab) {
    const series = [{ points: lab.history.series("order_parameter"), colour: tone.accent, name: "order parameter" }, { points: lab.history.series("mean_cosine"), colour: tone.second, name: "mean cosine" }];
    const curve = lab.curve();
    if (curve) series.push({ points: curve, colour: tone.warm, dash: [5, 4], name: "theory, d → ∞" });
    const least = series[1].points.filter((_, k) => k % 2 === 1).reduce((a, b) => Math.min(a, b), 0);
    return Instruments.timeChart(pen, tone, scene(lab), { series, range: [Math.min(-0.02, least), 1.12] });
  }

  function drawAttention(pen, tone, lab) {
    const frame = lab.shownFrame(), values = frame && frame.n <= MATRIX ? lab.seen("attention") : null;
    if (!frame) { pen.clear(tone.paper); return null; }
    const labels = lab.seen("cluster_labels"), order = Array.from({ length: frame.n }, (_, i) => i);
    if (labels && labels.length === frame.n && !lab.ordered()) order.sort((a, b) => labels[a] - labels[b] || a - b);
    Instruments.matrix(pen, tone, values, frame.n, order, lab.held);
    return null;
  }

  function build(home, lab, act, names = null) { // all of them, or those that a figure has
    home.replaceChildren();
    lab.panels = LIST.filter((panel) => names === null || names.includes(panel.name)).map((panel) => {
      const canvas = element("canvas", { role: "img", "aria-label": panel.title }), value = element("output");
      const save = (kind) => element("button", { type: "button", class: "save", text: kind, "aria-label": `save ${panel.title} as ${kind}`, onclick: () => act.savePanel(panel, kind) });
      const place = element("section", { class: `panel${panel.tall ? " tall" : ""}${panel.timed ? " timed" : ""}`, "data-panel": panel.name, "aria-label": panel.title },
        element("h2", {}, element("span", { text: panel.title }), value, names ? "" : element("span", {}, save("png"), save("svg"))), canvas);
      home.append(place);
      const made = { ...panel, canvas, value, home: place, back: null };
      if (panel.timed) canvas.addEventListener("click", (event) => { if (made.back) act.scrubTo(made.back.timeAt(event.clientX - canvas.getBoundingClientRect().left)); });
      return made;
    });
  }

  function draw(lab, tone) {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    for (const panel of lab.panels) {
      panel.home.hidden = lab.history.length > 0 && !panel.needs.some((name) => lab.seen(name) !== null);
      const box = panel.canvas.getBoundingClientRect();
      if (box.width < 10 || box.bottom < -50 || box.top > innerHeight + 50) continue;
      panel.back = panel.draw(new CanvasPen(panel.canvas, box.width, box.height, ratio), tone, lab);
      panel.value.textContent = said(panel, lab);
    }
  }

  function said(panel, lab) {
    const name = { energy: "energy", clusters: "cluster_count", order: "order_parameter" }[panel.name];
    const value = name ? lab.seen(name) : null;
    return value && value.length === 1 ? shown(value[0], 4) : "";
  }

  // which observables the worker measures, and up to how many tokens
  function wanted(lawNames, lensNames) {
    const most = { attention: MATRIX, histogram: 4000, energy: 4000, cluster_count: 4000, cluster_labels: 4000, mean_cosine: 4000 };
    return [...lawNames.map((name) => ({ name, of: "law", most: most[name] || 1e9 })), ...lensNames.map((name) => ({ name, of: "lens", most: most[name] || 1e9 }))];
  }

  return { build, draw, wanted, LIST };
})();
