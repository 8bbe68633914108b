// The lab itself: a state, a worker that runs it, what was recorded, and who draws what when.

const PACKED = JSON.parse(document.getElementById("data").textContent);

const FIGURE = document.body.classList.contains("figure");

function bytesOf(text) { // of base64
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let k = 0; k < binary.length; k++) bytes[k] = binary.charCodeAt(k);
  return bytes;
}

// The programs: those of the whole catalogue, which are squeezed, and others as they are.
function programsOf({ squeezed, size, more }) {
  return squeezed ? [...JSON.parse(new TextDecoder().decode(unlzma(bytesOf(squeezed), size))), ...more] : more;
}

async function unpacked(text) { // deflated JSON in base64
  const bytes = bytesOf(text);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const lab = {
  schema: null, programs: null, state: null, history: new History(), shown: null, recording: null, other: null,
  view: { flat: false, sphere: true, reach: 1 }, held: null, drawn: null, panels: [], maps: [], mapNumber: 0, here: null,
  log: false, changed: false, theory: null, given: null, expected: {}, memory: {}, memoryOther: {}, version: PACKED.version, playing: false, dirty: true, due: false, besideAt: 0,
  shownFrame() { const frames = this.history.frames; return frames.length ? frames[this.shown === null ? frames.length - 1 : Math.min(this.shown, frames.length - 1)] : null; },
  shownPlace() { return this.shown === null ? this.history.length - 1 : this.shown; },
  seen(name) { return this.history.seenAt(this.shownPlace(), name); },
  time() { const frame = this.shownFrame(); return frame ? frame.t : 0; },
  variant() { return variantOf(lawOf(this.schema, this.state.law), this.state.choices); },
  field(path) { return this.variant().fields.find((field) => field.path === path); },
  beta() {
    if (this.recording) return null;
    const field = this.field("beta") || this.field("base.beta");
    return field ? valueOf(field, this.state.values, this.state.d) : null;
  },
  hasBounds() { return !this.recording && this.variant().bounded === true; },
  ordered() { return Boolean(this.recording) || this.variant().ordered === true; },
  polygon() { // the growth rate of theory about as many equal clusters on the circle, where this law has it
    const count = this.seen("cluster_count"), beta = this.beta(), tables = this.theory && this.theory.polygon;
    if (this.recording || !tables || !count || beta === null || this.state.d !== 2 || !this.variant().equiangular) return null;
    const log = tables[count[0]] ? Instruments.tabulated(tables[count[0]], beta) : null;
    return log === null ? null : { count: count[0], rate: Math.exp(log) };
  },
  curve() { // the cosine of orthogonal tokens, by the library's own equation, where this law has it
    const { state } = this, programs = this.theory && this.theory.cosine, beta = this.beta();
    if (this.recording || !programs || !this.variant().equiangular || beta === null || state.n < 2 || state.edited) return null;
    const kind = state.solver === "Layer" ? "layer" : "flow", key = [kind, state.n, beta, state.h].join();
    if (this.expected.key !== key) this.expected = { key, step: (0, eval)(programs[kind]), points: [0, 0], gamma: 0, index: 0 };
    return followed(this.expected, state, beta, this.history.length ? this.history.last().t : 0);
  },
};

// A curve of theory up to a time, made longer as time goes on; it ends where it has arrived.
function followed(curve, { n, h }, beta, until) {
  const { step, points } = curve, arrived = () => 1 - curve.gamma < 1e-9;
  for (let count = 0; count < 20000 && curve.index * h < until && !arrived(); count++) {
    curve.gamma = step(curve.gamma, n, beta, h); curve.index += 1;
    const t = curve.index * h; // a point where the eye sees a change
    if (t > 1.01 * points[points.length - 2] || curve.gamma > points[points.length - 1] + 0.002) points.push(t, curve.gamma);
  }
  const end = arrived() ? until : curve.index * h;
  return end > points[points.length - 2] ? [...points, end, curve.gamma] : points;
}

let runner = null;

function say(...texts) {
  const home = document.getElementById("say");
  home.replaceChildren(...texts.filter(Boolean).map((text) => { const line = element("p", {}, element("span", { text })); line.append(element("button", { type: "button", text: "×", "aria-label": "dismiss", onclick: () => line.remove() })); return line; }));
}

// The program of a state, with its numbers in the order that it wants them.
function program(place) { return typeof place === "number" ? lab.programs[place] : Building.assembled(place, lab.programs); }

function ordered(manifest, fields, values) {
  return (manifest.parameters || []).map((parameter) => {
    const field = fields.find((each) => each.path === parameter.name);
    if (!field) return parameter.default;
    const value = valueOf(field, values, lab.state.d);
    return Array.isArray(value) ? value : [value];
  });
}


function loaded() {
  const { state } = lab, variant = lab.variant(), made = program(variant.programs[state.d][state.solver]);
  const sight = variant.sights[state.d] === undefined ? null : program(variant.sights[state.d]), place = ((lab.schema.lenses[variant.sphere ? "sphere" : "flat"] || {})[state.d] || {})[String(state.delta)], lens = place === undefined ? null : program(place);
  const numbers = {
    params: ordered(made.manifest, variant.fields, state.values),
    sights: sight ? ordered(sight.manifest, variant.fields, state.values) : [],
    lens: lens ? lens.manifest.parameters.map((parameter) => parameter.default) : [],
  };
  const names = (each) => (each ? each.manifest.observables.map((one) => one.name) : []);
  const about = { numbers: Panels.NUMBERS, d: state.d, delta: state.delta, sphere: variant.sphere, ordered: variant.ordered, smooth: !made.manifest.noise, chosen: state.chosen === "step", order: orderOf(state) };
  return { about, source: made.source, sight: sight && sight.source, instruments: lens && lens.source, wanted: Panels.wanted(names(sight), names(lens)), ...numbers };
}

// The order of the method, by which its error is known; none for layers: they are a model of their own.
function orderOf(state) { const solver = solverOf(lab.schema, state.solver); return solver.convention === "flow" ? solver.order : null; }

function begin() { // from the start, with the seed of the state
  const { state } = lab;
  lab.history.clear(); lab.shown = null; lab.changed = false; lab.memory = {}; lab.recording = null; lab.other = null; lab.view.reach = 1;
  document.getElementById("other").hidden = true; document.getElementById("word").hidden = true;
  runner.load(loaded());
  const start = startOf(lab.schema, state.start), drawn = program(start.programs[state.d]);
  const x = state.edited ? Float64Array.from(state.edited) : opened(state);
  runner.begin({ x, w: weightsOf(state), start: drawn.source, startParams: ordered(drawn.manifest, start.fields, state.startValues), n: state.n, d: state.d, ...seedOf(state), h: state.h, index: 0, t: 0, until: state.until });
  setPlaying(false); remember();
}

// The tokens that the library drew for the state with which the page opened.
function opened(state) {
  const same = (key) => JSON.stringify(lab.given[key]) === JSON.stringify(state[key]);
  return lab.given && ["start", "startValues", "n", "d", "seed"].every(same) ? Float64Array.from(lab.given.x) : null;
}

function seedOf(state) { return { hi: Math.floor(state.seed / 2 ** 32), lo: state.seed % 2 ** 32 }; }

function weightsOf(state) {
  if (!state.weights) return null;
  const total = state.weights.reduce((sum, value) => sum + value, 0);
  return state.weights.map((value) => value / total);
}

// Time goes on from what is shown: tokens that were moved, or a frame of the past.
function goOn(x, w, { index, t, accuracy }) {
  runner.load(loaded());
  const start = startOf(lab.schema, lab.state.start), drawn = program(start.programs[lab.state.d]);
  runner.begin({ x, w, n: lab.state.n, d: lab.state.d, start: drawn.source, startParams: ordered(drawn.manifest, start.fields, lab.state.startValues), ...seedOf(lab.state), h: lab.state.h, index, t, error: accuracy ? accuracy.error : 0, until: lab.state.until });
}

function setPlaying(playing) {
  lab.playing = playing;
  const button = document.getElementById("play");
  button.textContent = playing ? "❚❚" : "▶"; button.setAttribute("aria-label", playing ? "pause" : "play");
}

function play() {
  if (lab.recording) { setPlaying(true); lab.recordedAt = performance.now(); if (lab.shown === null || lab.shown >= lab.history.length - 1) lab.shown = 0; return; }
  if (lab.shown !== null) { const frame = lab.shownFrame(); lab.shown = null; goOn(frame.x.slice(), frame.w, frame); }
  runner.play(lab.state.rate, lab.state.until); setPlaying(true);
}

function pause() { if (!lab.recording && lab.playing) runner.pause(); setPlaying(false); }

function hear(message) {
  if (message.kind === "frame") {
    if (lab.recording) return;
    lab.history.add({ index: message.index, t: message.t, n: message.n, x: message.x, w: message.w, seen: message.seen || {}, accuracy: message.accuracy });
    lab.made = message.made; lab.stepping = message.stepping; lab.dirty = true;
  } else if (message.kind === "lost") { setPlaying(false); say(`The tokens left the numbers at t = ${shown(message.t)}: they overflowed or blew up. Take a smaller beta or step, or, for unnormalised attention, the clock 'peak'.`); }
  else if (message.kind === "refused") { setPlaying(false); say(refusal(message)); }
  else if (message.kind === "ended") { setPlaying(false); lab.state.until = null; }
  else { setPlaying(false); say(message.kind === "failed" ? `The law could not be run: ${message.text}` : `Stopped: ${message.text}.`); }
}

function percent(share) { return share < 10 ? `${shown(100 * share, 2)} %` : "more than 1000 %"; }

// What the page says where no division of its step is accurate, and what can be done.
function refusal({ t, h, parts, error }) {
  const ways = ["take a smaller beta"], variant = lab.variant();
  if (lawOf(lab.schema, lab.state.law).choices.some((choice) => choice.options.includes("peak"))) ways.push("the clock 'peak'");
  if (variant.programs[lab.state.d].Layer !== undefined) ways.push("the solver layer");
  return `Stopped at t = ${shown(t)}: the law is too fast for the page. Even steps of ${shown(h)} / ${parts} have errors of ${percent(Math.min(error || 10, 10))}: ${ways.join(", or ")}.`;
}

// What the steps of a frame were, beside the clock and in pictures; nothing for layers.
function accuracyOf(frame) {
  const { accuracy } = frame;
  if (!accuracy) return "";
  if (!accuracy.fine) return `the step is too long: errors of ${percent(accuracy.error)} in a step`;
  return accuracy.parts > 1 ? `steps of ${shown(accuracy.step)}` : "";
}

let waiting = null;
function remember() { // the address holds the state, written when the hand rests
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (!lab.recording) { try { history.replaceState(null, "", toLink(lab.state)); } catch { /* a page in a frame may have no address */ } } }, 200);
}

