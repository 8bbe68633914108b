// The panels beside the stage: one canvas each, drawn with a pen, saved as png or svg.

const Panels = (() => {
  const NUMBERS = 96; // of a state up to which the spectrum is found: n (d - 1) on the sphere
  const MATRIX = 160; // tokens up to which the attention matrix is shown

  // name, title, what it draws, and which observables of the library it needs
  const LIST = [
    { name: "histogram", title: "inner products of pairs", draw: drawHistogram, needs: ["histogram"] },
    { name: "energy", title: "energy", draw: drawEnergy, needs: ["energy"], timed: true },
    { name: "clusters", title: "clusters", draw: drawClusters, needs: ["cluster_count", "cluster_labels"], timed: true },
    { name: "order", title: "order parameter", draw: drawOrder, needs: ["order_parameter", "mean_cosine"], timed: true },
    { name: "spectrum", title: "growth rates", draw: drawSpectrum, needs: ["spectrum"] },
    { name: "attention", title: "attention matrix, by cluster", draw: drawAttention, needs: ["attention"], tall: true },
  ];

  function scene(lab) {
    const frames = lab.history.frames, last = frames.length ? frames[frames.length - 1].t : 1;
    const first = frames.length > 1 ? Math.max(frames[1].t, 1e-6) : 1e-2;
    return { log: lab.log, label: lab.recording && lab.recording.axis === "layer" ? "layer" : "t", first, last: Math.max(last, first * 1.0001), now: lab.shownFrame() ? lab.shownFrame().t : null };
  }

  function drawHistogram(pen, tone, lab) { Instruments.histogram(pen, tone, lab.seen("histogram")); return null; }

  function drawEnergy(pen, tone, lab) {
    const levels = [], beta = lab.beta(), tables = (lab.theory || {})[lab.state.d];
    if (tables && lab.hasBounds() && beta !== null) {
      const top = Instruments.tabulated(tables.dirac, beta), low = Instruments.tabulated(tables.uniform, beta);
      if (top !== null) levels.push({ at: Math.exp(top), name: "one point (maximum)", below: true });
      if (low !== null) levels.push({ at: Math.exp(low), name: "uniform (least)", below: true, room: true });
    }
    const plateau = lab.seen("plateau"), clusters = lab.seen("cluster_count");
    if (plateau && clusters && clusters[0] > 1) levels.push({ at: plateau[0], name: `plateau: ${clusters[0]} clusters`, below: true, end: true });
    const points = lab.history.series("energy");
    if (!points.length) return Instruments.words(pen, tone, "this law has no such energy");
    return Instruments.timeChart(pen, tone, scene(lab), { series: [{ points, colour: tone.accent }], levels });
  }

  function drawClusters(pen, tone, lab) {
    const points = lab.history.series("cluster_count");
    const most = points.filter((_, k) => k % 2 === 1).reduce((a, b) => Math.max(a, b), 1);
    return Instruments.timeChart(pen, tone, scene(lab), { series: [{ points, colour: tone.accent }], marks: lab.history.merges.map((merge) => merge.t), range: [0, most * 1.08], steps: true });
  }

  // Rates of all modes of a step, from the fastest; those that grow are warm. On the circle, theory beside it.
  function drawSpectrum(pen, tone, lab) {
    const modes = lab.seen("spectrum");
    if (!modes || !modes.length) return Instruments.words(pen, tone, `shown up to ${NUMBERS} numbers, n (d − 1):`, "take fewer tokens, or merge clusters");
    const levels = [], polygon = lab.polygon();
    if (polygon !== null) levels.push({ at: polygon.rate, name: `${polygon.count} equal clusters, evenly spread: ${shown(polygon.rate, 3)}` });
    Instruments.modes(pen, tone, modes, levels);
    return null;
  }

  function drawOrder(pen, tone, lab) {
    const series = [{ points: lab.history.series("order_parameter"), colour: tone.accent, name: "order" }, { points: lab.history.series("mean_cosine"), colour: tone.second, name: "mean cosine" }];
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
    if (panel.name === "spectrum") { const modes = lab.seen("spectrum"); return modes && modes.length ? `fastest ${shown(modes[0], 3)}` : ""; }
    if (panel.name === "clusters") return clustersSaid(lab);
    const name = { energy: "energy", clusters: "cluster_count", order: "order_parameter" }[panel.name];
    const value = name ? lab.seen(name) : null;
    return value && value.length === 1 ? shown(value[0], 4) : "";
  }

  function clustersSaid(lab) { // how many, and when the law of heavy tokens lets two of them meet
    const count = lab.seen("cluster_count"), life = lab.seen("lifetime");
    if (!count) return "";
    if (!life || life[1] !== count[0] || lab.recording) return shown(count[0]);
    return `${count[0]}, ${life[2] ? "two meet at" : "none meet before"} t = ${shown(life[0], 3)}`;
  }

  // which observables the worker measures, and up to how many tokens
  function wanted(lawNames, lensNames) {
    const most = { attention: MATRIX, histogram: 4000, energy: 4000, cluster_count: 4000, cluster_labels: 4000, mean_cosine: 4000 };
    const shown = FIGURE ? PACKED.panels : LIST.map((panel) => panel.name), foreseen = ["energy", "clusters", "spectrum"].some((name) => shown.includes(name));
    const ahead = !foreseen ? [] : [{ name: "spectrum", of: "foresight", most: 1e9 }, { name: "lifetime", of: "foresight", most: 4000 }];
    return [...lawNames.map((name) => ({ name, of: "law", most: most[name] || 1e9 })), ...lensNames.map((name) => ({ name, of: "lens", most: most[name] || 1e9 })), ...ahead];
  }

  return { build, draw, wanted, LIST, NUMBERS };
})();
