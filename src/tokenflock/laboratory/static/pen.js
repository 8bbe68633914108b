// Two pens with the same strokes: one draws on a canvas, one writes SVG. A panel is drawn by a
// function of a pen, so that what is saved is what is seen.

function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    paper: read("--paper"), ink: read("--ink"), soft: read("--soft"), faint: read("--faint"),
    line: read("--line"), accent: read("--accent"), second: read("--second"), warm: read("--warm"),
    dark: read("color-scheme") === "dark" || document.documentElement.dataset.theme === "dark"
      || (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches),
  };
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

const STAMPS = new Map();

class CanvasPen {
  constructor(canvas, width, height, ratio) {
    this.width = width; this.height = height;
    const wide = Math.round(width * ratio), high = Math.round(height * ratio);
    if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
    this.context = canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ratio = ratio;
  }
  clear(colour) { this.context.globalAlpha = 1; this.context.fillStyle = colour; this.context.fillRect(0, 0, this.width, this.height); }
  line(points, { colour, width = 1, alpha = 1, dash = null }) {
    const c = this.context;
    c.globalAlpha = alpha; c.strokeStyle = colour; c.lineWidth = width; c.lineJoin = "round"; c.setLineDash(dash || []);
    c.beginPath();
    let pen = false;
    for (let k = 0; k + 1 < points.length; k += 2) {
      const x = points[k], y = points[k + 1];
      if (!(Number.isFinite(x) && Number.isFinite(y))) { pen = false; continue; }
      if (pen) c.lineTo(x, y); else c.moveTo(x, y);
      pen = true;
    }
    c.stroke(); c.setLineDash([]); c.globalAlpha = 1;
  }
  circle(x, y, r, { fill = null, stroke = null, width = 1, alpha = 1 }) {
    const c = this.context;
    c.globalAlpha = alpha; c.beginPath(); c.arc(x, y, Math.max(r, 0.1), 0, 2 * Math.PI);
    if (fill) { c.fillStyle = fill; c.fill(); }
    if (stroke) { c.strokeStyle = stroke; c.lineWidth = width; c.stroke(); }
    c.globalAlpha = 1;
  }
  // A small circle that looks as many others do is drawn once and stamped: paths are slow to fill.
  disc(x, y, r, { fill, stroke = null, width = 1, alpha = 1 }) {
    const size = Math.max(0.25, Math.round(4 * r) / 4), half = Math.ceil(size + width) + 1;
    const name = `${fill} ${stroke} ${size} ${width} ${this.ratio}`;
    let stamp = STAMPS.get(name);
    if (!stamp) {
      if (STAMPS.size > 4000) STAMPS.clear();
      const pen = new CanvasPen(document.createElement("canvas"), 2 * half, 2 * half, this.ratio);
      pen.circle(half, half, size, { fill, stroke, width });
      STAMPS.set(name, stamp = pen.context.canvas);
    }
    this.context.globalAlpha = alpha;
    this.context.drawImage(stamp, x - half, y - half, 2 * half, 2 * half);
    this.context.globalAlpha = 1;
  }
  rect(x, y, w, h, { fill, alpha = 1 }) { const c = this.context; c.globalAlpha = alpha; c.fillStyle = fill; c.fillRect(x, y, w, h); c.globalAlpha = 1; }
  text(x, y, words, { colour, size = 11, align = "left", bold = false }) {
    const c = this.context;
    c.fillStyle = colour; c.font = `${bold ? "600 " : ""}${size}px ${FONT}`; c.textAlign = align; c.textBaseline = "alphabetic";
    c.fillText(words, x, y);
  }
}

function escaped(text) {
  return String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

class SvgPen {
  constructor(width, height) { this.width = width; this.height = height; this.parts = []; }
  clear(colour) { this.rect(0, 0, this.width, this.height, { fill: colour }); }
  line(points, { colour, width = 1, alpha = 1, dash = null }) {
    let path = "", pen = false;
    for (let k = 0; k + 1 < points.length; k += 2) {
      const x = points[k], y = points[k + 1];
      if (!(Number.isFinite(x) && Number.isFinite(y))) { pen = false; continue; }
      path += `${pen ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`;
      pen = true;
    }
    if (path === "") return;
    const dashes = dash ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(`<path d="${path}" fill="none" stroke="${escaped(colour)}" stroke-width="${width}" opacity="${alpha.toFixed(3)}" stroke-linejoin="round"${dashes}/>`);
  }
  circle(x, y, r, { fill = null, stroke = null, width = 1, alpha = 1 }) {
    this.parts.push(`<circle cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${Math.max(r, 0.1).toFixed(2)}" fill="${fill ? escaped(fill) : "none"}"${stroke ? ` stroke="${escaped(stroke)}" stroke-width="${width}"` : ""} opacity="${alpha.toFixed(3)}"/>`);
  }
  disc(x, y, r, look) { this.circle(x, y, r, look); }
  rect(x, y, w, h, { fill, alpha = 1 }) {
    this.parts.push(`<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${w.toFixed(2)}" height="${h.toFixed(2)}" fill="${escaped(fill)}" opacity="${alpha.toFixed(3)}"/>`);
  }
  text(x, y, words, { colour, size = 11, align = "left", bold = false }) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    this.parts.push(`<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" fill="${escaped(colour)}" font-size="${size}" text-anchor="${anchor}"${bold ? ' font-weight="600"' : ""}>${escaped(words)}</text>`);
  }
  written() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="${escaped(FONT)}">${this.parts.join("")}</svg>\n`;
  }
}

// The colour of a cluster: that of its first token, so it stays while others join.
function clusterColour(first, dark) {
  const hue = (first * 137.508 + 215) % 360;
  return `hsl(${hue.toFixed(1)} ${dark ? "70% 64%" : "66% 44%"})`;
}

function niceTicks(low, high, count) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9 * span; v += step) ticks.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return ticks;
}

function shown(value, digits = 4) {
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}
