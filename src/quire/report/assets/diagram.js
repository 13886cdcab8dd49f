// Hands, keys and search: what the reader does to the picture.
const startDiagram = () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const model = buildModel(data.trace);
  const canvas = document.getElementById("diagram");
  const stage = canvas.parentElement;
  const view = makeView(model, canvas);
  const state = view.state;
  const find = (id) => document.getElementById(id);
  if (model.receipts) find("space-time").classList.add("has-receipts");

  const choose = (message, event) => {
    state.chosen = message;
    state.past = message ? model.past(message) : new Set();
    state.future = message ? model.future(message) : new Set();
    const at = event && event.kind === DELIVER ? [event] : message ? message.deliveries : [];
    state.awaited = new Set(at.flatMap((delivery) => model.meanwhile(delivery)).filter((other) => model.messageOf(other) !== message));
    if (message) { state.focus = event ?? message.send ?? message.deliveries[0]; panel.show(message, state.past, state.future); view.reveal(state.focus); }
    else { panel.empty(); view.draw(); }
  };
  const panel = makePanel(model, find("details"), (message) => choose(message));
  const clear = () => { state.marked = new Set(); state.focus = null; choose(null); };

  const tip = element("div", null, "tip");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  stage.append(tip);
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const under = (x, y, reach) => view.nearest(x, y, reach) ?? view.messageAt(x, y);
  const hover = (x, y) => {
    const event = under(x, y, 11);
    canvas.classList.toggle("pointing", Boolean(event));
    tip.hidden = !event;
    if (!event) return;
    tip.textContent = sayEvent(event, model);
    tip.style.left = `${Math.max(4, Math.min(x + 12, view.size.width - tip.offsetWidth - 6))}px`;
    tip.style.top = `${Math.max(2, y > 46 ? y - 36 : y + 16)}px`;
  };

  // One pointer moves the picture, two zoom it; one that hardly moved is a click.
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, at(event)); moved = pointers.size > 1 ? 99 : 0; canvas.setPointerCapture(event.pointerId); tip.hidden = true; });
  canvas.addEventListener("pointermove", (event) => {
    const here = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) { if (event.pointerType === "mouse") hover(...here); return; }
    if (pointers.size === 1) {
      moved += Math.abs(here[0] - before[0]) + Math.abs(here[1] - before[1]) * 0.5;
      if (moved > 4) { canvas.classList.add("moving"); view.pan(before[0] - here[0]); }
    } else {
      const [a, b] = [...pointers.values()];
      const old = Math.abs(a[0] - b[0]) || 1, middle = (a[0] + b[0]) / 2;
      pointers.set(event.pointerId, here);
      const [c, d] = [...pointers.values()];
      view.zoom(old / Math.max(Math.abs(c[0] - d[0]), 1), middle);
    }
    pointers.set(event.pointerId, here);
  });
  const lift = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("moving");
    if (event.type === "pointerup" && moved <= 4) {
      const [x, y] = at(event);
      const found = under(x, y, event.pointerType === "mouse" ? 11 : 22);
      if (found) choose(isMessage(found) ? model.messageOf(found) : null, found);
      else clear();
    }
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => view.zoom(0.5, at(event)[0]));
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); view.zoom(Math.exp(event.deltaY / 300), at(event)[0]); }
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); view.pan(event.deltaX || event.deltaY); }
  }, { passive: false });

  const along = (by) => {
    const row = state.focus ? model.all[state.focus.row] : model.all.find((each) => each.length);
    if (!row) return;
    const place = state.focus ? row.indexOf(state.focus) + by : 0;
    focus(row[Math.min(Math.max(place, 0), row.length - 1)]);
  };
  const across = (by) => {
    if (!state.focus) { along(0); return; }
    for (let row = state.focus.row + by; row >= 0 && row < model.all.length; row += by) {
      if (model.all[row].length) { focus(view.nearest(view.xOf(state.focus), view.yOf(row))); return; }
    }
  };
  const focus = (event) => {
    if (!event) return;
    state.focus = event;
    canvas.setAttribute("aria-label", sayEvent(event, model));
    view.reveal(event);
  };
  const keys = {
    ArrowLeft: () => along(-1), ArrowRight: () => along(1), ArrowUp: () => across(-1), ArrowDown: () => across(1),
    Enter: () => { if (state.focus && isMessage(state.focus)) choose(model.messageOf(state.focus), state.focus); },
    "+": () => view.zoom(0.66), "=": () => view.zoom(0.66), "-": () => view.zoom(1.5), 0: () => view.fit(), Escape: clear,
    t: () => find("axis").click(), p: () => find("packets").click(),
    Home: () => focus((state.focus ? model.all[state.focus.row] : model.all[0])[0]),
    End: () => { const row = state.focus ? model.all[state.focus.row] : model.all[0]; focus(row[row.length - 1]); },
  };
  keys[" "] = keys.Enter;
  canvas.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !["INPUT", "TEXTAREA"].includes(event.target.tagName)) { event.preventDefault(); find("search").focus(); }
  });

  const search = find("search"), found = find("found");
  let hits = [], hit = -1;
  const matches = (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const message = model.messages.get(wanted);
    if (message) return [message.send ?? message.deliveries[0] ?? [...message.receipts.values()][0]];
    const member = /^(?:member|m)?\s*(\d+)$/.exec(wanted);
    if (member) return model.events.filter((event) => event.process === Number(member[1]) && event.kind === SEND || event.process === Number(member[1]) && event.kind === DELIVER);
    return model.events.filter((event) => event.kind !== PACKET && ["group", "object", "op", "txn"].some((name) => (event.word(name) ?? "").toLowerCase().includes(wanted)));
  };
  const step = (by) => {
    if (!hits.length) return;
    hit = (hit + by + hits.length) % hits.length;
    found.textContent = hits.length > 1 ? `${hit + 1} of ${hits.length}` : "found";
    const event = hits[hit];
    if (!isMessage(event)) focus(event); else choose(model.messageOf(event), event);
  };
  search.addEventListener("input", () => { hits = matches(search.value); hit = -1; found.textContent = search.value.trim() ? (hits.length ? "" : "not in this window") : ""; step(1); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; found.textContent = ""; clear(); canvas.focus(); }
  });

  const axis = find("axis"), packets = find("packets");
  const nameAxis = () => { axis.textContent = state.mode === "time" ? "By order" : "By time"; };
  axis.hidden = !model.timed;
  axis.addEventListener("click", () => { if (model.timed) { view.setMode(state.mode === "time" ? "step" : "time"); nameAxis(); } });
  packets.hidden = !model.packets.some((row) => row.length);
  packets.setAttribute("aria-pressed", "false");
  packets.addEventListener("click", () => { state.packets = !state.packets; packets.setAttribute("aria-pressed", String(state.packets)); view.draw(); });
  find("zoom-in").addEventListener("click", () => view.zoom(0.66));
  find("zoom-out").addEventListener("click", () => view.zoom(1.5));
  find("fit").addEventListener("click", () => view.fit());

  const eventAt = ([process, pos]) => model.events.find((event) => event.process === process && event.pos === pos);
  const showWitness = (name) => {
    const events = (data.witnesses[name] ?? []).map(eventAt).filter(Boolean);
    state.marked = new Set(events);
    if (!events.length) return false;
    choose(null);
    view.approach(events[events.length - 1]);
    const places = events.map((event) => [view.xOf(event), event]).sort((a, b) => a[0] - b[0]);
    const [first, last] = [places[0][1], places[places.length - 1][1]];
    const value = (event) => (state.mode === "time" ? event.time : event.step);
    const width = Math.max(state.high - state.low, (value(last) - value(first)) * 1.3);
    const centre = (value(first) + value(last)) / 2;
    view.show(centre - width / 2, centre + width / 2);
    return true;
  };
  for (const button of document.querySelectorAll(".show-witness")) {
    button.addEventListener("click", () => {
      if (showWitness(button.dataset.check)) find("space-time").scrollIntoView();
      else { button.disabled = true; button.textContent = "Not in the window that is shown"; }
    });
  }

  themeListeners.push(view.recolour);
  panel.empty();
  nameAxis();
  view.resize();
  view.setMode("step");
  const wanted = model.messages.get(data.chosen);
  if (wanted) { choose(wanted); view.approach(wanted.send ?? wanted.deliveries[0]); }
  else for (const name of Object.keys(data.witnesses)) if (showWitness(name)) break;
  new ResizeObserver(view.resize).observe(stage);
};
startDiagram();