function changedLive() { lab.changed = lab.changed || lab.history.length > 1; const now = loaded(); runner.send({ kind: "params", params: now.params, sights: now.sights, lens: now.lens }, false); remember(); lab.dirty = true; }

// A state must fit what the page has: dimension, solver and start of the new law.
function fitted() {
  const { schema, state } = lab, variant = lab.variant(), dims = dimensionsOf(variant);
  if (!dims.includes(state.d)) { state.d = dims.includes(3) ? 3 : dims[0]; state.edited = null; }
  const solvers = solversOf(variant, state.d);
  if (state.chosen === "" || !solvers.includes(state.solver)) { state.solver = solvers[0]; state.h = solverOf(schema, state.solver).h; state.chosen = ""; }
  if (startOf(schema, state.start).programs[state.d] === undefined) { state.start = "Uniform"; state.startValues = {}; }
  if (!state.edited) state.n = Math.max(state.n, startOf(schema, state.start).least[state.d] || 1);
  const most = lawOf(schema, state.law).pairs ? LIMITS.pairs : LIMITS.tokens;
  state.n = Math.min(state.n, most);
  for (const field of variant.fields) if (field.kind === "array" && state.values[field.path] && (!field.shapes[state.d] || complaintOfArray(field, state.values[field.path], state.d))) delete state.values[field.path];
}

