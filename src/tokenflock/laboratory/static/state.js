// What the lab shows, as plain values, and the link that restores it.
//
// A state that comes from a link is material of a stranger: each value is checked against the
// schema of the catalogue, whatever does not fit is replaced and told, and nothing in it is ever
// run or read as markup.

const LIMITS = { pairs: 4000, tokens: 20000, link: 200000, edited: 2000 };

function freshState() {
  return {
    law: "SelfAttention", choices: {}, values: {}, start: "Uniform", startValues: {}, n: 64, d: 3,
    solver: "Layer", h: 0.1, chosen: "", seed: 0, rate: 30, delta: 1e-3, until: null, edited: null, weights: null,
  };
}

function lawOf(schema, name) { return schema.laws.find((law) => law.name === name); }
function startOf(schema, name) { return schema.starts.find((start) => start.name === name); }
// What was chosen of a state's time: nothing, the solver, or its step too, which is then not divided.
const CHOSEN = ["", "solver", "step"];
function solverOf(schema, name) { return schema.solvers.find((solver) => solver.name === name); }

// The key under which a law's variant is shipped: its choices in the order of the schema.
function variantKey(law, choices) {
  return law.choices.map((choice) => {
    const given = String(choices[choice.name]);
    return choice.options.includes(given) ? given : choice.default;
  }).join(",");
}

function variantOf(law, choices) {
  if (law.built) return Building.variant(law, choices);
  return law.variants[variantKey(law, choices)] || law.variants[Object.keys(law.variants)[0]];
}

function solversOf(variant, d) {
  return Object.keys((variant.programs[d] || {}));
}

function dimensionsOf(variant) {
  return Object.keys(variant.programs).map(Number).sort((a, b) => a - b);
}

// What the library says of a number that a field cannot be, or null where it can.
function complaint(field, value) {
  const said = (text) => text.replace("{got}", String(value));
  if (typeof value !== "number" || Number.isNaN(value)) {
    return `${field.name} must be ${field.kind === "whole" ? "a whole number" : "a number"}, got ${String(value).slice(0, 40)}`;
  }
  if (!Number.isFinite(value)) return `${field.name} must be a finite number, got ${value}`;
  if (field.kind === "whole" && !Number.isInteger(value)) {
    return `${field.name} must be a whole number, got ${value}`;
  }
  const low = field.low, high = field.high;
  if (low && (value < low.at || (!low.allowed && value === low.at))) return said(low.text);
  if (high && (value > high.at || (!high.allowed && value === high.at))) return said(high.text);
  return null;
}

function sizeOf(shape) { return shape.reduce((size, part) => size * part, 1); }

function complaintOfArray(field, values, d) {
  const shape = field.shapes[d], size = sizeOf(shape);
  if (!Array.isArray(values) || values.length !== size) {
    return `${field.name} must be ${size} numbers (${shape.join(" x ")}), got ${Array.isArray(values) ? values.length : "none"}`;
  }
  return values.every((value) => typeof value === "number" && Number.isFinite(value))
    ? null : `${field.name} must hold finite numbers, got NaN or infinity`;
}

// A link or a file as a state: {state, problems}, a problem for everything that was replaced.
function checkedState(schema, raw) {
  const state = freshState(), problems = [];
  const tell = (text) => problems.push(text);
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) {
    return { state, problems: ["the link holds no state of the lab"] };
  }
  const own = (object, key) => (object !== null && typeof object === "object"
    && Object.prototype.hasOwnProperty.call(object, key) ? object[key] : undefined);
  const law = lawOf(schema, own(raw, "law"));
  if (law) state.law = law.name;
  else if (own(raw, "law") !== undefined) tell(`there is no law ${String(raw.law).slice(0, 40)} here; ${state.law} is shown`);
  const chosen = lawOf(schema, state.law);
  for (const choice of chosen.choices) {
    const given = own(own(raw, "choices"), choice.name);
    state.choices[choice.name] = choice.options.includes(String(given)) ? String(given) : choice.default;
  }
  checkedParts(chosen, state, tell);
  checkedPlace(schema, chosen, raw, own, state, tell);
  checkedValues(variantOf(chosen, state.choices).fields, own(raw, "values"), own, state.values, state, tell);
  checkedValues(startOf(schema, state.start).fields, own(raw, "startValues"), own, state.startValues, state, tell);
  checkedEdit(raw, own, state, tell);
  return { state, problems };
}

// Parts of a block that do not go together: the library says so, and the usual one takes its place.
function checkedParts(law, state, tell) {
  for (let refused = law.built && Building.refusal(law, state.choices); refused; refused = Building.refusal(law, state.choices)) {
    tell(refused.text);
    state.choices[refused.name] = law.choices.find((choice) => choice.name === refused.name).default;
  }
}

