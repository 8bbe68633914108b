// Pieces of a page's program. Each is copied into a page that calls it.
// === threefry_high
const T = [0, 0, 0, 0, 0, 0];
function threefry(k0, k1, c0, c1) {  // Threefry-2x32, 20 rounds (Salmon et al. 2011)
  if (T[2] === k0 && T[3] === k1 && T[4] === c0 && T[5] === c1) return;
  const k2 = (k0 ^ k1 ^ 0x1BD11BDA) | 0;
  let a = (c0 + k0) | 0, b = (c1 + k1) | 0;
  const turn = (r) => { a = (a + b) | 0; b = ((b << r) | (b >>> (32 - r))) ^ a; };
  turn(13); turn(15); turn(26); turn(6); a = (a + k1) | 0; b = (b + k2 + 1) | 0;
  turn(17); turn(29); turn(16); turn(24); a = (a + k2) | 0; b = (b + k0 + 2) | 0;
  turn(13); turn(15); turn(26); turn(6); a = (a + k0) | 0; b = (b + k1 + 3) | 0;
  turn(17); turn(29); turn(16); turn(24); a = (a + k1) | 0; b = (b + k2 + 4) | 0;
  turn(13); turn(15); turn(26); turn(6); a = (a + k2) | 0; b = (b + k0 + 5) | 0;
  T[0] = a >>> 0; T[1] = b >>> 0; T[2] = k0; T[3] = k1; T[4] = c0; T[5] = c1;
}
threefry(0, 0, 0, 1); threefry(0, 0, 0, 0);
function threefry_high(k0, k1, c0, c1) { threefry(k0, k1, c0, c1); return T[0]; }
// === threefry_low threefry_high
function threefry_low(k0, k1, c0, c1) { threefry(k0, k1, c0, c1); return T[1]; }
// === exp
const EXP_FINE = Float64Array.from({ length: 2048 }, (_, k) => Math.pow(2, k / 2048));
const EXP_COARSE = Float64Array.from({ length: 4096 }, (_, k) => Math.pow(2, k - 2048));
function exp(x) {  // 2^(k/2048) from tables and e^r by its series; beyond 1400 they hold 0 and infinity
  const z = x < -1400 ? -1400 : x > 1400 ? 1400 : x;
  const k = z * 2954.639443740597 + 6755399441055744 - 6755399441055744, q = k | 0;  // rounded
  const r = z - k * 0.00033845076904981397 - k * 2.707971824696054e-12;
  return EXP_COARSE[(q >> 11) + 2048 & 4095] * EXP_FINE[q & 2047] * (1 + r + r * r * (0.5 + r * 0.16666666666666666));
}
// === words
const words = new Uint32Array(2), word_double = new Float64Array(words.buffer);
const word_single = new Float32Array(words.buffer);
// === double_of words
function double_of(high, low) { words[1] = high; words[0] = low; return word_double[0]; }
// === single_of words
function single_of(word) { words[0] = word; return word_single[0]; }
// === round_even
function round_even(x) { const y = Math.round(x); return Math.abs(x % 1) === 0.5 && y % 2 ? y - 1 : y; }
// === polynomial
function polynomial(x, c) { let y = c[0]; for (let k = 1; k < c.length; k++) y = y * x + c[k]; return y; }
// === erf_inv polynomial
const ERF_INV = [[
  -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
  1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
  6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
  2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
  1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
  4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
  0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
  0.24015818242558961693, 1.6536545626831027356], [
  2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
  1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
  2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
  6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
  0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
  -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
  3.0838856104922207635], [
  -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
  -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
  2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
  -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
  7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
  1.0103004648645343977, 4.8499064014085844221]];
function erf_inv(x) {  // Giles 2012
  const w = -Math.log1p(-x * x);
  if (Math.abs(x) === 1) return x * Infinity;
  if (w < 6.25) return x * polynomial(w - 3.125, ERF_INV[0]);
  const s = Math.sqrt(w);
  return x * (w < 16 ? polynomial(s - 3.25, ERF_INV[1]) : polynomial(s - 5, ERF_INV[2]));
}
// === erf_inv_single polynomial
const ERF_INV_SINGLE = [[
  2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
  -0.00417768164, 0.246640727, 1.50140941], [
  -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
  0.00943887047, 1.00167406, 2.83297682]].map((c) => c.map(Math.fround));
