// What was recorded: frames of the run, thinned evenly when they grow too many.

class History {
  constructor(bytes = 96e6) { this.bytes = bytes; this.clear(); }
  clear() { this.frames = []; this.held = 0; this.stride = 1; this.skipped = 0; this.merges = []; }
  get length() { return this.frames.length; }
  last() { return this.frames[this.frames.length - 1]; }
  add(frame) {
    const last = this.last();
    if (last && frame.index === last.index) { this.frames[this.frames.length - 1] = { ...frame, seen: { ...last.seen, ...frame.seen } }; return; }
    if (last && frame.index < last.index) this.cut(frame.index);
    this.noteMerges(frame);
    this.frames.push(frame);
    this.held += 8 * frame.x.length + 200;
    if (this.held > this.bytes || this.frames.length > 6000) this.thin();
  }
  noteMerges(frame) {
    const count = (f) => (f && f.seen && f.seen.cluster_count ? f.seen.cluster_count[0] : null);
    const now = count(frame);
    if (now === null) return;
    let k = this.frames.length - 1;
    while (k >= 0 && count(this.frames[k]) === null) k -= 1;
    if (k >= 0 && count(this.frames[k]) > now) this.merges.push({ t: frame.t, to: now });
    if (this.merges.length > 4000) this.merges.shift();
  }
  thin() { // every second frame goes, but the first and the last stay
    const last = this.frames.length - 1;
    this.frames = this.frames.filter((_, k) => k % 2 === 0 || k === last);
    this.held = this.frames.reduce((sum, frame) => sum + 8 * frame.x.length + 200, 0);
  }
  cut(index) { // forget what lies after a step: time goes on from there
    this.frames = this.frames.filter((frame) => frame.index < index);
    const end = this.frames.length ? this.last().t : -1;
    this.merges = this.merges.filter((merge) => merge.t <= end);
  }
  // (t, value) of an observable, flat, as a chart draws them
  series(name) {
    const points = [];
    for (const frame of this.frames) if (frame.seen && frame.seen[name]) points.push(frame.t, frame.seen[name][0]);
    return points;
  }
  seenAt(k, name) { // the last value of an observable at or before a frame
    for (let at = k; at >= 0; at--) if (this.frames[at] && this.frames[at].seen && this.frames[at].seen[name]) return this.frames[at].seen[name];
    return null;
  }
}
