// What opens above the stage: lessons, the map, and what one leaves with.

const Drawers = (() => {
  function toggle(name, show) {
    for (const drawer of document.querySelectorAll(".drawer")) drawer.hidden = drawer.id === name ? (show === undefined ? !drawer.hidden : !show) : true;
    for (const button of document.querySelectorAll("nav [data-open]")) button.setAttribute("aria-expanded", String(!document.getElementById(button.dataset.open).hidden));
    document.body.classList.toggle("opened", [...document.querySelectorAll(".drawer")].some((drawer) => !drawer.hidden));
    return !document.getElementById(name).hidden;
  }

  function closer(name) { return element("button", { type: "button", class: "close", text: "×", "aria-label": "close", onclick: () => toggle(name, false) }); }

  function lessons(lab, act, number) {
    const lesson = LESSONS[number], home = document.getElementById("lessons");
    const steps = LESSONS.map((each, k) => element("button", { type: "button", text: String(k + 1), title: each.title, "aria-label": `lesson ${k + 1}: ${each.title}`, "aria-current": String(k === number), onclick: () => act.lesson(k) }));
    const next = element("button", { type: "button", text: number + 1 < LESSONS.length ? "next →" : "done", onclick: () => (number + 1 < LESSONS.length ? act.lesson(number + 1) : toggle("lessons", false)) });
    home.replaceChildren(closer("lessons"), element("h2", { text: `${number + 1}. ${lesson.title}` }), element("p", { text: lesson.text }),
      element("p", {}, element("strong", { text: lesson.question })), element("details", {}, element("summary", { text: "an answer" }), element("p", { text: lesson.answer })),
      element("div", { class: "steps" }, ...steps, next));
  }

  function map(lab, act) {
    const home = document.getElementById("map"), charts = lab.maps;
    if (!charts.length) { home.replaceChildren(closer("map"), element("h2", { text: "The map" }), element("p", { text: "This page was written without a phase diagram; flock.lab(diagram) brings one." })); return; }
    const chosen = charts[lab.mapNumber] || charts[0];
    const canvas = element("canvas", { role: "img", "aria-label": `phase diagram: ${chosen.title}; click to start a run` }), [low, high] = chosen.range.map((value) => shown(value, 2)), note = `Light is ${low}, dark ${high}. ${chosen.note}`, told = element("p", { class: "doc", text: note });
    const select = element("select", { "aria-label": "which diagram", onchange: () => { lab.mapNumber = Number(select.value); map(lab, act); } }, ...charts.map((chart, k) => element("option", { value: k, text: chart.title, selected: k === lab.mapNumber })));
    home.replaceChildren(closer("map"), element("h2", { text: "The map" }), charts.length > 1 ? select : element("p", { text: chosen.title }), canvas, told);
    const box = () => canvas.getBoundingClientRect();
    const pen = () => new CanvasPen(canvas, box().width, box().height, Math.min(2, window.devicePixelRatio || 1));
    lab.drawMap = (tone) => { if (!home.hidden && box().width > 10) PhaseMap.draw(pen(), chosen, tone, lab.here); };
    const spot = (event) => PhaseMap.at({ width: box().width, height: box().height }, chosen, event.clientX - box().left, event.clientY - box().top);
    canvas.addEventListener("click", (event) => { const at = spot(event); if (at) act.mapped(chosen, at); });
    canvas.addEventListener("pointermove", (event) => { const at = spot(event); if (at) told.textContent = `β = ${shown(at.beta, 3)}, t = ${shown(at.t, 3)}: ${chosen.name} ${shown(at.value, 3)}. ${note}`; });
    act.redraw();
  }

  function copied(button, text) {
    const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); };
    const fallback = () => { const area = element("textarea"); area.value = text; document.body.append(area); area.select(); document.execCommand("copy"); area.remove(); done(); };
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(done, fallback); else fallback();
  }

  function text(title, id, words) {
    const button = element("button", { type: "button", text: "copy", "aria-label": `copy ${title}` });
    button.addEventListener("click", () => copied(button, words));
    return [element("p", {}, element("strong", { text: title }), document.createTextNode(" "), button), element("pre", { id, text: words })];
  }

  function leave(lab, act) {
    const home = document.getElementById("leave"), t = lab.time();
    const parts = [closer("leave"), element("h2", { text: "Take it with you" })];
    if (!lab.recording) {
      const line = Export.command(lab, t);
      parts.push(...text("Python", "snippet", Export.snippet(lab, t)));
      parts.push(...(line.text ? text("command line", "line", line.text) : [element("p", { class: "doc", text: `No command line: ${line.why}.` })]));
      parts.push(...text("link", "link", act.link()));
    }
    const button = (id, label, run) => element("button", { type: "button", id, text: label, onclick: run });
    parts.push(element("div", { class: "buttons" }, button("png", "picture (png)", () => act.saveStage("png")), button("svg", "picture (svg)", () => act.saveStage("svg")), button("film", "film (webm)", act.film), button("gif", "film (gif)", act.gif),
      button("csv", "data (csv)", act.csv), button("json", "data (json)", act.json), button("html", "this page (html)", act.html)), element("p", { class: "doc", id: "filming" }));
    home.replaceChildren(...parts);
  }

  return { toggle, lessons, map, leave };
})();