function rebuilt(playing = lab.playing) { fitted(); Controls.build(document.getElementById("controls"), lab, act); begin(); if (playing) play(); }

// A solver by its name, with its own step unless another one was chosen.
function chosenSolver(name) {
  lab.state.solver = name;
  if (lab.state.chosen !== "step") { lab.state.chosen = "solver"; lab.state.h = solverOf(lab.schema, name).h; }
}

const act = {
  law(name) { const beta = lab.beta(); lab.state.law = name; lab.state.choices = {}; lab.state.values = {}; const field = lab.field("beta"); if (field && beta !== null && complaint(field, beta) === null) lab.state.values.beta = beta; rebuilt(); },
  choice(name, value) { // what is wrong with it, where the library refuses it
    const refused = Building.refusal(lawOf(lab.schema, lab.state.law), { ...lab.state.choices, [name]: value });
    if (refused) return refused.text;
    lab.state.choices[name] = value; rebuilt();
    return null;
  },
  value(field, value) { lab.state.values[field.path] = value; changedLive(); },
  start(name) { lab.state.start = name; lab.state.startValues = {}; lab.state.edited = null; lab.state.weights = null; rebuilt(); },
  startValue(field, value) { lab.state.startValues[field.path] = value; const on = lab.playing; begin(); if (on) play(); },
  place(name, value) { // the controls stay as they are: one of them may be in a hand
    const on = lab.playing, edited = lab.state.edited !== null;
    lab.state[name] = value; lab.state.edited = null; lab.state.weights = null;
    if (edited) { rebuilt(); return; }
    begin(); if (on) play();
  },
  dimension(d) { lab.state.d = d; lab.state.edited = null; lab.state.weights = null; rebuilt(); },
  solver(name) { const frame = lab.shownFrame(), on = lab.playing; chosenSolver(name); if (!frame) { rebuilt(on); return; } Controls.build(document.getElementById("controls"), lab, act); goOn(frame.x.slice(), frame.w, frame); lab.changed = true; if (on) { runner.play(lab.state.rate, lab.state.until); } remember(); },
  step(h) { lab.state.h = h; if (lab.state.chosen !== "step") { lab.state.chosen = "step"; document.querySelector("[data-field='chosen']").value = "step"; runner.load(loaded()); } runner.send({ kind: "h", h }, false); lab.changed = lab.history.length > 1; remember(); },
  chosen(value) { lab.state.chosen = value; rebuilt(); },
  delta(delta) { lab.state.delta = delta; const now = loaded(); runner.load(now); runner.send({ kind: "params", params: now.params, sights: now.sights, lens: now.lens }, false); remember(); },
  unedit() { lab.state.edited = null; lab.state.weights = null; rebuilt(); },
  redraw() { lab.dirty = true; },
  hover(i, left, top) { hovered(i, left, top); },
  grasp(i) { lab.held = i; lab.wasPlaying = lab.playing; if (lab.playing) pause(); },
  move(i, point) { edit((x) => { for (let k = 0; k < lab.state.d; k++) x[lab.state.d * i + k] = point[k] || 0; return [x, null]; }); },
  release() { lab.held = null; if (lab.wasPlaying) play(); },
  add(point) { edit((x, w) => { const share = 1 / (w.length + 1); return [Float64Array.from([...x, ...Array.from({ length: lab.state.d }, (_, k) => point[k] || 0)]), Float64Array.from([...w.map((value) => value * (1 - share)), share])]; }); },
  remove(i) { edit((x, w) => { if (w.length < 2) return null; const d = lab.state.d, left = w.filter((_, j) => j !== i), total = left.reduce((a, b) => a + b, 0); return [x.filter((_, j) => Math.floor(j / d) !== i), left.map((value) => value / total)]; }); },
  link() { return location.href.split("#")[0] + toLink(lab.state); },
  scrubTo(t) { const frames = lab.history.frames; let best = 0; frames.forEach((frame, k) => { if (Math.abs(frame.t - t) < Math.abs(frames[best].t - t)) best = k; }); pause(); lab.shown = best; lab.dirty = true; },
  lesson(k) { const lesson = LESSONS[k]; const { state } = checkedState(lab.schema, lesson.state); lab.state = state; lab.log = lesson.log === true; document.getElementById("log").checked = lab.log; document.getElementById("speed").value = nearestSpeed(state.rate); Drawers.lessons(lab, act, k); Drawers.toggle("lessons", true); rebuilt(lesson.play); if (lesson.open) open(lesson.open, true, "lessons"); if (lesson.model && lab.model) { showRecording(Models.opened(lab.model)); play(); } },
  mapped(chart, at) { const { state } = checkedState(lab.schema, { ...chart.state, values: { ...chart.state.values, [chart.path || "beta"]: at.beta }, until: at.t, rate: 120 }); lab.state = state; lab.here = at; document.getElementById("speed").value = nearestSpeed(state.rate); rebuilt(true); },
  savePanel(panel, kind) { saved(`${panel.name}`, kind, 640, panel.tall ? 480 : 300, (pen, tone) => panel.draw(pen, tone, lab)); },
  saveStage(kind) { saved("tokens", kind, 960, 960, (pen, tone) => Stage.draw(pen, sceneOf(lab.history, lab.shownPlace(), lab.memory, lab.state.d), tone)); },
  csv() { Export.save("run.csv", Export.csv(lab.history, dimension()), "text/csv"); },
  json() { Export.save("run.json", Export.json({ ...lab, state: { ...lab.state, d: dimension() } }, lab.history), "application/json"); },
  html() { Export.save("lab.html", pageText(), "text/html"); },
  film() { filmed(); },
  gif() { filmedAsGif(); },
};

