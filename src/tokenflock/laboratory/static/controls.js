// The controls, built from the schema of the catalogue: every field of every member, with its text,
// its default and its bounds. A bad value is marked beside its field and changes nothing.

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

let fieldCount = 0;
const GREEK = { beta: "β", kappa: "κ", rho: "ρ", tau: "τ", omega: "ω", alpha: "α", delta: "δ" };
function spoken(name) { return name.split(".").map((part) => GREEK[part] || part.replace(/_/g, " ")).join(" · "); }

// A row: label, input, the text of the field, and a place for what is wrong.
function row(label, input, doc, extra = []) {
  const id = `f${fieldCount += 1}`;
  input.id = id;
  const wrong = element("p", { class: "wrong", id: `${id}w`, role: "alert" });
  input.setAttribute("aria-describedby", `${id}d ${id}w`);
  const node = element("div", { class: "row" }, element("label", { for: id, text: label }), input, ...extra,
    element("p", { class: "doc", id: `${id}d`, text: doc || "" }), wrong);
  node.complain = (text) => {
    wrong.textContent = text || "";
    node.classList.toggle("bad", Boolean(text));
    input.setAttribute("aria-invalid", text ? "true" : "false");
  };
  return node;
}

// A number that can be typed and, where a range is natural, slid.
function numberRow(field, value, change, name = field.name) {
  const input = element("input", { type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false", "data-field": field.path || field.name });
  input.value = shown(value, 6);
  const slider = field.slide ? element("input", { type: "range", min: 0, max: 1000, class: "slide", "aria-label": `${spoken(name)}, slider` }) : null;
  const span = field.slide;
  const toSlide = (v) => (span.log ? Math.log(Math.max(v, span.low) / span.low) / Math.log(span.high / span.low) : (v - span.low) / (span.high - span.low));
  const fromSlide = (s) => (span.log ? span.low * (span.high / span.low) ** s : span.low + s * (span.high - span.low));
  if (slider) slider.value = String(1000 * toSlide(value));
  const node = row(spoken(name), input, field.doc, slider ? [slider] : []);
  const take = (v, text) => {
    const wrong = complaint(field, text !== undefined && text.trim() === "" ? NaN : v) || (field.also ? field.also(v) : null);
    node.complain(wrong);
    if (wrong === null) change(v);
    return wrong === null;
  };
  input.addEventListener("change", () => { const v = Number(input.value); if (take(v, input.value) && slider) slider.value = String(1000 * toSlide(v)); });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") input.blur(); });
  if (slider) slider.addEventListener("input", () => {
    let v = fromSlide(Number(slider.value) / 1000);
    v = field.kind === "whole" ? Math.round(v) : Number(v.toPrecision(3));
    input.value = shown(v, 6); take(v);
  });
  return node;
}

function selectRow(label, options, value, doc, change, name) {
  const select = element("select", { "data-field": name || label });
  for (const option of options) {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    select.append(element("option", { value: key, text, selected: String(key) === String(value) }));
  }
  const node = row(label, select, doc);
  select.addEventListener("change", () => { const wrong = change(select.value); node.complain(wrong); if (wrong) select.value = String(value); });
  return node;
}

// A matrix: the identity, one that the library drew, or rows that are typed: 1,0;0,-1 or diag:1,-1
function parsedArray(text, shape) {
  const size = sizeOf(shape), trimmed = text.trim();
  const numbers = (part) => part.split(",").map((word) => (word.trim() === "" ? NaN : Number(word)));
  if (trimmed.startsWith("diag:")) {
    const diagonal = numbers(trimmed.slice(5)), side = diagonal.length;
    if (side * side !== size) return null;
    return diagonal.flatMap((value, i) => diagonal.map((_, j) => (i === j ? value : 0)));
  }
  const rows = trimmed.split(/[;\n]+/).filter((line) => line.trim() !== "").map(numbers);
  const flat = rows.flat();
  if (flat.length === 1 && shape.length === 2) {
    const side = shape[0];
    return Array.from({ length: size }, (_, k) => (Math.floor(k / side) === k % side ? flat[0] : 0));
  }
  return flat;
}

function writtenArray(values, shape) {
  const wide = shape[shape.length - 1], lines = [];
  for (let k = 0; k < values.length; k += wide) lines.push(values.slice(k, k + wide).map((value) => shown(value, 6)).join(","));
  return lines.join(";\n");
}

function arrayRow(field, values, place, change) {
  const { d, drawn } = place, shape = field.shapes[d];
  const area = element("textarea", { rows: 2, spellcheck: "false", "data-field": field.path });
  area.value = writtenArray(Array.from(values), shape);
  const square = shape.length === 2 && sizeOf(shape) === d * d;
  const kinds = square ? Object.keys(drawn || {}) : [];
  const preset = element("select", { "aria-label": `${spoken(field.name)}, ready matrices` }, element("option", { value: "", text: "typed" }));
  if (square) preset.append(element("option", { value: "identity", text: "identity" }), element("option", { value: "minus", text: "minus identity" }));
  for (const kind of kinds) drawn[kind].forEach((_, seed) => preset.append(element("option", { value: `${kind}/${seed}`, text: `${kind}, seed ${seed}` })));
  const node = row(spoken(field.name), area, `${field.doc || ""} (${shape.join(" × ")}: rows like 1,0;0,-1)`, square ? [preset] : []);
  const take = (array) => {
    const wrong = array === null ? `${field.name} must be a matrix like '1,0;0,-1' or diag:1,-1` : complaintOfArray(field, array, d);
    node.complain(wrong);
    if (wrong === null) change(array);
  };
  area.addEventListener("change", () => { preset.value = ""; take(parsedArray(area.value, shape)); });
  preset.addEventListener("change", () => {
    if (preset.value === "") return;
    const [kind, seed] = preset.value.split("/");
    const identity = Array.from({ length: d * d }, (_, k) => (Math.floor(k / d) === k % d ? 1 : 0));
    const array = kind === "identity" ? identity : kind === "minus" ? identity.map((value) => -value) : drawn[kind][Number(seed)];
    area.value = writtenArray(array, shape); take(array);
  });
  return node;
}

function group(title, ...rows) {
  return element("fieldset", {}, element("legend", { text: title }), ...rows.filter(Boolean));
}

const Controls = (() => {
  // Everything in the column, for a state; `act` says what to do with each change.
  function build(home, lab, act) {
    const { schema, state } = lab, law = lawOf(schema, state.law), variant = variantOf(law, state.choices);
    if (FIGURE) { home.replaceChildren(...few(variant, state, act)); return; }
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.field : null;
    home.replaceChildren(lawGroup(schema, state, law, variant, act), startGroup(schema, state, law, variant, act), solverGroup(schema, state, variant, act));
    if (focused) { const again = [...home.querySelectorAll("[data-field]")].find((node) => node.dataset.field === focused); if (again) again.focus({ preventScroll: true }); }
  }

  // A figure has sliders for the numbers of its law, and for nothing else.
  function few(variant, state, act) {
    return variant.fields.filter((field) => field.kind !== "array" && field.slide).slice(0, 3).map((field) => numberRow(field, valueOf(field, state.values, state.d), (value) => act.value(field, value), field.path));
  }

  function lawGroup(schema, state, law, variant, act) {
    const names = schema.laws.map((each) => [each.name, each.slug]);
    const rows = [selectRow("law", names, state.law, law.summary, (name) => act.law(name), "law")];
    if (law.equation) rows.push(element("pre", { class: "equation", text: law.equation, "aria-label": "its equation" }));
    for (const choice of law.choices) {
      const options = choice.options.map((option) => [option, option === "true" ? "yes" : option === "false" ? "no" : option]);
      rows.push(selectRow(spoken(choice.name), options, state.choices[choice.name] || choice.default, choice.doc, (value) => act.choice(choice.name, value), `choice.${choice.name}`));
    }
    for (const field of variant.fields) rows.push(fieldRow(field, state.values, state, schema, (value) => act.value(field, value)));
    for (const note of [...(law.notes || []), ...(variant.notes || [])]) rows.push(element("p", { class: "doc", text: note }));
    return group("Law of motion", ...rows);
  }

  function fieldRow(field, values, state, schema, change) {
    const value = valueOf(field, values, state.d);
    if (field.kind !== "array") return numberRow(field, value, change, field.path);
    return arrayRow(field, value, { d: state.d, drawn: (schema.matrices || {})[state.d] }, change);
  }

  function startGroup(schema, state, law, variant, act) {
    const fields = placeFields(schema, law, startOf(schema, state.start), state.d), dims = dimensionsOf(variant);
    const starts = schema.starts.filter((start) => start.programs[state.d] !== undefined);
    const start = startOf(schema, state.start);
    const rows = [
      selectRow("start", starts.map((each) => [each.name, each.slug]), state.start, start.summary, (name) => act.start(name), "start"),
      numberRow({ ...fields.n, doc: "number of tokens", slide: { low: 2, high: 512, log: true } }, state.n, (value) => act.place("n", value)),
      selectRow("d", dims.map((d) => [d, d === 2 ? "2, the circle" : d === 3 ? "3, the sphere" : `${d}, principal axes`]), state.d, "dimension of the space", (value) => act.dimension(Number(value)), "d"),
      ...start.fields.map((field) => fieldRow(field, state.startValues, state, schema, (value) => act.startValue(field, value))),
      numberRow({ ...fields.seed, doc: "of the start and the noise: the library's tokens" }, state.seed, (value) => act.place("seed", value)),
    ];
    if (state.edited) rows.push(element("p", { class: "doc", text: "Tokens were moved by hand; a restart keeps them." }), element("button", { type: "button", text: "back to the start law", onclick: () => act.unedit() }));
    return group("Start", ...rows);
  }

  function solverGroup(schema, state, variant, act) {
    const names = solversOf(variant, state.d), solver = solverOf(schema, state.solver);
    const options = names.map((name) => [name, `${solverOf(schema, name).slug} (${solverOf(schema, name).convention})`]);
    const fields = placeFields(schema, lawOf(schema, state.law)), flow = solver.convention === "flow";
    const divided = [[state.chosen === "step" ? "solver" : state.chosen, "divided until they are accurate"], ["step", "as chosen"]];
    const steps = selectRow("steps", divided, state.chosen, "a step that you choose is not divided; the page says where it is too long", (value) => act.chosen(value), "chosen");
    steps.hidden = !flow; // layers are a model of their own
    return group("Time",
      selectRow("solver", options, state.solver, solver.summary, (name) => act.solver(name), "solver"),
      numberRow({ ...fields.h, doc: "step of time", slide: { low: 0.001, high: 1, log: true } }, state.h, (value) => act.step(value)),
      steps,
      selectRow("cluster δ", schema.deltas, state.delta, "tokens are one cluster where a chain of cosines ≥ 1 − δ joins them", (value) => act.delta(Number(value)), "delta"));
  }

  return { build };
})();
