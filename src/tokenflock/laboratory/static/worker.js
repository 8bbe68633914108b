// The worker: it evaluates what the page engine wrote, makes the steps, and measures.
//
// It runs on its own while it plays, at most `rate` steps a second, and posts a frame whenever the
// page has taken the last one. Steps are made in batches of a few milliseconds, so that it always
// listens.

"use strict";
const BATCH = 12; // milliseconds before it listens again
const MOST_AWAY = 2; // frames that the page has not taken yet: one is drawn while the next is made
let law = null, sight = null, instruments = null, state = null, params = [], sights = [], lens = [], wanted = [];
let playing = false, rate = 30, until = null, run = 0, away = 0;
let told = {}, source = null, sightSource = null, shadow = null, ahead = [], forecast = null, grouped = "", again = null;
let origin = { t: 0, index: 0 };
let probe = null, parts = 1, worst = 0; // of the steps of a flow: their error, how many parts, the largest error
let owed = 0, clock = 0, dirty = false, measured = 0, cost = 0, stepping = 0, made = 0;
const channel = new MessageChannel();

function evaluate(source) { return (0, eval)(source); }

function arrays(values) { return values.map((value) => Float64Array.from(value)); }

const HEAR = {
  load(message) { // a law with its solver, and the instruments of its dimension
    law = evaluate(message.source);
    sight = message.sight === message.source ? law : message.sight === null ? null : evaluate(message.sight);
    instruments = message.instruments === null ? null : evaluate(message.instruments);
    numbers(message);
    wanted = message.wanted.filter((each) => each.of !== "foresight"); ahead = message.wanted.filter((each) => each.of === "foresight");
    told = message.about; again = null; forecast = null; grouped = ""; shadow = null; effort = 0; whole();
    source = message.source; sightSource = message.sight;
  },
  begin(message) { // tokens of a start law, or given ones
    const drawn = evaluate(message.start).draw(message.n, message.hi, message.lo, arrays(message.startParams));
    const key = Uint32Array.from(drawn.key), x = Float64Array.from(message.x || drawn.x);
    const n = x.length / message.d;
    const w = message.w ? Float64Array.from(message.w) : new Float64Array(n).fill(1 / n);
    origin = { t: message.t, index: message.index };
    state = { n, t: message.t, h: message.h, x: Float64Array.from(x), w, key, index: message.index };
    state.x.set(law.project(state, params)); // where this law's tokens live
    run = message.run; away = 0; owed = 0; cost = 0; seen = {}; next = 0; stepping = 0; until = message.until;
    worst = message.error || 0; whole();
    check(); measure(true); post();
  },
  params(message) { numbers(message); forecast = null; whole(); if (state) { measured = 0; touch(); } },
  step(message) { playing = false; for (let k = 0; k < message.count && advance(); k++); check(); measure(true); away = 0; post(); },
  play(message) { playing = true; rate = message.rate; until = message.until; clock = performance.now(); owed = 1; beat(); },
  rate(message) { rate = message.rate; },
  h(message) { if (state) { origin = { t: state.t, index: state.index }; state.h = message.h; whole(); } },
  pause() { playing = false; if (state) { measure(true); away = 0; post(); } },
  taken() { away = Math.max(0, away - 1); if (dirty && !playing) post(); },
};

function numbers(message) { params = arrays(message.params); sights = arrays(message.sights); lens = arrays(message.lens); }

function touch() { dirty = true; if (!playing) { measure(true); away = 0; post(); } }

function whole() { parts = 1; probe = told.order ? Accuracy.probe(law, told) : null; } // steps are whole again

// The part of a step that is made next, as a step of its own; part 0 of 1 is the step itself.
function moment(part) { return { ...state, h: state.h / parts, t: state.t + part * state.h / parts, index: state.index * parts + part }; }

// One step; false where it would be wrong. A step of a flow that was not chosen is divided until its parts are accurate.
function advance() {
  const x = state.x.slice();
  for (let part = 0; part < parts;) {
    const now = moment(part), y = law.step(now, params).slice(), error = probe ? probe(now, params, y) : 0;
    if (probe && !told.chosen && !(error <= Accuracy.TOLERANCE)) {
      if (2 * parts > Accuracy.MOST) { state.x.set(x); refuse(error); return false; }
      parts *= 2; part *= 2;
      continue;
    }
    worst = Math.max(worst, Number.isNaN(error) ? Infinity : error);
    state.x.set(y); part += 1;
  }
  state.index += 1;
  state.t = origin.t + (state.index - origin.index) * state.h;
  made += 1; dirty = true;
  return true;
}

function refuse(error) { playing = false; self.postMessage({ kind: "refused", run, t: state.t, h: state.h, parts, error }); }

