// The page's side of the worker. A worker that does not answer is stopped, and the page says so.

class Runner {
  constructor(source, hear) {
    this.url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.hear = hear; this.run = 0; this.patience = 8000; this.waiting = null; this.worker = null;
    this.open();
  }
  open() {
    this.worker = new Worker(this.url);
    this.worker.onmessage = ({ data }) => {
      this.quiet();
      if (data.run !== undefined && data.run !== this.run) return;
      this.hear(data);
      if (data.kind === "frame") { this.worker.postMessage({ kind: "taken" }); if (this.playing) this.watch(); }
      if (data.kind === "ended" || data.kind === "lost" || data.kind === "refused" || data.kind === "failed") { this.playing = false; this.quiet(); }
    };
    this.worker.onerror = (event) => { event.preventDefault(); this.quiet(); this.hear({ kind: "failed", text: event.message || "the worker could not be started" }); };
  }
  send(message, expects = true) { this.worker.postMessage(message); if (expects) this.watch(); }
  load(message) { this.send({ kind: "load", ...message }, false); }
  begin(message) { this.run += 1; this.playing = false; this.send({ kind: "begin", run: this.run, ...message }); }
  play(rate, until) { this.playing = true; this.send({ kind: "play", rate, until }); }
  pause() { this.playing = false; this.send({ kind: "pause" }); }
  step(count = 1) { this.playing = false; this.send({ kind: "step", count }); }
  watch() { this.quiet(); this.waiting = setTimeout(() => this.stop(), this.patience); }
  quiet() { clearTimeout(this.waiting); this.waiting = null; }
  stop() {
    this.quiet(); this.worker.terminate(); this.playing = false; this.open();
    this.hear({ kind: "stopped", text: `a step took longer than ${this.patience / 1000} seconds, and the worker was stopped; take fewer tokens` });
  }
}
