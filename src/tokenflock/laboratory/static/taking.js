// What only the whole lab does, and no small figure: save pictures, films and pages, merge clusters.

function pageText() { // this page as it was written, with the state of now as the one it opens with
  const copy = document.documentElement.cloneNode(true), packed = { ...PACKED, state: lab.recording ? PACKED.state : lab.state };
  for (const id of ["controls", "instruments", "lessons", "map", "leave", "say"]) copy.querySelector(`#${id}`).replaceChildren();
  for (const drawer of copy.querySelectorAll(".drawer")) drawer.hidden = true;
  copy.querySelector("#data").textContent = JSON.stringify(packed).replace(/</g, "\\u003c");
  return `<!DOCTYPE html>\n${copy.outerHTML}`;
}

function saved(name, kind, width, height, draw) {
  const tone = colours();
  if (kind === "svg") { const pen = new SvgPen(width, height); draw(pen, tone); Export.save(`${name}.svg`, pen.written(), "image/svg+xml"); return; }
  const canvas = document.createElement("canvas");
  draw(new CanvasPen(canvas, width, height, 2), tone);
  canvas.toBlob((blob) => Export.save(`${name}.png`, blob, "image/png"));
}

async function filmed() {
  const told = document.getElementById("filming"), canvas = document.createElement("canvas"), count = lab.history.length, memory = {};
  if (count < 2) { told.textContent = "There is nothing to film yet: press play first."; return; }
  pause();
  const tone = colours(), seconds = Math.max(2, Math.min(12, count / 30));
  try {
    const { blob, ending } = await Export.film(canvas, count, (k) => Stage.draw(new CanvasPen(canvas, 720, 720, 1), sceneOf(lab.history, k, memory, dimension()), tone), seconds, (share) => { told.textContent = `filming, ${Math.round(100 * share)} %`; });
    Export.save(`run.${ending}`, blob, blob.type); told.textContent = `saved run.${ending}`;
  } catch (error) { told.textContent = error.message; }
}

function mergeClusters() {
  const labels = lab.seen("cluster_labels");
  if (!labels) return;
  edit((x, w) => {
    const d = lab.state.d, sphere = lab.view.sphere, groups = new Map();
    labels.forEach((label, i) => { if (!groups.has(label)) groups.set(label, []); groups.get(label).push(i); });
    const tokens = [], weights = [];
    for (const members of groups.values()) {
      const mass = members.reduce((sum, i) => sum + w[i], 0), mean = Array.from({ length: d }, (_, k) => members.reduce((sum, i) => sum + w[i] * x[d * i + k], 0) / mass);
      const length = sphere ? Math.hypot(...mean) || 1 : 1;
      tokens.push(...mean.map((value) => value / length)); weights.push(mass);
    }
    return [Float64Array.from(tokens), Float64Array.from(weights)];
  });
}

async function filmedAsGif() { // fewer and smaller pictures than the film has: a GIF is large
  const told = document.getElementById("filming"), canvas = document.createElement("canvas"), count = lab.history.length, memory = {}, pictures = [];
  if (count < 2) { told.textContent = "There is nothing to film yet: press play first."; return; }
  pause();
  const tone = colours(), frames = Math.min(90, count);
  for (let k = 0; k < frames; k++) {
    const pen = new CanvasPen(canvas, 420, 420, 1);
    Stage.draw(pen, sceneOf(lab.history, Math.round(k * (count - 1) / (frames - 1)), memory, dimension()), tone);
    pictures.push(pen.context.getImageData(0, 0, 420, 420));
    if (k % 8 === 0) { told.textContent = `drawing, ${Math.round(100 * k / frames)} %`; await new Promise((resolve) => setTimeout(resolve, 0)); }
  }
  Export.save("run.gif", Gif.film(pictures, 6), "image/gif"); told.textContent = "saved run.gif";
}
