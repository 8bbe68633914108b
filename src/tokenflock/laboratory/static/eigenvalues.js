// Eigenvalues of a real matrix: to Hessenberg form by elimination, then by shifted QR (EISPACK's
// elmhes and hqr). Gives [real, imaginary, real, ...].

function eigenvalues(rows) {
  const n = rows.length, a = rows.map((row) => Float64Array.from(row));
  hessenberg(a, n);
  return shiftedQR(a, n);
}

function hessenberg(a, n) {
  for (let m = 1; m < n - 1; m++) {
    let x = 0, pivot = m;
    for (let j = m; j < n; j++) if (Math.abs(a[j][m - 1]) > Math.abs(x)) { x = a[j][m - 1]; pivot = j; }
    if (pivot !== m) {
      [a[pivot], a[m]] = [a[m], a[pivot]];
      for (let j = 0; j < n; j++) [a[j][pivot], a[j][m]] = [a[j][m], a[j][pivot]];
    }
    if (x === 0) continue;
    for (let i = m + 1; i < n; i++) {
      const y = a[i][m - 1] / x;
      if (y === 0) continue;
      for (let j = m - 1; j < n; j++) a[i][j] -= y * a[m][j];
      for (let j = 0; j < n; j++) a[j][m] += y * a[j][i];
    }
  }
  for (let i = 2; i < n; i++) for (let j = 0; j < i - 1; j++) a[i][j] = 0;
}

function shiftedQR(a, n) {
  const found = new Float64Array(2 * n), tiny = Number.EPSILON;
  const keep = (k, re, im) => { found[2 * k] = re; found[2 * k + 1] = im; };
  let norm = 0, shift = 0, last = n - 1, turns = 0;
  for (let i = 0; i < n; i++) for (let j = Math.max(i - 1, 0); j < n; j++) norm += Math.abs(a[i][j]);
  while (last >= 0) {
    let low = last;
    for (; low >= 1; low--) {
      const size = Math.abs(a[low - 1][low - 1]) + Math.abs(a[low][low]) || norm;
      if (Math.abs(a[low][low - 1]) <= tiny * size) { a[low][low - 1] = 0; break; }
    }
    const x = a[last][last];
    if (low === last) { keep(last, x + shift, 0); last -= 1; turns = 0; continue; }
    const y = a[last - 1][last - 1], w = a[last][last - 1] * a[last - 1][last];
    if (low === last - 1) {
      const p = 0.5 * (y - x), q = p * p + w, root = Math.sqrt(Math.abs(q)), at = x + shift;
      if (q >= 0) { const z = p + (p >= 0 ? root : -root); keep(last - 1, at + z, 0); keep(last, z === 0 ? at + z : at - w / z, 0); }
      else { keep(last - 1, at + p, -root); keep(last, at + p, root); }
      last -= 2; turns = 0; continue;
    }
    if (turns >= 90) throw new Error("the eigenvalues did not settle");
    shift += sweep(a, low, last, x, y, w, turns, tiny);
    turns += 1;
  }
  return found;
}

function sweep(a, low, last, x, y, w, turns, tiny) { // one double step; gives what it shifted by
  let moved = 0, p = 0, q = 0, r = 0, m;
  if (turns % 10 === 9) {
    moved = x;
    for (let i = 0; i <= last; i++) a[i][i] -= x;
    const s = Math.abs(a[last][last - 1]) + Math.abs(a[last - 1][last - 2]);
    x = y = 0.75 * s; w = -0.4375 * s * s;
  }
  for (m = last - 2; m >= low; m--) {
    const z = a[m][m], e = x - z, f = y - z;
    p = (e * f - w) / a[m + 1][m] + a[m][m + 1]; q = a[m + 1][m + 1] - z - e - f; r = a[m + 2][m + 1];
    const s = Math.abs(p) + Math.abs(q) + Math.abs(r);
    p /= s; q /= s; r /= s;
    if (m === low) break;
    if (Math.abs(a[m][m - 1]) * (Math.abs(q) + Math.abs(r)) <= tiny * Math.abs(p) * (Math.abs(a[m - 1][m - 1]) + Math.abs(z) + Math.abs(a[m + 1][m + 1]))) break;
  }
  for (let i = m + 2; i <= last; i++) { a[i][i - 2] = 0; if (i !== m + 2) a[i][i - 3] = 0; }
  for (let k = m; k < last; k++) {
    const inside = k !== last - 1;
    let size = 0;
    if (k !== m) {
      p = a[k][k - 1]; q = a[k + 1][k - 1]; r = inside ? a[k + 2][k - 1] : 0;
      size = Math.abs(p) + Math.abs(q) + Math.abs(r);
      if (size !== 0) { p /= size; q /= size; r /= size; }
    }
    const length = Math.sqrt(p * p + q * q + r * r), s = p >= 0 ? length : -length;
    if (s === 0) continue;
    if (k !== m) a[k][k - 1] = -s * size; else if (low !== m) a[k][k - 1] = -a[k][k - 1];
    p += s;
    const u = p / s, v = q / s, z = r / s, qq = q / p, rr = r / p;
    for (let j = k; j <= last; j++) {
      const t = a[k][j] + qq * a[k + 1][j] + (inside ? rr * a[k + 2][j] : 0);
      if (inside) a[k + 2][j] -= t * z;
      a[k + 1][j] -= t * v; a[k][j] -= t * u;
    }
    for (let i = low; i <= Math.min(last, k + 3); i++) {
      const t = u * a[i][k] + v * a[i][k + 1] + (inside ? z * a[i][k + 2] : 0);
      if (inside) a[i][k + 2] -= t * rr;
      a[i][k + 1] -= t * qq; a[i][k] -= t;
    }
  }
  return moved;
}