function checkedPlace(schema, law, raw, own, state, tell) {
  const variant = variantOf(law, state.choices), dims = dimensionsOf(variant);
  const d = own(raw, "d");
  state.d = dims.includes(d) ? d : (dims.includes(state.d) ? state.d : dims[0]);
  if (d !== undefined && d !== state.d) tell(`d = ${String(d).slice(0, 20)} is not in this page, which has ${dims.join(", ")}`);
  const start = startOf(schema, own(raw, "start"));
  if (start && start.programs[state.d] !== undefined) state.start = start.name;
  else if (own(raw, "start") !== undefined) tell(`there is no start ${String(raw.start).slice(0, 40)} for d = ${state.d} here`);
  const solvers = solversOf(variant, state.d), solver = own(raw, "solver");
  state.solver = solvers.includes(solver) ? solver : solvers[0];
  state.h = solverOf(schema, state.solver).h;
  const chosen = own(raw, "chosen"), named = own(raw, "h") !== undefined ? "step" : solver !== undefined ? "solver" : "";
  state.chosen = CHOSEN.includes(chosen) ? chosen : named;
  for (const [name, field] of Object.entries(placeFields(schema, law, own(raw, "edited") ? null : startOf(schema, state.start), state.d))) {
    const value = own(raw, name);
    if (value === undefined) continue;
    const wrong = complaint(field, value);
    if (wrong === null) state[name] = value; else tell(wrong);
  }
  const delta = own(raw, "delta");
  if (schema.deltas.includes(delta)) state.delta = delta;
  else if (delta !== undefined) tell(`delta must be one of ${schema.deltas.join(", ")} in a page, got ${String(delta).slice(0, 20)}`);
  const until = own(raw, "until");
  if (typeof until === "number" && until > 0 && Number.isFinite(until)) state.until = until;
}

function leastTokens(start, d, least) {
  const fewest = (start && start.least[d]) || 1;
  if (fewest === 1) return least("n", 1, "n must be a number of tokens, 1 or more, got {got}; write e.g. n=32");
  return least("n", fewest, `n must be ${fewest} or more for this start in a page (it has d = ${d}), got {got}`);
}

// The fields that every state has, as fields of the schema.
function placeFields(schema, law, start = null, d = 0) {
  const most = law.pairs ? LIMITS.pairs : LIMITS.tokens;
  const why = law.pairs ? "each acts on each; take the law Fast, or the library" : "the library takes more";
  const least = (name, at, text) => ({ name, kind: "whole", low: { at, allowed: true, text } });
  return {
    n: { ...leastTokens(start, d, least),
         high: { at: most, allowed: true, text: `n must be at most ${most.toLocaleString("en")} in a page (${why}), got {got}` } },
    seed: { ...least("seed", 0, "seed must be a whole number from 0 to 2^53 - 1, got {got}; write e.g. seed=0"),
            high: { at: 2 ** 53 - 1, allowed: true, text: "seed must be a whole number from 0 to 2^53 - 1, got {got}" } },
    h: { name: "h", kind: "number", low: { at: 0, allowed: false, text: "h must be a positive step, got {got}; write e.g. h=0.1" } },
    rate: { name: "rate", kind: "number", low: { at: 0, allowed: false, text: "speed must be positive, got {got}" } },
  };
}

function checkedValues(fields, given, own, into, state, tell) {
  for (const field of fields) {
    const value = own(given, field.path);
    if (value === undefined) continue;
    const wrong = field.kind === "array"
      ? complaintOfArray(field, value, state.d) : complaint(field, value);
    if (wrong === null) into[field.path] = value; else tell(wrong);
  }
}

function checkedEdit(raw, own, state, tell) {
  const x = own(raw, "edited"), w = own(raw, "weights");
  if (x === undefined || x === null) return;
  const n = Array.isArray(x) ? x.length / state.d : 0;
  const fine = Number.isInteger(n) && n >= 1 && n <= LIMITS.edited
    && x.every((value) => typeof value === "number" && Number.isFinite(value));
  if (!fine) { tell(`the tokens of the link are not ${state.d} finite numbers each, of at most ${LIMITS.edited} tokens`); return; }
  state.edited = x; state.n = n;
  const weighed = Array.isArray(w) && w.length === n && w.every((value) => typeof value === "number" && value >= 0 && Number.isFinite(value));
  state.weights = weighed && w.some((value) => value > 0) ? w : null;
}

// The value of a field: what the state says, or its default.
function valueOf(field, values, d) {
  const given = values[field.path];
  if (given !== undefined) return given;
  return field.kind === "array" ? field.defaults[d] : field.default;
}

function toLink(state) {
  const text = JSON.stringify(state), bytes = new TextEncoder().encode(text);
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return "#" + btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function fromLink(schema, fragment) {
  const text = fragment.replace(/^#/, "");
  if (text === "") return null;
  if (text.length > LIMITS.link) return { state: freshState(), problems: ["the link is too long to hold a state of the lab"] };
  try {
    const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
    return checkedState(schema, JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch {
    return { state: freshState(), problems: ["the link is damaged: it holds no state of the lab"] };
  }
}