function dimension() { return lab.recording ? lab.recording.d : lab.state.d; }

function edit(change) { // tokens by hand; the run goes on from them
  const frame = lab.shownFrame();
  if (!frame || lab.recording) return;
  if (lab.state.d > 3) { say("Tokens in more than three dimensions cannot be moved by hand: the screen shows three of their axes."); return; }
  const made = change(frame.x.slice(), frame.w.slice());
  if (made === null) return;
  const [x, w] = made, n = x.length / lab.state.d, on = lab.playing;
  if (n > LIMITS.edited) { say(`At most ${LIMITS.edited} tokens can be moved by hand.`); return; }
  lab.shown = null;
  lab.state.edited = Array.from(x); lab.state.weights = w ? Array.from(w) : lab.state.weights; lab.state.n = n;
  goOn(x, w || frame.w, frame); lab.changed = true;
  if (on) runner.play(lab.state.rate, lab.state.until);
  if (!lab.held || w) Controls.build(document.getElementById("controls"), lab, act);
  remember();
}

function hovered(i, left, top) {
  const tip = document.getElementById("tip");
  if (lab.held !== i) { lab.held = i; lab.dirty = true; }
  if (i === null || i === undefined) { tip.hidden = true; return; }
  const words = lab.recording && lab.recording.words, frame = lab.shownFrame();
  tip.textContent = words ? words[i] : `token ${i}${frame && frame.w[i] * frame.n > 1.5 ? `, weight ${shown(frame.w[i], 3)}` : ""}`;
  tip.hidden = false; tip.style.left = `${left + 14}px`; tip.style.top = `${Math.max(4, top - 10)}px`;
}

