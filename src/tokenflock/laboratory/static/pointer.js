// The pointer and the keyboard on the stage: turn, zoom, move tokens, add and remove them.

const Pointer = (() => {
  const NEAR = 14; // pixels
  const pointers = new Map();
  let grasped = null, pinch = 0;

  function tool() { const chosen = document.querySelector("input[name=tool]:checked"); return chosen ? chosen.value : "turn"; }

  function nearest(places, left, top) { // of the tokens on the screen; those in front win
    if (!places) return null;
    let best = null, least = NEAR * NEAR, front = -Infinity;
    places.forEach(([x, y, depth], i) => {
      const square = (x - left) ** 2 + (y - top) ** 2;
      if (square < least - 4 || (square < least + 4 && depth > front && square < NEAR * NEAR)) { best = i; least = Math.min(least, square); front = depth; }
    });
    return best;
  }

  function where(canvas, event) { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }

  function down(canvas, lab, act, event) {
    canvas.setPointerCapture(event.pointerId);
    const [left, top] = where(canvas, event);
    pointers.set(event.pointerId, [left, top]);
    const doing = tool(), near = nearest(lab.drawn && lab.drawn.places, left, top);
    if (lab.recording || pointers.size > 1) return;
    if (doing === "move" && near !== null) { grasped = near; act.grasp(near); }
    else if (doing === "add") act.add(Stage.under(left, top, lab.drawn.projected, lab.view));
    else if (doing === "remove" && near !== null) act.remove(near);
  }

  function move(canvas, lab, act, event) {
    const [left, top] = where(canvas, event), last = pointers.get(event.pointerId);
    if (!last) { act.hover(nearest(lab.drawn && lab.drawn.places, left, top), left, top); return; }
    pointers.set(event.pointerId, [left, top]);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()], apart = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (pinch > 0) zoom(apart / pinch);
      pinch = apart; act.redraw();
    } else if (grasped !== null) act.move(grasped, Stage.under(left, top, lab.drawn.projected, lab.view));
    else if (!lab.view.flat && (tool() === "turn" || lab.recording || tool() === "move")) {
      Stage.camera.turn = Stage.turned(Stage.camera.turn, (left - last[0]) * 0.008, (top - last[1]) * 0.008);
      act.redraw();
    }
  }

  function up(event, act) {
    pointers.delete(event.pointerId); pinch = 0;
    if (grasped !== null) { grasped = null; act.release(); }
  }

  function zoom(factor) { Stage.camera.zoom = Math.max(0.3, Math.min(12, Stage.camera.zoom * factor)); }

  function key(event, act) {
    const turns = { ArrowLeft: [-0.12, 0], ArrowRight: [0.12, 0], ArrowUp: [0, -0.12], ArrowDown: [0, 0.12] }[event.key];
    if (turns) Stage.camera.turn = Stage.turned(Stage.camera.turn, ...turns);
    else if (event.key === "+" || event.key === "=") zoom(1.15);
    else if (event.key === "-") zoom(1 / 1.15);
    else if (event.key === "0") Stage.home();
    else return;
    event.preventDefault(); act.redraw();
  }

  function listen(canvas, lab, act) {
    canvas.addEventListener("pointerdown", (event) => down(canvas, lab, act, event));
    canvas.addEventListener("pointermove", (event) => move(canvas, lab, act, event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => up(event, act));
    canvas.addEventListener("pointerleave", () => act.hover(null));
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY * 0.0015)); act.redraw(); }, { passive: false });
    canvas.addEventListener("dblclick", () => { if (tool() === "turn") { Stage.home(); act.redraw(); } });
    canvas.addEventListener("keydown", (event) => key(event, act));
  }

  return { listen };
})();
