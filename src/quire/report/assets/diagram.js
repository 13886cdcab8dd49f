// Hands, keys and search: what the reader does to the picture.
const startDiagram = (data) => {
  const canvas = document.getElementById("diagram");
  const stage = canvas.parentElement;
  let model = buildModel(data.trace), layout = makeLayout(model), view = makeView(model, layout, canvas), { state } = view;
  const find = (id) => document.getElementById(id);
  const has = (name, test) => find("space-time").classList.toggle(`has-${name}`, model.all.some((row) => row.some(test)));
  const showLegend = () => {
    has("receipts", (mark) => mark.kind === RECEIVE);
    has("runs", (mark) => mark.many);
    has("others", (mark) => !isMessage(mark) && !mark.incident);
    for (const op of Object.keys(SAYS)) has(op, (mark) => mark.incident?.op === op || (op === "crash" && model.incidents.ended.has(mark.process)));
  };

  const inView = find("in-view"), closeRuns = find("close");
  const draw = () => {
    view.draw();
    const { arrows, sends, deliveries, views } = view.seen;
    const bars = model.incidents.any ? `, ${plural(views, "view bar")}` : "";
    inView.textContent = `In view: ${plural(model.members.length, "member")}, ${plural(arrows, "arrow")} between members, ${plural(sends, "send mark")}, ${plural(deliveries, "delivery mark")}${bars}.`;
    closeRuns.hidden = !model.isOpen;
  };
  const move = (act) => (...given) => { act(...given); draw(); };
  const zoom = move((...given) => layout.zoom(...given)), pan = move((pixels) => layout.pan(pixels)), fit = move(() => layout.fit());

  // Messages, given by their sender and the first and last of their numbers, or nothing; and the mark that was pointed at.
  const choose = (range, mark) => {
    const chosen = range && model.select(range.origin, range.first, range.last);
    state.chosen = chosen;
    state.past = chosen ? model.past(chosen) : [];
    state.future = chosen ? model.future(chosen) : [];
    const at = mark && mark.kind === DELIVER ? [mark] : chosen ? chosen.deliveries : [];
    state.awaited = new Set(at.flatMap(model.meanwhile).filter((other) => !chosen.marks.includes(other)));
    if (chosen) { state.focus = mark ?? chosen.sends[0] ?? chosen.marks[0]; panel.show(chosen, state.past, state.future); layout.reveal(state.focus); }
    else panel.empty();
    draw();
  };
  const again = (keep) => {
    layout.arrange();
    const within = (mark) => mark.whole === keep.whole && mark.first <= keep.first && mark.last >= keep.first;
    state.focus = keep ? model.all[keep.row].find(within) ?? null : null;
    layout.show(layout.low, layout.high);
  };
  const open = ({ origin, first, last, count }) => {
    const keep = state.focus;
    model.open({ origin, first, last, count });
    again(keep);
    choose(null);
    const parts = model.select(origin, first, last).marks.filter((mark) => !keep || mark.row === keep.row);
    if (parts.length) { layout.approach(parts[Math.floor(parts.length / 2)]); draw(); }
  };
  const close = () => { const keep = state.focus; model.close(); again(keep); choose(null); };
  // A single message is drawn by itself, even out of a run.
  const chooseOne = (origin, seq) => {
    if (model.select(origin, seq, seq).marks.some((mark) => mark.many)) { model.single(origin, seq); again(null); }
    choose({ origin, first: seq, last: seq });
  };
  const newPanel = () => makePanel(model, find("details"), { choose: (range) => (range && range.first === range.last ? chooseOne(range.origin, range.first) : choose(range)), open });
  let panel = newPanel();
  const clear = () => {
    if (!state.chosen && !state.focus && !state.marked.size && model.isOpen) { close(); return; }
    state.marked = new Set();
    state.focus = null;
    choose(null);
  };

  const tip = element("div", null, "tip");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  stage.append(tip);
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  // A mark is what is under the pointer, or an arrow, which stands for its messages.
  const under = (x, y, reach) => {
    const mark = view.nearest(x, y, reach);
    if (mark) return { mark, range: isMessage(mark) ? mark : null, says: sayMark(mark, model) };
    const arrow = view.arrowAt(x, y);
    if (arrow) return { mark: arrow.delivery, range: arrow, says: sayMark({ ...arrow.delivery, ...arrow, kind: DELIVER }, model) };
    const bars = view.barsAt(x, y);
    return bars.length ? { mark: null, range: null, says: sayBars(bars, model) } : null;
  };
  const hover = (x, y) => {
    const found = under(x, y, 11);
    canvas.classList.toggle("pointing", Boolean(found));
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = found.says;
    tip.style.left = `${Math.max(4, Math.min(x + 12, layout.width - tip.offsetWidth - 6))}px`;
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
      if (moved > 4) { canvas.classList.add("moving"); pan(before[0] - here[0]); }
    } else {
      const [a, b] = [...pointers.values()];
      const old = Math.abs(a[0] - b[0]) || 1, middle = (a[0] + b[0]) / 2;
      pointers.set(event.pointerId, here);
      const [c, d] = [...pointers.values()];
      zoom(old / Math.max(Math.abs(c[0] - d[0]), 1), middle);
    }
    pointers.set(event.pointerId, here);
  });
  const lift = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("moving");
    if (event.type !== "pointerup" || moved > 4) return;
    const found = under(...at(event), event.pointerType === "mouse" ? 11 : 22);
    if (found) choose(found.range, found.mark);
    else { state.focus = null; state.marked = new Set(); choose(null); }
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => {
    const mark = view.nearest(...at(event), 11);
    if (mark && mark.count > 1) open(mark); else zoom(0.5, at(event)[0]);
  });
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); zoom(Math.exp(event.deltaY / 300), at(event)[0]); }
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); pan(event.deltaX || event.deltaY); }
  }, { passive: false });

  const focus = (mark) => {
    if (!mark) return;
    state.focus = mark;
    canvas.setAttribute("aria-label", sayMark(mark, model));
    layout.reveal(mark);
    draw();
  };
  const rowOfFocus = () => (state.focus ? model.all[state.focus.row] : model.all.find((row) => row.length) ?? []);
  const along = (by) => {
    const row = rowOfFocus(), index = state.focus ? row.indexOf(state.focus) + by : 0;
    focus(row[Math.min(Math.max(index, 0), row.length - 1)]);
  };
  const across = (by) => {
    if (!state.focus) { along(0); return; }
    for (let row = state.focus.row + by; row >= 0 && row < model.all.length; row += by) {
      if (model.all[row].length) { focus(view.nearest(layout.xOf(state.focus), view.yOf(row))); return; }
    }
  };
  const enter = () => {
    const mark = state.focus;
    if (!mark || !isMessage(mark)) return;
    const { chosen } = state;
    if (mark.count > 1 && chosen && chosen.origin === mark.origin && chosen.first === mark.first && chosen.last === mark.last) open(mark);
    else choose(mark, mark);
  };
  const keys = {
    ArrowLeft: () => along(-1), ArrowRight: () => along(1), ArrowUp: () => across(-1), ArrowDown: () => across(1), Enter: enter, " ": enter,
    "+": () => zoom(0.66), "=": () => zoom(0.66), "-": () => zoom(1.5), 0: fit, Escape: clear,
    t: () => find("axis").click(), p: () => find("packets").click(), c: close,
    Home: () => focus(rowOfFocus()[0]), End: () => focus(rowOfFocus()[rowOfFocus().length - 1]),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !["INPUT", "TEXTAREA"].includes(event.target.tagName)) { event.preventDefault(); find("search").focus(); }
  });

  const search = find("search"), found = find("found");
  let hits = [], hit = -1;
  const hitsOf = (marks) => marks.map((mark) => () => (isMessage(mark) ? choose(mark, mark) : focus(mark)));
  const matches = (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const message = /^(\d+):(\d+)$/.exec(wanted), member = /^(?:member|m)?\s*(\d+)$/.exec(wanted);
    if (message) { const [origin, seq] = [Number(message[1]), Number(message[2])]; return model.select(origin, seq, seq) ? [() => chooseOne(origin, seq)] : []; }
    if (member) return hitsOf(model.all.flat().filter((mark) => mark.process === Number(member[1]) && (mark.kind === SEND || mark.kind === DELIVER)));
    return hitsOf(model.all.flat().filter((mark) => ["group", "object", "op", "txn"].some((column) => (mark.name(column) ?? "").toLowerCase().includes(wanted))));
  };
  const step = (by) => {
    if (!hits.length) return;
    hit = (hit + by + hits.length) % hits.length;
    found.textContent = hits.length > 1 ? `${hit + 1} of ${hits.length}` : "found";
    hits[hit]();
  };
  search.addEventListener("input", () => { hits = matches(search.value); hit = -1; found.textContent = search.value.trim() && !hits.length ? "not in this window" : ""; step(1); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; found.textContent = ""; clear(); canvas.focus(); }
  });

  const axis = find("axis"), packets = find("packets");
  const nameAxis = () => { axis.textContent = layout.mode === "time" ? "By order" : "By time"; };
  axis.hidden = !model.timed;
  axis.addEventListener("click", () => {
    if (!model.timed) return;
    layout.setMode(layout.mode === "time" ? "step" : "time", state.focus ?? view.nearest(layout.left + layout.plot() / 2, null));
    nameAxis();
    draw();
  });
  packets.hidden = !model.packets.some((row) => row.length);
  packets.setAttribute("aria-pressed", "false");
  packets.addEventListener("click", () => { state.packets = !state.packets; packets.setAttribute("aria-pressed", String(state.packets)); draw(); });
  closeRuns.addEventListener("click", close);
  find("zoom-in").addEventListener("click", () => zoom(0.66));
  find("zoom-out").addEventListener("click", () => zoom(1.5));
  find("fit").addEventListener("click", fit);

  const markAt = ([process, pos]) => model.all.flat().find((mark) => mark.process === process && mark.pos === pos);
  const showWitness = (name) => {
    const marks = (data.witnesses[name] ?? []).map(markAt).filter(Boolean);
    state.marked = new Set(marks.map((mark) => mark.whole));
    if (!marks.length) return false;
    choose(null);
    layout.approach(marks[marks.length - 1]);
    layout.showAll(marks);
    draw();
    return true;
  };
  for (const button of document.querySelectorAll(".show-witness")) {
    button.addEventListener("click", () => {
      if (showWitness(button.dataset.check)) find("space-time").scrollIntoView();
      else { button.disabled = true; button.textContent = "Not in the window that is shown"; }
    });
  }

  themeListeners.push(() => view.recolour());
  showLegend();
  panel.empty();
  nameAxis();
  view.resize();
  layout.arrange();
  layout.showFirst();
  draw();
  const wanted = /^(\d+):(\d+)$/.exec(data.chosen ?? "");
  if (wanted && model.select(Number(wanted[1]), Number(wanted[2]), Number(wanted[2]))) { chooseOne(Number(wanted[1]), Number(wanted[2])); layout.approach(state.focus); draw(); }
  else Object.keys(data.witnesses).some(showWitness);
  new ResizeObserver(() => { if (view.resize()) { layout.show(layout.low, layout.high); draw(); } }).observe(stage);
  // Draw another window, unless somebody is looking at something in this one; whether it was drawn.
  const replace = (trace) => {
    if (state.chosen || state.focus || pointers.size || model.isOpen) return false;
    const { mode } = layout, shown = state.packets;
    model = buildModel(trace);
    layout = makeLayout(model);
    view = makeView(model, layout, canvas);
    ({ state } = view);
    state.packets = shown;
    layout.mode = mode;
    panel = newPanel();
    panel.empty();
    showLegend();
    axis.hidden = !model.timed;
    view.resize();
    layout.arrange();
    layout.fit();
    draw();
    return true;
  };
  return { replace };
};