// What the stage shows of a frame: places, colours, trails and the words in the corner.
function sceneOf(history, k, memory, d) {
  const frame = history.frames[k], tone = colours(), labels = history.seenAt(k, "cluster_labels");
  const view = { ...lab.view, flat: d === 2 }, now = Stage.placed(frame, d, memory), counts = new Map();
  const grouped = labels && labels.length === frame.n;
  if (grouped) for (const label of labels) counts.set(label, (counts.get(label) || 0) + 1);
  const colour = (i) => (!grouped ? tone.accent : counts.get(labels[i]) > 1 ? clusterColour(labels[i], tone.dark) : tone.soft);
  const trails = [];
  if (lab.trails && frame.n <= 400) for (let j = Math.max(0, k - 14); j <= k; j++) { const past = history.frames[j]; if (past.n === frame.n) trails.push({ n: past.n, p: d <= 3 ? Stage.placed(past, d, {}).p : now.p }); }
  const notes = [];
  if (now.share !== null) notes.push(`first three principal axes of ${d}: ${Math.round(100 * now.share)} % of the variance`);
  if (lab.recording && lab.recording.share !== null) notes.push(`three principal axes: ${Math.round(100 * lab.recording.share)} % of the variance`);
  if (accuracyOf(frame)) notes.push(accuracyOf(frame));
  const many = [...counts.values()].filter((count) => count > 1).length;
  if (lab.other && lab.recording) notes.push(lab.recording.title);
  if (grouped) notes.push(`${many} ${many === 1 ? "group" : "groups"} in colour: cosines ≥ 1 − ${shown(lab.state.delta)} join tokens`);
  if (!view.sphere) { let far = 1e-9; for (let i = 0; i < frame.n; i++) far = Math.max(far, Math.hypot(now.p[3 * i], now.p[3 * i + 1], now.p[3 * i + 2])); lab.view.reach = view.reach = Math.max(1, far); } else lab.view.reach = view.reach = 1;
  const cache = new Map();
  const bytes = (i) => { const key = grouped ? labels[i] : -1; if (!cache.has(key)) cache.set(key, rgb(colour(i))); return cache.get(key); };
  const weighed = frame.w.some((value) => Math.abs(value * frame.n - 1) > 1e-6) ? frame.w : null;
  return { view, p: now.p, n: frame.n, trails, notes, look: { colour, bytes, w: weighed, held: lab.held, size: (i) => (grouped ? counts.get(labels[i]) : 1), leads: (i) => grouped && labels[i] === i } };
}