function check() { // tokens that left the numbers end the run with a word
  for (const value of state.x) {
    if (!Number.isFinite(value)) { playing = false; self.postMessage({ kind: "lost", run, t: state.t }); return; }
  }
}

let seen = {}, next = 0, foreseen = 0, effort = 0;
function measure(force) { // all of it, or, while it plays, one instrument after another
  const begun = performance.now();
  if (force || next > 0 || begun - measured >= Math.max(60, 9 * cost)) observe(force, begun);
  const now = performance.now();
  if (!ahead.length || !(force || now - foreseen >= Math.max(400, 12 * effort))) return;
  for (const each of ahead) look(each);
  foreseen = performance.now(); effort = foreseen - now; // seldom: what looks ahead is dear
}

function observe(force, begun) {
  if (force || next === 0) { next = 0; cost = 0; }
  let now = begun;
  while (next < wanted.length && (force || now - begun < BATCH)) {
    look(wanted[next]);
    next += 1;
    const then = performance.now();
    cost += then - now; now = then;
  }
  if (next >= wanted.length) { next = 0; measured = now; }
}

function look({ name, most, of }) {
  if (of === "foresight") {
    if (state.n > most || !told.smooth) return;
    try { FORESEE[name](); } catch { /* a state without eigenvalues, such as one beyond all numbers, is run on */ }
    return;
  }
  const home = of === "law" ? sight : instruments;
  if (state.n > most || !home || !home.observe[name]) return;
  const value = Float64Array.from(home.observe[name](state, of === "law" ? sights : lens));
  seen[name] = value;
  // a label is the first token of a cluster: there are as many clusters as tokens that lead one
  if (name === "cluster_labels") again = value;
  if (name === "cluster_labels") seen.cluster_count = Float64Array.of(value.reduce((count, label, i) => count + (label === i ? 1 : 0), 0));
}

// The law and its sights once more: a program has memory for one number of tokens.
function twin() {
  if (!shadow) { const step = evaluate(source); shadow = { step, sight: sightSource === source ? step : sightSource === null ? null : evaluate(sightSource) }; }
  return shadow;
}

const FORESEE = {
  spectrum() { seen.spectrum = Foresight.spectrum(law, moment(0), params, told); },
  lifetime() { // of the clusters, once the same ones are there twice in a row
    const labels = again;
    if (!labels || labels.length !== state.n || told.ordered || !told.sphere) return;
    const here = labels.join();
    if (here !== grouped) { grouped = here; forecast = null; return; }
    const clusters = Foresight.gathered(moment(0), labels, told.d);
    if (!clusters) return;
    const { step, sight: eye } = twin();
    if (eye && eye.observe.energy) { clusters.x.set(step.project(clusters, params)); seen.plateau = Float64Array.from(eye.observe.energy(clusters, sights)); }
    if (forecast === null) forecast = { run: Foresight.forecast(step, params, clusters, told.d, told.delta), found: null };
    if (forecast.found === null) forecast.found = forecast.run.run(3 * BATCH);
    if (forecast.found) seen.lifetime = Float64Array.of(forecast.found.t, forecast.found.count, forecast.found.done);
  },
};

function post() {
  dirty = false; away += 1;
  const x = state.x.slice();
  const sent = seen; seen = {};
  self.postMessage({ kind: "frame", run, index: state.index, t: state.t, n: state.n, x, w: state.w, seen: sent, made, stepping, accuracy: probe && { parts, step: state.h / parts, error: worst, fine: worst <= Accuracy.TOLERANCE } }, [x.buffer]);
}

function beat() { if (playing) channel.port2.postMessage(0); }

channel.port1.onmessage = () => {
  if (!playing || !state) return;
  const now = performance.now();
  owed = Math.min(owed + (now - clock) * rate / 1000, Math.max(1, rate / 10));
  clock = now;
  let count = 0;
  const begun = now;
  try {
    // a batch ends before the step that would outlast it: a picture need not wait for that one
    while (owed >= 1 && (count === 0 || performance.now() - begun + stepping < BATCH)) {
      if (!advance()) break;
      owed -= 1; count += 1;
      if (until !== null && state.t >= until - 1e-9) { playing = false; self.postMessage({ kind: "ended", run, t: state.t }); break; }
    }
    if (count) { stepping = (performance.now() - begun) / count; check(); }
    if (dirty && (away < MOST_AWAY || !playing)) { measure(!playing); post(); }
  } catch (error) { fail(error); return; }
  if (owed >= 1) beat(); else setTimeout(beat, Math.max(1, (1 - owed) * 1000 / rate));
};

function fail(error) { playing = false; self.postMessage({ kind: "failed", run, text: String(error && error.message || error).slice(0, 300) }); }

self.onmessage = ({ data }) => {
  try { HEAR[data.kind](data); } catch (error) { fail(error); }
};
