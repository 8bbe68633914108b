// What Python's lzma module wrote (its format "alone"), in bytes again: the programs of a page resemble
// each other, but lie farther apart than deflate looks back.

function unlzma(from, size) {
  const TOP = 2 ** 24, out = new Uint8Array(size), lc = from[0] % 9, lp = Math.floor(from[0] / 9) % 5, pb = Math.floor(from[0] / 45);
  // where each kind of chance begins
  const REP = 192, G0 = 204, G1 = 216, G2 = 228, LONG = 240, SLOT = 432, SPECIAL = 688, ALIGN = 816, LENGTH = 832, AGAIN = 1346, LITERAL = 1860;
  const chances = new Uint16Array(LITERAL + (0x300 << (lc + lp))).fill(1024), reps = [0, 0, 0, 0];
  const now = Uint32Array.of(0xFFFFFFFF, 0); // range and code: in memory, where they need no new numbers
  let at = 13, end = 0, state = 0;
  for (let k = 0; k < 5; k++) now[1] = (now[1] << 8) | from[at++];

  function more() { if (now[0] < TOP) { now[0] <<= 8; now[1] = (now[1] << 8) | from[at++]; } }
  function bit(k) { // one bit whose chance is learned as it goes
    const chance = chances[k], bound = (now[0] >>> 11) * chance;
    if (now[1] < bound) { now[0] = bound; chances[k] = chance + ((2048 - chance) >> 5); more(); return 0; }
    now[0] -= bound; now[1] -= bound; chances[k] = chance - (chance >> 5); more();
    return 1;
  }
  function tree(base, bits) { let m = 1; for (let k = 0; k < bits; k++) m = (m << 1) | bit(base + m); return m - (1 << bits); }
  function reversed(base, bits) { let m = 1, value = 0; for (let k = 0; k < bits; k++) { const b = bit(base + m); m = (m << 1) | b; value |= b << k; } return value; }
  function plain(bits) { let value = 0; for (let k = 0; k < bits; k++) { now[0] >>>= 1; const b = now[1] >= now[0] ? 1 : 0; if (b) now[1] -= now[0]; value = value * 2 + b; more(); } return value; }
  function length(base, place) {
    if (!bit(base)) return 2 + tree(base + 2 + 8 * place, 3);
    return bit(base + 1) ? 18 + tree(base + 258, 8) : 10 + tree(base + 130 + 8 * place, 3);
  }
  function distance(long) {
    const slot = tree(SLOT + 64 * Math.min(long - 2, 3), 6), bits = (slot >> 1) - 1, base = (2 | (slot & 1)) * 2 ** bits;
    if (slot < 4) return slot;
    return slot < 14 ? base + reversed(SPECIAL + base - slot, bits) : base + plain(bits - 4) * 16 + reversed(ALIGN, 4);
  }
  function literal() {
    const base = LITERAL + 0x300 * (((end & ((1 << lp) - 1)) << lc) + ((end ? out[end - 1] : 0) >> (8 - lc)));
    let m = 1;
    if (state >= 7) for (let byte = out[end - reps[0] - 1]; m < 256; byte <<= 1) { const hint = (byte >> 7) & 1, b = bit(base + ((1 + hint) << 8) + m); m = (m << 1) | b; if (b !== hint) break; }
    while (m < 256) m = (m << 1) | bit(base + m);
    out[end++] = m; state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
  }
  function repeated(place) { // one of the last four distances; how long, or 1
    if (!bit(G0 + state)) { if (!bit(LONG + 16 * state + place)) { state = state < 7 ? 9 : 11; return 1; } }
    else { const k = !bit(G1 + state) ? 1 : !bit(G2 + state) ? 2 : 3; reps.unshift(...reps.splice(k, 1)); }
    const long = length(AGAIN, place);
    state = state < 7 ? 8 : 11;
    return long;
  }
  while (end < size) {
    const place = end & ((1 << pb) - 1);
    if (!bit(16 * state + place)) { literal(); continue; }
    let long;
    if (bit(REP + state)) long = repeated(place);
    else { long = length(LENGTH, place); state = state < 7 ? 7 : 10; reps.pop(); reps.unshift(distance(long)); }
    if (reps[0] >= end) throw new Error("the programs of this page are damaged");
    for (let k = 0; k < long && end < size; k++, end++) out[end] = out[end - reps[0] - 1];
  }
  return out;
}
