// The stage: tokens on the circle, on S^2, in R^d, or, for d > 3, on their first principal axes.

const Stage = (() => {
  const MANY = 2500; // beyond it tokens are pixels with depth, not discs
  const camera = { turn: [1, 0, 0, 0, 1, 0, 0, 0, 1], zoom: 1 };

  function turned(m, yaw, pitch) { // first about the vertical axis of the screen, then the horizontal
    const cy = Math.cos(yaw), sy = Math.sin(yaw), cp = Math.cos(pitch), sp = Math.sin(pitch);
    const r = [cy, 0, sy, sp * sy, cp, -sp * cy, -cp * sy, sp, cp * cy];
    return product(r, m);
  }

  function product(a, b) {
    const c = new Array(9).fill(0);
    for (let i = 0; i < 3; i++) for (let j = 0; j < 3; j++) for (let k = 0; k < 3; k++) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    return c;
  }

  function home() { camera.turn = turned([1, 0, 0, 0, 1, 0, 0, 0, 1], 0.6, 0.35); camera.zoom = 1; }
  home();

  // Where tokens are shown: three coordinates each, and what to say of the axes.
  function placed(frame, d, memory) {
    if (d <= 3) {
      const p = new Float64Array(3 * frame.n);
      for (let i = 0; i < frame.n; i++) for (let k = 0; k < d; k++) p[3 * i + k] = frame.x[d * i + k];
      return { p, share: null };
    }
    const axes = principal(frame, d, memory);
    const p = new Float64Array(3 * frame.n);
    for (let i = 0; i < frame.n; i++) for (let a = 0; a < 3; a++) {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += frame.x[d * i + k] * axes.vectors[a][k];
      p[3 * i + a] = sum;
    }
    return { p, share: axes.share };
  }

  // The three principal axes of the tokens, by Jacobi's rotations; their signs follow the last ones.
  function principal(frame, d, memory) {
    const C = Array.from({ length: d }, () => new Float64Array(d));
    for (let i = 0; i < frame.n; i++) for (let a = 0; a < d; a++) for (let b = a; b < d; b++) C[a][b] += frame.x[d * i + a] * frame.x[d * i + b];
    for (let a = 0; a < d; a++) for (let b = 0; b < a; b++) C[a][b] = C[b][a];
    const U = Array.from({ length: d }, (_, a) => Float64Array.from({ length: d }, (_, b) => (a === b ? 1 : 0)));
    for (let sweep = 0; sweep < 12; sweep++) {
      let off = 0;
      for (let a = 0; a < d; a++) for (let b = a + 1; b < d; b++) {
        if (Math.abs(C[a][b]) < 1e-14) continue;
        off += Math.abs(C[a][b]);
        const angle = 0.5 * Math.atan2(2 * C[a][b], C[a][a] - C[b][b]), c = Math.cos(angle), s = Math.sin(angle);
        for (let k = 0; k < d; k++) { const u = C[k][a], v = C[k][b]; C[k][a] = c * u + s * v; C[k][b] = c * v - s * u; }
        for (let k = 0; k < d; k++) { const u = C[a][k], v = C[b][k]; C[a][k] = c * u + s * v; C[b][k] = c * v - s * u; }
        for (let k = 0; k < d; k++) { const u = U[k][a], v = U[k][b]; U[k][a] = c * u + s * v; U[k][b] = c * v - s * u; }
      }
      if (off < 1e-12) break;
    }
    const order = Array.from({ length: d }, (_, k) => k).sort((a, b) => C[b][b] - C[a][a]).slice(0, 3);
    const total = C.reduce((sum, row, k) => sum + row[k], 0) || 1;
    const vectors = order.map((k, place) => {
      const v = Float64Array.from({ length: d }, (_, row) => U[row][k]), last = memory.axes && memory.axes[place];
      const same = last && last.length === d ? v.reduce((sum, value, j) => sum + value * last[j], 0) : 1;
      return same < 0 ? v.map((value) => -value) : v;
    });
    memory.axes = vectors;
    return { vectors, share: order.reduce((sum, k) => sum + C[k][k], 0) / total };
  }

  // The map from tokens to the screen: {of(x, y, z) -> [left, top, depth], radius}.
  function projection(width, height, view) {
    const radius = 0.42 * Math.min(width, height) * camera.zoom / view.reach;
    const m = view.flat ? [1, 0, 0, 0, 1, 0, 0, 0, 1] : camera.turn;
    const middle = [width / 2, height / 2];
    return {
      radius, m, middle,
      of(x, y, z) {
        return [middle[0] + radius * (m[0] * x + m[1] * y + m[2] * z), middle[1] - radius * (m[3] * x + m[4] * y + m[5] * z), m[6] * x + m[7] * y + m[8] * z];
      },
    };
  }

  // The point of the space under a place of the screen; null beside the sphere.
  function under(left, top, projected, view) {
    const u = (left - projected.middle[0]) / projected.radius, v = -(top - projected.middle[1]) / projected.radius;
    const m = projected.m;
    if (view.flat) {
      const length = Math.hypot(u, v) || 1;
      return view.sphere ? [u / length, v / length, 0] : [u, v, 0];
    }
    const square = u * u + v * v;
    let depth = 0, a = u, b = v;
    if (view.sphere) {
      if (square > 1) { const length = Math.sqrt(square); a = u / length; b = v / length; } else depth = Math.sqrt(1 - square);
    }
    return [m[0] * a + m[3] * b + m[6] * depth, m[1] * a + m[4] * b + m[7] * depth, m[2] * a + m[5] * b + m[8] * depth];
  }

  function drawGround(pen, projected, view, tone) {
    const { middle, radius } = projected;
    if (!view.sphere) {
      const far = 1.15 * view.reach;
      for (const [a, b] of [[[-far, 0, 0], [far, 0, 0]], [[0, -far, 0], [0, far, 0]], [[0, 0, -far], [0, 0, far]]]) {
        if (view.flat && a[2] !== 0) continue;
        const p = projected.of(...a), q = projected.of(...b);
        pen.line([p[0], p[1], q[0], q[1]], { colour: tone.line, width: 1 });
      }
      pen.circle(middle[0], middle[1], radius, { stroke: tone.line, width: 1, alpha: 0.8 });
      return;
    }
    if (view.flat) { pen.circle(middle[0], middle[1], radius, { stroke: tone.line, width: 1.5 }); return; }
    pen.circle(middle[0], middle[1], radius, { fill: tone.faint, alpha: 0.45 });
    const STEPS = 96;
    const ring = (point) => {
      const front = [], back = [];
      for (let k = 0; k <= STEPS; k++) {
        const [left, top, depth] = projected.of(...point(2 * Math.PI * k / STEPS));
        (depth >= 0 ? front : back).push(left, top);
        (depth >= 0 ? back : front).push(NaN, NaN);
      }
      pen.line(back, { colour: tone.line, width: 0.7, alpha: 0.45 });
      pen.line(front, { colour: tone.line, width: 0.9, alpha: 1 });
    };
    for (const latitude of [-Math.PI / 3, -Math.PI / 6, 0, Math.PI / 6, Math.PI / 3]) {
      const z = Math.sin(latitude), r = Math.cos(latitude);
      ring((angle) => [r * Math.cos(angle), z, r * Math.sin(angle)]);
    }
    for (let k = 0; k < 6; k++) {
      const c = Math.cos(Math.PI * k / 6), s = Math.sin(Math.PI * k / 6);
      ring((angle) => [c * Math.cos(angle), Math.sin(angle), s * Math.cos(angle)]);
    }
    pen.circle(middle[0], middle[1], radius, { stroke: tone.line, width: 1.4 });
  }

  function drawTrails(pen, projected, trails, view, tone, colour) {
    if (trails.length < 2) return;
    const n = trails[0].n, latest = trails.length - 1;
    for (let k = 0; k < latest; k++) {
      const a = trails[k].p, b = trails[k + 1].p;
      if (trails[k + 1].n !== n || trails[k].n !== n) continue;
      const fade = 0.08 + 0.5 * (k + 1) / latest;
      for (let i = 0; i < n; i++) {
        const p = projected.of(a[3 * i], a[3 * i + 1], a[3 * i + 2]), q = projected.of(b[3 * i], b[3 * i + 1], b[3 * i + 2]);
        const dim = view.flat || q[2] >= 0 ? 1 : 0.35;
        if (Math.abs(p[0] - q[0]) + Math.abs(p[1] - q[1]) > 0.3) pen.line([p[0], p[1], q[0], q[1]], { colour: colour(i), width: 1.2, alpha: fade * dim });
      }
    }
  }

  function drawDiscs(pen, projected, p, n, view, tone, look) {
    const order = Array.from({ length: n }, (_, i) => i), places = order.map((i) => projected.of(p[3 * i], p[3 * i + 1], p[3 * i + 2]));
    if (!view.flat) order.sort((a, b) => places[a][2] - places[b][2]);
    const base = Math.max(1.8, Math.min(6.5, 34 / Math.sqrt(n + 12))) * Math.min(1.6, Math.sqrt(camera.zoom));
    for (const i of order) {
      const [left, top, depth] = places[i], near = view.flat ? 1 : Math.max(0, Math.min(1, (depth / view.reach + 1) / 2));
      const heavy = look.w ? Math.sqrt(Math.max(look.w[i] * n, 0.05)) : 1;
      const r = base * (0.62 + 0.38 * near) * Math.min(heavy, 6);
      const hidden = view.sphere && !view.flat && depth < 0;
      pen.disc(left, top, r, { fill: look.colour(i), alpha: hidden ? 0.34 : 0.92, stroke: hidden ? null : tone.paper, width: 0.8 });
      const many = look.size(i);
      if (many > 1 && look.leads(i)) pen.circle(left, top, r + 2.2 * Math.sqrt(many), { stroke: look.colour(i), width: 1.4, alpha: hidden ? 0.3 : 0.8 });
      if (i === look.held) pen.circle(left, top, r + 4, { stroke: tone.ink, width: 1.6 });
    }
    return places;
  }

  // Very many tokens: one pixel block each, the nearest on top.
  function splat(pen, projected, p, n, view, look) {
    const ratio = pen.ratio, wide = Math.round(pen.width * ratio), high = Math.round(pen.height * ratio);
    const image = pen.context.getImageData(0, 0, wide, high), bytes = image.data, deep = new Float32Array(wide * high).fill(-1e9);
    const size = Math.max(2, Math.round(1.6 * ratio));
    for (let i = 0; i < n; i++) {
      const [left, top, depth] = projected.of(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
      const near = view.flat ? 1 : 0.35 + 0.65 * Math.max(0, Math.min(1, (depth / view.reach + 1) / 2));
      const [r, g, b] = look.bytes(i), column = Math.round(left * ratio), row = Math.round(top * ratio);
      for (let dy = 0; dy < size; dy++) for (let dx = 0; dx < size; dx++) {
        const px = column + dx, py = row + dy;
        if (px < 0 || py < 0 || px >= wide || py >= high) continue;
        const at = py * wide + px;
        if (depth < deep[at]) continue;
        deep[at] = depth;
        bytes[4 * at] += near * (r - bytes[4 * at]); bytes[4 * at + 1] += near * (g - bytes[4 * at + 1]); bytes[4 * at + 2] += near * (b - bytes[4 * at + 2]);
      }
    }
    pen.context.putImageData(image, 0, 0);
  }

  // Everything: the ground, trails, tokens. Gives the places of tokens on the screen.
  function draw(pen, scene, tone) {
    pen.clear(tone.paper);
    const { view, p, n, look } = scene;
    const projected = projection(pen.width, pen.height, view);
    drawGround(pen, projected, view, tone);
    if (n <= 400) drawTrails(pen, projected, scene.trails, view, tone, look.colour);
    let places = null;
    if (n > MANY && pen.context) splat(pen, projected, p, n, view, look);
    else places = drawDiscs(pen, projected, p, n, view, tone, look);
    let line = pen.height - 10;
    for (const words of scene.notes) { pen.text(12, line, words, { colour: tone.soft, size: 12 }); line -= 16; }
    return { places, projected };
  }

  return { camera, home, turned, placed, projection, under, draw };
})();