const painter = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgb(colour) { painter.fillStyle = colour; painter.fillRect(0, 0, 1, 1); return Array.from(painter.getImageData(0, 0, 1, 1).data.slice(0, 3)); }

function paint() {
  if (lab.recording && lab.playing) advanceRecorded();
  if (lab.dirty && lab.shownFrame()) {
    lab.dirty = false; lab.frames = (lab.frames || 0) + 1;
    const canvas = document.getElementById("stage"), box = canvas.getBoundingClientRect(), tone = colours(), ratio = Math.min(2, window.devicePixelRatio || 1);
    const law = lab.recording ? null : lawOf(lab.schema, lab.state.law);
    lab.view.sphere = lab.recording ? lab.recording.sphere : lab.variant().sphere;
    lab.view.flat = dimension() === 2;
    lab.drawn = Stage.draw(new CanvasPen(canvas, box.width, box.height, ratio), sceneOf(lab.history, lab.shownPlace(), lab.memory, dimension()), tone);
    if (lab.other) drawOther(tone, ratio);
    bar(law);
    lab.due = true;
  }
  beside();
  requestAnimationFrame(paint);
}

// The panels follow, ten times a second while it plays.
function beside() {
  const now = performance.now();
  if (!lab.due || (lab.playing && now - lab.besideAt < 100)) return;
  lab.due = false; lab.besideAt = now;
  const tone = colours();
  Panels.draw(lab, tone);
  if (lab.drawMap) lab.drawMap(tone);
}

function drawOther(tone, ratio) {
  const canvas = document.getElementById("second"), box = canvas.getBoundingClientRect(), kept = lab.recording;
  const share = lab.history.length > 1 ? lab.shownPlace() / (lab.history.length - 1) : 0;
  lab.recording = lab.other.recording; lab.view.sphere = lab.recording.sphere;
  Stage.draw(new CanvasPen(canvas, box.width, box.height, ratio), sceneOf(lab.other.history, Math.round(share * (lab.other.history.length - 1)), lab.memoryOther, lab.other.recording.d), tone);
  lab.recording = kept; lab.view.sphere = kept.sphere;
}

