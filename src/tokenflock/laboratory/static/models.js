// Recorded runs and probed models: frames that were made elsewhere, on the same stage.
//
// A file that is dropped is material of a stranger too: its shape is checked, its texts are shown
// as texts, and nothing leaves the page.

const Models = (() => {
  const LARGEST = 60e6; // characters of a file

  function decoded(packed) { // numbers as base64 of little-endian float32
    const binary = atob(packed), bytes = new Uint8Array(binary.length);
    for (let k = 0; k < binary.length; k++) bytes[k] = binary.charCodeAt(k);
    if (bytes.length % 4) throw new Error("numbers are cut short");
    return Array.from(new Float32Array(bytes.buffer));
  }

  function numbers(value) { return typeof value === "string" ? decoded(value) : value; }

  function finite(values, size, what) {
    if (!Array.isArray(values) || values.length !== size || !values.every((value) => typeof value === "number" && Number.isFinite(value))) {
      throw new Error(`${what} must be ${size} finite numbers`);
    }
    return values;
  }

  // {title, axis, d, n, words, frames} of a recording, or an error in one line.
  function opened(raw) {
    if (raw === null || typeof raw !== "object") throw new Error("the file holds no recording of tokenflock");
    if (raw.format === "tokenflock lab run") return ofRun(raw);
    if (raw.format !== "tokenflock recording") throw new Error("the file holds no recording of tokenflock; write one with: tokenflock lab run.nc --out run.json");
    const { n, d, count } = raw;
    if (![n, d, count].every((value) => Number.isInteger(value) && value >= 1) || d > 64 || n * d * count > 2e7) throw new Error("the recording has no shape that fits a page");
    const x = finite(numbers(raw.x), n * d * count, "x"), axis = finite(raw.times, count, "times");
    const w = raw.w === undefined || raw.w === null ? new Array(n).fill(1 / n) : finite(numbers(raw.w), n, "w");
    const seen = {};
    for (const [name, table] of Object.entries(raw.seen || {})) {
      const values = numbers(table);
      if (/^[a-z_]{1,40}$/.test(name) && Array.isArray(values) && values.length % count === 0) seen[name] = finite(values, values.length, name);
    }
    const words = Array.isArray(raw.words) && raw.words.length === n ? raw.words.map((word) => String(word).slice(0, 60)) : null;
    const frames = axis.map((t, k) => ({
      index: k, t, n, x: Float64Array.from(x.slice(k * n * d, (k + 1) * n * d)), w: Float64Array.from(w),
      seen: Object.fromEntries(Object.entries(seen).map(([name, values]) => { const size = values.length / count; return [name, Float64Array.from(values.slice(k * size, (k + 1) * size))]; })),
    }));
    return { title: String(raw.title || "a recording").slice(0, 120), axis: raw.axis === "layer" ? "layer" : "t", d, n, words, frames, share: typeof raw.share === "number" ? raw.share : null, sphere: raw.sphere === true };
  }

  function ofRun(raw) { // what the lab itself wrote
    if (!Number.isInteger(raw.d) || raw.d < 1 || raw.d > 64 || !Array.isArray(raw.frames) || raw.frames.length === 0) throw new Error("the run of the lab is damaged");
    const frames = raw.frames.map((frame) => {
      if (!Array.isArray(frame.x)) throw new Error("a frame has no tokens");
      const n = frame.x.length / raw.d;
      finite(frame.x, Math.floor(n) * raw.d, "x");
      const w = Array.isArray(frame.w) && frame.w.length === n ? finite(frame.w, n, "w") : new Array(n).fill(1 / n);
      const seen = {};
      for (const [name, values] of Object.entries(frame.seen || {})) if (/^[a-z_]{1,40}$/.test(name) && Array.isArray(values)) seen[name] = Float64Array.from(finite(values, values.length, name));
      const told = frame.accuracy, accuracy = told ? { parts: Number(told.parts), step: Number(told.step), error: told.error === null ? Infinity : Number(told.error), fine: told.fine === true } : null;
      return { index: Number(frame.index) || 0, t: Number(frame.t) || 0, n, x: Float64Array.from(frame.x), w: Float64Array.from(w), seen, accuracy };
    });
    const first = frames[0], sphere = first.x.reduce((sum, value) => sum + value * value, 0);
    return { title: "a run of the lab", axis: "t", d: raw.d, n: first.n, words: null, frames, share: null, sphere: Math.abs(sphere - first.n) < 1e-3 * first.n };
  }

  async function dropped(file) {
    if (file.size > LARGEST) throw new Error(`${file.name} is too large for a page (${Math.round(file.size / 1e6)} MB)`);
    let raw;
    try { raw = JSON.parse(await file.text()); } catch { throw new Error(`${file.name} is not JSON; for a netCDF file write a page with: tokenflock lab ${file.name}`); }
    return opened(raw);
  }

  return { opened, dropped };
})();
