// What opens above the stage: lessons, the map, and what one leaves with.

const Drawers = (() => {
  // One drawer is open at a time, and `beside` it another where a lesson needs both.
  function toggle(name, show, beside) {
    for (const drawer of document.querySelectorAll(".drawer")) drawer.hidden = drawer.id === name ? (show === undefined ? !drawer.hidden : !show) : drawer.id !== beside;
    for (const button of document.querySelectorAll("nav [data-open]")) button.setAttribute("aria-expanded", String(!document.getElementById(button.dataset.open).hidden));
    document.body.classList.toggle("opened", [...document.querySelectorAll(".drawer")].some((drawer) => !drawer.hidden));
    return !document.getElementById(name).hidden;
  }

  function closer(name) { return element("button", { type: "button", class: "close", text: "×", "aria-label": "close", onclick: () => toggle(name, false) }); }

  // Powers are written e^{2β} and set above the line.
  function prose(text) { return text.split(/\^\{([^}]*)\}/).map((part, k) => (k % 2 ? element("sup", { text: part }) : part)); }

  function lessons(lab, act, number) {
    const lesson = LESSONS[number], home = document.getElementById("lessons");
    const steps = LESSONS.map((each, k) => element("button", { type: "button", text: String(k + 1), title: each.title, "aria-label": `lesson ${k + 1}: ${each.title}`, "aria-current": String(k === number), onclick: () => act.lesson(k) }));
    const next = element("button", { type: "button", text: number + 1 < LESSONS.length ? "next →" : "done", onclick: () => (number + 1 < LESSONS.length ? act.lesson(number + 1) : toggle("lessons", false)) });
    home.replaceChildren(closer("lessons"), element("h2", { text: `${number + 1}. ${lesson.title}` }), element("p", {}, ...prose(lesson.text)),
      element("p", {}, element("strong", { text: lesson.question })), element("details", {}, element("summary", { text: "an answer" }), element("p", {}, ...prose(lesson.answer))),
      element("div", { class: "steps" }, ...steps, next));
  }

  // What all titles begin with, and the rest of each: a narrow screen cuts a long choice at its end.
  function parted(titles) {
    const pieces = titles.map((title) => title.split(", ")), least = Math.min(...pieces.map((each) => each.length)) - 1;
    let shared = 0;
    while (shared < least && pieces.every((each) => each[shared] === pieces[0][shared])) shared += 1;
    return { shared: pieces[0].slice(0, shared).join(", "), rest: pieces.map((each) => each.slice(shared).join(", ")) };
  }

  function map(lab, act) {
    const home = document.getElementById("map"), charts = lab.maps;
    if (!charts.length) { home.replaceChildren(closer("map"), element("h2", { text: "The map" }), element("p", { text: "This page was written without a phase diagram; flock.lab(diagram) brings one." })); return; }
    const chosen = charts[lab.mapNumber] || charts[0], titles = parted(charts.map((chart) => chart.title));
    const canvas = element("canvas", { role: "img", "aria-label": `phase diagram: ${chosen.title}; click to start a run` }), [low, high] = chosen.range.map((value) => shown(value, 2)), note = `Light is ${low}, dark is ${high}. ${chosen.note}`, told = element("p", { class: "doc", text: note });
    const select = element("select", { "aria-label": "which diagram", onchange: () => { lab.mapNumber = Number(select.value); map(lab, act); } }, ...charts.map((_, k) => element("option", { value: k, text: titles.rest[k], selected: k === lab.mapNumber })));
    home.replaceChildren(closer("map"), element("h2", { text: "The map" }), ...(charts.length > 1 ? [element("p", {}, titles.shared.replace(/ = /g, "\u00a0=\u00a0"), " ", select)] : [element("p", { text: chosen.title })]), canvas, told);
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