function bar(law) {
  const scrub = document.getElementById("scrub"), frame = lab.shownFrame(), time = document.getElementById("time");
  scrub.max = String(Math.max(0, lab.history.length - 1)); scrub.value = String(lab.shownPlace());
  const layer = lab.recording ? lab.recording.axis === "layer" : false;
  time.textContent = layer ? `layer ${shown(frame.t, 4)}` : `t = ${shown(frame.t, 4)}`;
  document.getElementById("accuracy").textContent = accuracyOf(frame);
  scrub.setAttribute("aria-valuetext", time.textContent);
  const beta = lab.beta(), words = lab.recording ? [lab.recording.title, `${frame.n} tokens`] : [law.slug, beta === null ? null : `β = ${shown(beta)}`, `n = ${frame.n}`, `d = ${lab.state.d}`, `${solverOf(lab.schema, lab.state.solver).convention}, h = ${shown(lab.state.h)}`];
  const clusters = lab.seen("cluster_count");
  if (clusters) words.push(`${clusters[0]} clusters`);
  document.getElementById("what").textContent = words.filter(Boolean).join(" · ").replace(/ = /g, "\u00a0=\u00a0"); // a line may end elsewhere
}

function advanceRecorded() {
  const now = performance.now(), pace = 1000 / Math.max(1, Math.min(30, lab.state.rate / 5));
  if (now - lab.recordedAt < pace) return;
  lab.recordedAt = now; lab.dirty = true;
  lab.shown = (lab.shown === null ? 0 : lab.shown) + 1;
  if (lab.shown >= lab.history.length - 1) { lab.shown = lab.history.length - 1; setPlaying(false); }
}

function showRecording(recording, second) {
  pause();
  if (second) { lab.other = { recording, history: Object.assign(new History(), { frames: recording.frames }) }; document.getElementById("other").hidden = false; lab.memoryOther = {}; }
  else {
    lab.recording = recording; lab.other = null; lab.history.clear(); lab.history.frames = recording.frames; lab.shown = 0; lab.memory = {};
    recording.frames.forEach((frame, k) => { const now = frame.seen.cluster_count, before = k > 0 && recording.frames[k - 1].seen.cluster_count; if (now && before && now[0] < before[0]) lab.history.merges.push({ t: frame.t, to: now[0] }); });
    document.getElementById("other").hidden = true; document.getElementById("word").hidden = !recording.words;
    if (FIGURE) document.getElementById("controls").hidden = true;
  }
  lab.dirty = true;
}

const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 120, 240, 1000];
function nearestSpeed(rate) { return String(SPEEDS.reduce((best, each) => (Math.abs(Math.log(each / rate)) < Math.abs(Math.log(best / rate)) ? each : best), SPEEDS[0])); }

function open(name, show, beside) {
  if (!Drawers.toggle(name, show, beside)) return;
  if (name === "lessons" && !document.getElementById("lessons").hasChildNodes()) act.lesson(0);
  if (name === "map") Drawers.map(lab, act);
  if (name === "leave") Drawers.leave(lab, act);
}

function buttons() {
  const on = (id, name, run) => document.getElementById(id).addEventListener(name, run);
  on("play", "click", () => (lab.playing ? pause() : play()));
  on("once", "click", () => once());
  on("again", "click", () => restart());
  on("anew", "click", () => { lab.state.seed = (lab.state.seed + 1) % 2 ** 31; lab.state.edited = null; lab.state.weights = null; rebuilt(); });
  on("scrub", "input", () => { pause(); lab.shown = Number(document.getElementById("scrub").value); lab.dirty = true; });
  on("merge", "click", () => mergeClusters());
  on("trails", "change", () => { lab.trails = document.getElementById("trails").checked; lab.dirty = true; });
  on("log", "change", () => { lab.log = document.getElementById("log").checked; lab.dirty = true; });
  on("word", "input", () => findWord(document.getElementById("word").value));
  on("theme", "click", () => { document.documentElement.dataset.theme = colours().dark ? "light" : "dark"; lab.dirty = true; });
  on("controls", "submit", (event) => event.preventDefault());
  const speed = document.getElementById("speed");
  for (const value of SPEEDS) speed.append(element("option", { value, text: value === 1000 ? "most" : `${value}/s` }));
  speed.value = nearestSpeed(lab.state.rate);
  speed.addEventListener("change", () => { lab.state.rate = Number(speed.value); runner.send({ kind: "rate", rate: lab.state.rate }, false); remember(); });
  for (const button of document.querySelectorAll("nav [data-open]")) button.addEventListener("click", () => open(button.dataset.open));
}