function erf_inv_single(x) {  // Giles 2012, in single precision
  const f = Math.fround;
  if (Math.abs(x) === 1) return x * Infinity;
  let w = f(-f(Math.log1p(f(-f(x * x)))));
  const c = ERF_INV_SINGLE[w < 5 ? 0 : 1];
  w = w < 5 ? f(w - 2.5) : f(f(Math.sqrt(w)) - 3);
  let y = c[0];
  for (let k = 1; k < c.length; k++) y = f(c[k] + y * w);  // rounded once
  return f(y * x);
}
// === erfc erf
function erfc(x) {  // a continued fraction where it is small
  if (x < 2) return 1 - erf(x);
  let f = 0;
  for (let k = 60; k > 0; k--) f = (k / 2) / (x + f);
  return Math.exp(-x * x) / ((x + f) * Math.sqrt(Math.PI));
}
// === erf erfc
function erf(x) {  // a series near zero
  if (Number.isNaN(x)) return x;
  if (x < 0) return -erf(-x);
  if (x >= 2) return 1 - erfc(x);
  let term = x, sum = x;
  for (let k = 1; k < 60; k++) {
    term *= 2 * x * x / (2 * k + 1);
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
}
// === lu
function lu(a, f, pivots, order, d) {  // by columns, with the largest pivot
  f.set(a.subarray(0, d * d));
  for (let i = 0; i < d; i++) order[i] = i;
  for (let k = 0; k < d; k++) {
    let best = k;
    for (let i = k + 1; i < d; i++) if (Math.abs(f[i * d + k]) > Math.abs(f[best * d + k])) best = i;
    pivots[k] = best;
    if (best !== k) {
      for (let j = 0; j < d; j++) [f[k * d + j], f[best * d + j]] = [f[best * d + j], f[k * d + j]];
      [order[k], order[best]] = [order[best], order[k]];
    }
    for (let i = k + 1; i < d; i++) {
      if (f[k * d + k] !== 0) f[i * d + k] /= f[k * d + k];
      for (let j = k + 1; j < d; j++) f[i * d + j] -= f[i * d + k] * f[k * d + j];
    }
  }
}
// === triangular_solve
function triangular_solve(a, b, x, rows, columns, left, lower, transposed, unit) {
  const d = left ? rows : columns, others = left ? columns : rows;
  const flip = left ? transposed : !transposed;  // x a = b is a^T x^T = b^T
  const at = (i, j) => flip ? a[j * d + i] : a[i * d + j];
  const place = (i, k) => left ? i * columns + k : k * columns + i;
  const forward = lower !== flip;
  for (let k = 0; k < others; k++) {
    for (let s = 0; s < d; s++) {
      const i = forward ? s : d - 1 - s;
      let sum = b[place(i, k)];
      for (let r = 0; r < s; r++) { const j = forward ? r : d - 1 - r; sum -= at(i, j) * x[place(j, k)]; }
      x[place(i, k)] = unit ? sum : sum / at(i, i);
    }
  }
}
// === cholesky
function cholesky(a, f, d) {
  f.fill(0);
  for (let i = 0; i < d; i++) for (let j = 0; j <= i; j++) {
    let sum = a[i * d + j];
    for (let k = 0; k < j; k++) sum -= f[i * d + k] * f[j * d + k];
    f[i * d + j] = i === j ? Math.sqrt(sum) : sum / f[j * d + j];
  }
}
// === eigh
function eigh(matrix, vectors, values, d) {  // Jacobi's rotations; eigenvalues ascend
  const a = Float64Array.from(matrix.subarray(0, d * d)), v = new Float64Array(d * d);
  for (let i = 0; i < d; i++) v[i * d + i] = 1;
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0, whole = 0;
    for (let i = 0; i < d * d; i++) { whole += a[i] * a[i]; if (i % (d + 1)) off += a[i] * a[i]; }
    if (!(off > 1e-32 * whole)) break;
    for (let p = 0; p < d; p++) for (let q = p + 1; q < d; q++) {
      const g = a[p * d + q];
      if (Math.abs(g) < 1e-300) continue;
      const theta = (a[q * d + q] - a[p * d + p]) / (2 * g);
      const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
      const c = 1 / Math.sqrt(t * t + 1), s = t * c;
      for (let k = 0; k < d; k++) {
        const x = a[k * d + p], y = a[k * d + q];
        a[k * d + p] = c * x - s * y; a[k * d + q] = s * x + c * y;
      }
      for (let k = 0; k < d; k++) {
        const x = a[p * d + k], y = a[q * d + k];
        a[p * d + k] = c * x - s * y; a[q * d + k] = s * x + c * y;
      }
      for (let k = 0; k < d; k++) {
        const x = v[k * d + p], y = v[k * d + q];
        v[k * d + p] = c * x - s * y; v[k * d + q] = s * x + c * y;
      }
    }
  }
  const order = Array.from({ length: d }, (_, k) => k).sort((p, q) => a[p * d + p] - a[q * d + q]);
  order.forEach((k, j) => {
    values[j] = a[k * d + k];
    for (let i = 0; i < d; i++) vectors[i * d + j] = v[i * d + k];
  });
}
// === sort
function sort(arrays, sorted, length, keys) {  // rows along the last axis, by the first arrays
  for (let start = 0; start < sorted[0].length; start += length) {
    const order = Array.from({ length }, (_, k) => start + k).sort((p, q) => {
      for (let k = 0; k < keys; k++) {
        if (arrays[k][p] < arrays[k][q]) return -1;
        if (arrays[k][p] > arrays[k][q]) return 1;
      }
      return p - q;
    });
    sorted.forEach((out, k) => order.forEach((from, to) => { out[start + to] = arrays[k][from]; }));
  }
}
