// The error of a step of a flow, from how fast neighbouring states part or meet.
//
// Agreement of a step with two half steps proves nothing where both are far too long: tokens that
// jump across each other may come back. So the derivative of the step itself is measured: z, the
// relative change of the small difference that changes most, found by power iteration along the run.
// A method of order p then leaves out about z^p / (p + 1)! of the move of that difference.

const Accuracy = (() => {
  const TOLERANCE = 0.02; // of the move of that difference in one step
  const MOST = 1024; // parts of a step
  const NUDGE = 1e-6, FIRST = 8; // size of the difference, iterations at a new start
  const FRESH = 0.1; // share of other differences in each iteration, so that none is lost

  function tangent(u, x, n, d) { // in place: without what points along each token
    for (let i = 0; i < n; i++) {
      let along = 0;
      for (let k = 0; k < d; k++) along += u[d * i + k] * x[d * i + k];
      for (let k = 0; k < d; k++) u[d * i + k] -= along * x[d * i + k];
    }
  }

  // The change of a difference from x to y; on the sphere it is carried along the great circle first.
  function change(u, grown, x, y, { d, sphere }) {
    const made = new Float64Array(u.length);
    for (let i = 0; i < u.length; i += d) {
      let turn = 0, cosine = 1;
      if (sphere) for (let k = 0; k < d; k++) { turn += y[i + k] * u[i + k]; cosine += x[i + k] * y[i + k]; }
      for (let k = 0; k < d; k++) made[i + k] = grown[i + k] - u[i + k] + (sphere ? turn / cosine * (x[i + k] + y[i + k]) : 0);
    }
    return made;
  }

  // A probe follows the difference that changes most; `after(moment, params, y)` gives the error of
  // the step from the moment to y.
  function probe(law, about) {
    let u = null, seed = 1, scale = NUDGE;
    const random = () => { seed = (seed * 48271) % 2147483647; return seed / 1073741823.5 - 1; };
    const length = (v) => Math.sqrt(v.reduce((sum, value) => sum + value * value, 0));
    // unit length, with a share of another difference
    function renewed(v, x, n) {
      const old = length(v) || 1, other = v.map(random);
      if (about.sphere) tangent(other, x, n, about.d);
      const share = FRESH / (length(other) || 1), mixed = v.map((value, k) => value / old + share * other[k]), size = length(mixed);
      return mixed.map((value) => value / size);
    }
    function grown(moment, params, y, share) { // how the difference changes in a share of the step
      const part = { ...moment, h: share * moment.h }, near = moment.x.map((value, k) => value + scale * u[k]);
      const end = share === 1 ? y : law.step(part, params).slice(), other = law.step({ ...part, x: near }, params);
      return change(u, end.map((value, k) => (other[k] - value) / scale), moment.x, end, about);
    }
    function iterate(moment, params, y) {
      scale = NUDGE * moment.x.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
      let changed = grown(moment, params, y, 1);
      // noise grows with the root of h: twice the change in a quarter of the step takes it away
      if (!about.smooth) { const quarter = grown(moment, params, y, 1 / 4); changed = changed.map((value, k) => 2 * (value - 2 * quarter[k])); }
      const z = length(changed);
      if (Number.isFinite(z)) u = renewed(changed, y, moment.n);
      return z;
    }
    return (moment, params, y) => {
      const begins = u === null || u.length !== y.length;
      if (begins) u = renewed(new Float64Array(y.length), moment.x, moment.n);
      let z = 0;
      for (let k = 0; k < (begins ? FIRST : 1); k++) z = iterate(moment, params, y);
      return error(z, about.order);
    };
  }

  function error(z, order) {
    let made = 1 / (order + 1);
    for (let k = 1; k <= order; k++) made *= z / k;
    return made;
  }

  return { probe, TOLERANCE, MOST };
})();
