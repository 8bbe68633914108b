// Leaving with something: Python, the command line, pictures, numbers, a film, a link.

const Export = (() => {
  function number(value) {
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return `${value}.0`;
    return String(value).replace(/e\+?(-?)(\d+)$/, "e$1$2");
  }

  function literal(values, shape) {
    if (shape.length <= 1) return `[${values.map(number).join(", ")}]`;
    const size = values.length / shape[0], parts = [];
    for (let k = 0; k < shape[0]; k++) parts.push(literal(values.slice(k * size, (k + 1) * size), shape.slice(1)));
    return `[${parts.join(", ")}]`;
  }

  function python(value) { return value === "true" ? "True" : value === "false" ? "False" : JSON.stringify(value); }

  // The arguments of a member, nested members by their paths: base.beta is beta of the base.
  function written(name, values, choices, fields, state, member) {
    const inner = {}, words = [];
    for (const choice of member.choices || []) {
      const given = choices[choice.name] || choice.default;
      if (choice.kind === "law" || choice.kind === "part") inner[choice.name] = { name: given, kind: choice.kind, words: [], fixed: (choice.written || {})[given], usual: choice.kind === "part" && given === choice.default };
      else if (given !== choice.default) words.push(`${choice.name}=${python(given)}`);
    }
    for (const field of fields) {
      const value = valueOf(field, values, state.d);
      const usual = values[field.path] === undefined && field.optional;
      if (usual) continue;
      const text = field.kind === "array" ? `np.array(${literal(Array.from(value), field.shapes[state.d])})` : field.kind === "whole" ? String(value) : number(value);
      const [head, ...rest] = field.path.split(".");
      if (inner[head] && inner[head].fixed && values[field.path] === undefined) continue;
      if (rest.length) (inner[head] = inner[head] || { name: field.home, words: [] }).words.push(`${rest.join(".")}=${text}`);
      else words.push(`${head}=${text}`);
    }
    for (const [key, part] of Object.entries(inner)) if (!part.usual || part.words.length) words.push(`${key}=${part.fixed ? joined(part, state.d) : `${part.name}(${part.words.join(", ")})`}`);
    return `${name}(${words.join(", ")})`;
  }

  // RandomHeads(4) with scale=2.0 is RandomHeads(4, scale=2.0). Random matrices are written as the numbers
  // that the page holds: drawn inside a compiled run, their last bit may be another one.
  function joined(part, d) {
    const text = !part.words.length ? part.fixed : part.fixed.replace(/\)$/, `${part.fixed.endsWith("()") ? "" : ", "}${part.words.join(", ")})`);
    return text.startsWith("Random") ? `${text}.draw(${d})` : text;
  }

  // The step that ran up to what is shown, the shortest where the page divided it, and its error.
  function ran(lab) {
    const frame = lab.shownFrame(), accuracy = frame && frame.accuracy;
    if (!accuracy) return { step: lab.state.h, said: "" };
    if (accuracy.error === 0) return { step: accuracy.step, said: "The page ran no step of this yet, so their error is not known." };
    const error = `the error of a step is about ${percent(accuracy.error)} of its move`, divided = accuracy.parts > 1 ? `The page divided its steps of ${lab.state.h} into up to ${accuracy.parts}; ` : "On the page ";
    return { step: accuracy.step, said: `${divided}${error}${accuracy.fine ? "." : ": the step is too long."}` };
  }

  function snippet(lab, t) {
    const { schema, state } = lab, law = lawOf(schema, state.law), variant = variantOf(law, state.choices), start = startOf(schema, state.start);
    const dynamics = law.given ? law.given : written(law.name, state.values, state.choices, variant.fields, state, law);
    const place = state.edited ? `Given(np.array(${literal(state.edited, [state.n, state.d])})${state.weights ? `, w=np.array(${literal(state.weights, [state.n])})` : ""})`
      : startWritten(start, state);
    const h = ran(lab).step, steps = Math.max(1, Math.round(t / h)), names = new Set(dynamics.match(/[A-Z][A-Za-z0-9]+(?=\()/g) || []);
    const laws = [...names].filter((name) => (schema.homes[name] || "") === "dynamics"), parts = [...names].filter((name) => schema.homes[name] === "parts");
    const lines = [
      /np\./.test(dynamics + place) ? "import numpy as np\n" : "", "import tokenflock as flock",
      laws.length ? `from tokenflock.dynamics import ${laws.sort().join(", ")}` : `# ${law.name} is a law of your own: import it from its file`,
      parts.length ? `from tokenflock.parts import ${parts.sort().join(", ")}` : "",
      `from tokenflock.observables import ClusterCount, OrderParameter`, `from tokenflock.solvers import ${state.solver}`,
      `from tokenflock.starts import ${state.edited ? "Given" : start.imports.join(", ")}`, "",
      `law = ${dynamics}`, `start = ${place}`,
      `run = flock.simulate(law, start, t=${number(Number((steps * h).toPrecision(12)))}, solver=${state.solver}(h=${number(h)}),`,
      `                     observe=[ClusterCount(delta=${number(state.delta)}), OrderParameter()], seed=${state.seed})`,
    ];
    if (lab.changed) lines.push("# Parameters were changed while it ran; this run has the last ones from its start.");
    if (ran(lab).said) lines.push(`# ${ran(lab).said}`);
    return lines.filter((line, k) => line !== "" || k === 7).join("\n") + "\n";
  }

  function startWritten(start, state) {
    const words = start.counts.filter((name) => name === "n" || name === "d").map((name) => `${name}=${state[name]}`);
    for (const field of start.fields) {
      const value = valueOf(field, state.startValues, state.d);
      words.push(`${field.path}=${field.kind === "whole" ? value : number(value)}`);
    }
    if (start.wraps) return `${start.name}(base=${start.wraps}(${words.filter((word) => /^[nd]=/.test(word)).join(", ")}), ${words.filter((word) => !/^[nd]=/.test(word)).join(", ")})`;
    return `${start.name}(${words.join(", ")})`;
  }

  // The command line; null with a reason where a state cannot be typed as one.
  function command(lab, t) {
    const { schema, state } = lab, law = lawOf(schema, state.law), variant = variantOf(law, state.choices), start = startOf(schema, state.start);
    if (state.edited) return { text: null, why: "tokens were moved by hand: the Python snippet has them" };
    if (law.given) return { text: null, why: "a law given as an object: the Python snippet has it" };
    const taken = new Set(schema.cli.taken), words = ["tokenflock simulate", `--dynamics ${law.slug}`];
    const flag = (role, name) => { const plain = name === "h" ? "step" : name.replace(/_/g, "-"); const clash = taken.has(plain); taken.add(plain); return clash ? `--${role.replace(/_/g, "-")}-${plain}` : `--${plain}`; };
    for (const choice of law.choices) {
      const given = state.choices[choice.name] || choice.default;
      if (choice.kind === "flag") { const name = flag("dynamics", choice.name); if (given !== choice.default) words.push(given === "true" ? name : name.replace("--", "--no-")); }
      else { const name = flag("dynamics", choice.name); if (given !== choice.default || choice.kind === "law") words.push(`${name} ${(choice.slugs || {})[given] || given}`); }
    }
    for (const field of variant.fields) {
      const nested = field.path.split("."), value = valueOf(field, state.values, state.d);
      const name = flag(nested.length > 1 ? nested[0] : "dynamics", nested[nested.length - 1]);
      if (field.optional && state.values[field.path] === undefined) continue;
      if (field.kind === "array" && field.shapes[state.d].length > 2) return { text: null, why: `${field.name} is a stack of matrices, which a command line cannot hold: the Python snippet has it` };
      words.push(field.kind === "array" ? `${name} '${writtenArray(Array.from(value), field.shapes[state.d]).replace(/\n/g, "")}'` : `${name} ${value}`);
    }
    words.push(`--start ${start.slug}`);
    for (const name of start.counts) { const named = flag("start", name); words.push(`${named} ${state[name]}`); }
    for (const field of start.fields) words.push(`${flag("start", field.path)} ${valueOf(field, state.startValues, state.d)}`);
    const { step } = ran(lab), steps = Math.max(1, Math.round(t / step));
    words.push(`--solver ${solverOf(schema, state.solver).slug}`, `--step ${step}`, `--t ${Number((steps * step).toPrecision(12))}`, `--seed ${state.seed}`, "--out run.nc");
    return { text: words.join(" "), why: "" };
  }

  function csv(history, d) {
    const lines = [["step", "t", "token", ...Array.from({ length: d }, (_, k) => `x${k}`), "h", "error"].join(",")];
    for (const frame of history.frames) for (let i = 0; i < frame.n; i++) {
      lines.push([frame.index, frame.t, i, ...frame.x.slice(d * i, d * i + d), ...(frame.accuracy ? [frame.accuracy.step, frame.accuracy.error] : ["", ""])].join(","));
    }
    return lines.join("\n") + "\n";
  }

  function json(lab, history) {
    const frames = history.frames.map((frame) => ({
      index: frame.index, t: frame.t, accuracy: frame.accuracy || null, x: Array.from(frame.x), w: Array.from(frame.w),
      seen: Object.fromEntries(Object.entries(frame.seen || {}).filter(([, value]) => value.length <= 256).map(([name, value]) => [name, Array.from(value)])),
    }));
    return JSON.stringify({ format: "tokenflock lab run", version: lab.version, state: lab.state, d: lab.state.d, frames }) + "\n";
  }

  function save(name, content, type) {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const anchor = element("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(anchor); anchor.click(); anchor.remove();
    setTimeout(() => URL.revokeObjectURL(anchor.href), 10000);
  }

  // A film of the stage: every recorded frame drawn on a canvas that a recorder watches.
  async function film(canvas, count, drawFrame, seconds, report) {
    const types = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm", "video/mp4"];
    const type = window.MediaRecorder ? types.find((each) => MediaRecorder.isTypeSupported(each)) : null;
    if (!type || !canvas.captureStream) throw new Error("this browser records no canvas; take the picture, or the film of the library: tokenflock film run.nc");
    const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: type, videoBitsPerSecond: 6e6 }), parts = [];
    recorder.ondataavailable = (event) => { if (event.data.size) parts.push(event.data); };
    const done = new Promise((resolve) => { recorder.onstop = resolve; });
    recorder.start(250);
    const begun = performance.now();
    for (;;) {
      const share = Math.min(1, (performance.now() - begun) / (1000 * seconds));
      drawFrame(Math.round(share * (count - 1))); report(share);
      if (share >= 1) break;
      await new Promise((resolve) => setTimeout(resolve, 33));
    }
    await new Promise((resolve) => setTimeout(resolve, 120));
    recorder.stop(); await done;
    return { blob: new Blob(parts, { type: type.split(";")[0] }), ending: type.includes("webm") ? "webm" : "mp4" };
  }

  return { snippet, command, csv, json, save, film };
})();
