// A block put together: the parts that were chosen, as one law with one program.
//
// Each piece was traced by the library for itself; here they are called in the order of its layer map.

const Building = (() => {
  const kept = new Map();

  function words(law, choices) { return Object.fromEntries(law.choices.map((choice) => [choice.name, choice.options.includes(String(choices[choice.name])) ? String(choices[choice.name]) : choice.default])); }

  // What the library says of two parts that do not go together, and which of them to take back.
  function refusal(law, choices) {
    const chosen = words(law, choices);
    for (const [pair, said] of Object.entries(law.built ? law.built.refused : {})) {
      const [first, second] = pair.split(","), text = said[`${chosen[first]},${chosen[second]}`];
      if (text) return { name: second, text };
    }
    return null;
  }

  function variant(law, choices) {
    const { built } = law, chosen = words(law, choices), key = JSON.stringify(chosen);
    if (kept.has(key)) return kept.get(key);
    const names = Object.keys(built.fields), alone = (name) => chosen[name] === law.choices.find((choice) => choice.name === name).default;
    const plain = names.every((name) => name === "attention" || alone(name)) && built.plain.includes(chosen.attention);
    const programs = Object.fromEntries(built.dimensions.map((d) => [d, { Layer: { key: `${key}${d}`, pieces: pieces(built, chosen, plain, d) } }]));
    const made = {
      programs, sights: Object.fromEntries(built.dimensions.map((d) => [d, programs[d].Layer])), fields: [built.beta, ...names.flatMap((name) => built.fields[name][chosen[name]])],
      notes: names.flatMap((name) => built.fixed[name][chosen[name]]), sphere: built.sphere.includes(chosen.norm), bounded: plain, equiangular: false, ordered: names.some((name) => built.ordered[name].includes(chosen[name])),
    };
    kept.set(key, made);
    return made;
  }

  // Which program is which piece; null where a part has none.
  function pieces(built, chosen, plain, d) {
    const of = (name, word) => (built.pieces[name][word] || {})[d] ?? null;
    return { read: of("read", chosen.norm), attend: of("attend", built.attending.map((name) => chosen[name]).join()), shake: of("shake", chosen.noise), finish: of("finish", chosen.norm), think: of("think", chosen.feed_forward), energy: plain ? of("energy", "") : null };
  }

  // One program of several: its parameters are those of all pieces, each name once.
  function assembled(place, programs) {
    if (kept.has(place.key)) return kept.get(place.key);
    const there = Object.entries(place.pieces).filter(([, id]) => id !== null).map(([name, id]) => [name, programs[id]]), parameters = [];
    for (const [, piece] of there) for (const each of piece.manifest.parameters) if (!parameters.some((known) => known.name === each.name)) parameters.push(each);
    const places = (piece) => piece.manifest.parameters.map((each) => parameters.findIndex((known) => known.name === each.name));
    const texts = there.map(([name, piece]) => `${name}: { made: ${piece.source}, places: [${places(piece)}] }`);
    const observables = there.filter(([name]) => name === "attend" || name === "energy").flatMap(([, piece]) => piece.manifest.observables);
    const made = { source: `(${layer.toString()})({ ${texts.join(",\n")} })`, manifest: { parameters, observables, noise: there.some(([, piece]) => piece.manifest.noise) } };
    kept.set(place.key, made);
    return made;
  }

  // Runs in the worker: the layer map of a block from its pieces.
  function layer(all) {
    const run = (name, s, p) => all[name].made.step(s, all[name].places.map((k) => p[k]));
    const look = (name, of, s, p) => all[name].made.observe[of](s, all[name].places.map((k) => p[k]));
    let still = new Float64Array(0);
    const step = (s, p) => {
      if (still.length !== s.x.length) still = new Float64Array(s.x.length);
      let now = { ...s, noise: still };
      now.said = run("attend", { ...s, x: run("read", s, p) }, p);
      if (all.shake) now.noise = run("shake", now, p);
      const x = run("finish", now, p);
      if (!all.think) return x;
      now = { ...s, x, noise: still };
      now.said = run("think", { ...now, x: run("read", now, p) }, p);
      return run("finish", now, p);
    };
    const observe = {};
    for (const name of Object.keys(all.attend.made.observe)) observe[name] = (s, p) => look("attend", name, { ...s, x: run("read", s, p) }, p);
    if (all.energy) observe.energy = (s, p) => look("energy", "energy", s, p);
    return { step, observe, project: (s, p) => all.finish.made.project(s, all.finish.places.map((k) => p[k])) };
  }

  return { variant, refusal, assembled };
})();
