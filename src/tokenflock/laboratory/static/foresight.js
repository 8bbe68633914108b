// What the law itself says of the state: how small changes grow, and when the present clusters meet.
//
// Both run the same traced step that the page runs: the Jacobian is its derivative by central
// differences, and clusters are followed as heavy tokens of their own.

const Foresight = (() => {
  const CLUSTERS = 16, FAR = 200000, NUDGE = 1e-5; // of a forecast, steps ahead, of a difference

  // Orthonormal tangent vectors at a token: the other columns of the reflection that sends it to an axis.
  function tangents(x, at, d, sphere) {
    const eye = Array.from({ length: d }, (_, k) => Float64Array.from({ length: d }, (_, j) => (j === k ? 1 : 0)));
    if (!sphere) return eye;
    const v = Float64Array.from({ length: d }, (_, k) => x[at + k]);
    v[0] += x[at] < 0 ? -1 : 1;
    const square = v.reduce((sum, value) => sum + value * value, 0);
    return eye.slice(1).map((axis, k) => axis.map((value, j) => value - 2 * v[j] * v[k + 1] / square));
  }

  function allTangents(x, n, d, sphere) { return Array.from({ length: n }, (_, i) => tangents(x, d * i, d, sphere)); }

  // Rates and frequencies of all modes, the fastest first; none where they are too many: the logarithm of the eigenvalues of a step's derivative over h.
  function spectrum(law, state, params, { d, sphere, numbers }) {
    const { n } = state, m = sphere ? d - 1 : d, size = n * m;
    if (size > numbers) return new Float64Array(0);
    const after = law.step({ ...state, x: state.x.slice() }, params).slice();
    const before = allTangents(state.x, n, d, sphere), behind = allTangents(after, n, d, sphere);
    const rows = Array.from({ length: size }, () => new Float64Array(size));
    for (let column = 0; column < size; column++) {
      const i = Math.floor(column / m), axis = before[i][column % m];
      const moved = [1, -1].map((sign) => {
        const x = state.x.slice();
        for (let k = 0; k < d; k++) x[d * i + k] += sign * NUDGE * axis[k];
        if (sphere) { let length = 0; for (let k = 0; k < d; k++) length += x[d * i + k] ** 2; for (let k = 0; k < d; k++) x[d * i + k] /= Math.sqrt(length); }
        return law.step({ ...state, x }, params).slice();
      });
      for (let row = 0; row < size; row++) {
        const j = Math.floor(row / m), along = behind[j][row % m];
        for (let k = 0; k < d; k++) rows[row][column] += along[k] * (moved[0][d * j + k] - moved[1][d * j + k]) / (2 * NUDGE);
      }
    }
    const values = eigenvalues(rows), modes = [];
    for (let k = 0; k < size; k++) modes.push([Math.log(Math.hypot(values[2 * k], values[2 * k + 1])) / state.h, Math.atan2(values[2 * k + 1], values[2 * k]) / state.h]);
    return Float64Array.from(modes.sort((a, b) => b[0] - a[0]).flat());
  }

  // The clusters as heavy tokens; null where there are too many, or one.
  function gathered(state, labels, d) {
    const groups = new Map();
    labels.forEach((label, i) => { if (!groups.has(label)) groups.set(label, []); groups.get(label).push(i); });
    if (groups.size < 2 || groups.size > CLUSTERS || groups.size === state.n) return null;
    const n = groups.size, x = new Float64Array(n * d), w = new Float64Array(n);
    [...groups.values()].forEach((members, j) => {
      for (const i of members) { w[j] += state.w[i]; for (let k = 0; k < d; k++) x[d * j + k] += state.w[i] * state.x[d * i + k]; }
      for (let k = 0; k < d; k++) x[d * j + k] /= w[j];
    });
    return { ...state, n, x, w };
  }

  function nearest(x, n, d) { // the greatest cosine of two tokens on the sphere
    let most = -1;
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) { let dot = 0; for (let k = 0; k < d; k++) dot += x[d * i + k] * x[d * j + k]; if (dot > most) most = dot; }
    return most;
  }

  // A forecast that goes on for some milliseconds at a time: {t, count, done}, done 1 where they meet, 0 where they do not in FAR steps.
  function forecast(law, params, begun, d, delta) {
    const state = { ...begun, x: law.project(begun, params).slice() };
    let steps = 0, done = null;
    return {
      count: begun.n,
      run(milliseconds) {
        const begin = performance.now();
        while (done === null) {
          if (nearest(state.x, state.n, d) >= 1 - delta) done = 1;
          else if (steps >= FAR) done = 0;
          else {
            state.x.set(law.step(state, params)); steps += 1;
            state.index = begun.index + steps; state.t = begun.t + steps * state.h;
            if (steps % 32 === 0 && performance.now() - begin > milliseconds) return null;
          }
        }
        return { t: state.t, count: state.n, done };
      },
    };
  }

  return { spectrum, gathered, forecast };
})();