function once(count = 1) {
  if (lab.recording) { setPlaying(false); lab.shown = Math.min(lab.shownPlace() + 1, lab.history.length - 1); lab.dirty = true; return; }
  setPlaying(false);
  if (lab.shown !== null && lab.shown < lab.history.length - 1) { const frame = lab.shownFrame(); lab.shown = null; goOn(frame.x.slice(), frame.w, frame); }
  runner.step(count);
}

function restart() { if (lab.recording) { lab.shown = 0; lab.dirty = true; return; } const on = lab.playing; begin(); if (on) play(); }

function findWord(text) {
  const words = lab.recording && lab.recording.words, wanted = text.trim().toLowerCase();
  lab.held = words && wanted ? words.findIndex((word) => word.toLowerCase().includes(wanted)) : null;
  if (lab.held === -1) lab.held = null;
  lab.dirty = true;
}

function keys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT|BUTTON|SUMMARY)$/.test(event.target.tagName)) return;
    const run = { " ": () => (lab.playing ? pause() : play()), ".": () => once(), r: restart, n: () => document.getElementById("anew").click() }[event.key];
    if (run) { event.preventDefault(); run(); }
  });
}

function drops() {
  const body = document.body;
  body.addEventListener("dragover", (event) => { event.preventDefault(); body.classList.add("over"); });
  body.addEventListener("dragleave", () => body.classList.remove("over"));
  body.addEventListener("drop", async (event) => {
    event.preventDefault(); body.classList.remove("over");
    const files = [...event.dataTransfer.files].slice(0, 2);
    try { for (const [k, file] of files.entries()) showRecording(await Models.dropped(file), k === 1 || (lab.recording !== null && files.length === 1)); say(); }
    catch (error) { say(`Not opened: ${error.message}`); }
  });
}

// It plays when it is opened, where motion is welcome and while it is seen; a pause by hand stays.
function playWhenSeen() {
  let wanted = PACKED.play && !matchMedia("(prefers-reduced-motion: reduce)").matches, seen = false;
  const follow = () => {
    const on = seen && !document.hidden;
    if (on && wanted && !lab.playing) { wanted = false; play(); }
    else if (!on && lab.playing) { wanted = true; pause(); }
  };
  document.addEventListener("visibilitychange", follow);
  document.addEventListener("click", () => { wanted = false; }, true);
  new IntersectionObserver((entries) => { seen = entries[entries.length - 1].isIntersecting; follow(); }, { threshold: 0.2 }).observe(document.getElementById("stage"));
}

async function boot() {
  const packed = await unpacked(PACKED.packed);
  lab.schema = packed.schema; lab.programs = programsOf({ ...PACKED.squeezed, more: packed.programs }); lab.maps = packed.maps || []; lab.theory = packed.theory || null; lab.given = packed.given || null; lab.model = packed.model || null; lab.trails = true;
  const linked = fromLink(lab.schema, location.hash), opening = linked || checkedState(lab.schema, PACKED.state || {});
  lab.state = opening.state;
  runner = new Runner(document.getElementById("worker").textContent, hear);
  buttons(); keys(); if (!FIGURE) drops();
  Panels.build(document.getElementById("instruments"), lab, act, FIGURE ? PACKED.panels : null);
  Pointer.listen(document.getElementById("stage"), lab, act);
  new ResizeObserver(() => { lab.dirty = true; }).observe(document.getElementById("scene"));
  document.getElementById("instruments").addEventListener("scroll", act.redraw); addEventListener("scroll", act.redraw, { passive: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act.redraw);
  addEventListener("hashchange", () => { const again = fromLink(lab.schema, location.hash); if (again && toLink(again.state) !== toLink(lab.state)) { lab.state = again.state; say(...again.problems); rebuilt(false); } });
  rebuilt(false);
  say(...opening.problems);
  (packed.recordings || []).forEach((raw, k) => { try { showRecording(Models.opened(raw), k === 1); } catch (error) { say(`Not opened: ${error.message}`); } });
  playWhenSeen();
  requestAnimationFrame(paint);
  lab.advance = once; lab.runner = runner;
  window.tokenflockLab = lab; // for tests and the curious
}

boot().catch((error) => say(`The lab could not open: ${error.message}. It needs a browser of 2023 or later.`));
