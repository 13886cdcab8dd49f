// Views as bars along the members' lines, and what happened to members as signs on them.
const sayList = (list) => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list[list.length - 1]}`);
const sayMembers = (list) => `${list.length === 1 ? "member" : "members"} ${sayList(list)}`;
const sayView = ({ number, others }) => `view ${number}${others.length ? ` of ${sayMembers(others)}` : ""}`;
const SAYS = {
  install: (it) => `installed ${sayView(it)}`,
  resume: (it) => `was restarted and continues in view ${it.number}, with ${plural(Number(it.text), "message")} of it kept`,
  excluded: (it) => `learned that it is excluded from view ${it.number}`,
  left: (it) => `left view ${it.number}`,
  crash: () => "crashed",
  blocked: (it) => `waits for a majority in view ${it.number}`,
  unblocked: (it) => `no longer waits for a majority in view ${it.number}`,
  cut: (it) => `was cut off from ${sayMembers(it.others)}`,
  healed: (it) => `could reach ${sayMembers(it.others)} again`,
};
const sayIncarnation = ({ incarnation }) => (incarnation && incarnation !== "1" ? ` in incarnation ${incarnation}` : "");
const SAYS_BAR = {
  view: sayView,
  absent: () => "in no view",
  blocked: () => "waiting for a majority",
  cut: (it) => `cut off from ${sayMembers(it.others)}`,
};
const sayBars = (bars, model) => {
  const view = bars.find(({ kind }) => kind === "view");
  return `member ${model.members[bars[0].row]}${view ? sayIncarnation(view.it) : ""}: ${bars.map(({ kind, it }) => SAYS_BAR[kind](it)).join(", ")}`;
};

// What happened, by where it did: on its mark where that is in the window; before the window begins, in a list.
const buildHappenings = (trace) => {
  const at = new Map(), before = new Map();
  const drawn = new Set(trace.process.map((process, i) => `${process} ${trace.pos[i]}`));
  for (const it of trace.incidents) {
    const key = `${it.process} ${it.pos}`;
    if (drawn.has(key)) at.set(key, it);
    else before.set(it.process, [...(before.get(it.process) ?? []), it]);
  }
  return { at: (mark) => at.get(`${mark.process} ${mark.pos}`) ?? null, before: (process) => before.get(process) ?? [], any: trace.incidents.length > 0, ended: new Set(trace.ended) };
};

// The stretches of a member's line, each from one mark to another, or to an end of the picture.
const barsOf = (model, row) => {
  const bars = [], open = {};
  let members = [];
  const end = (kind, to) => { if (open[kind]) bars.push({ ...open[kind], to }); open[kind] = null; };
  const begin = (kind, it, from) => { open[kind] = { kind, row, it, from }; };
  const take = (it, mark) => {
    const edge = { cut: "cut", healed: "cut", blocked: "blocked", unblocked: "blocked" }[it.op];
    if (edge) { end(edge, mark); if (it.op === edge) begin(edge, it, mark); return; }
    end("view", mark);
    end("absent", mark);
    if (it.op === "install") members = it.others;
    if (it.op === "install" || it.op === "resume") begin("view", { ...it, others: members }, mark);
    else begin("absent", it, mark);
  };
  model.incidents.before(model.members[row]).forEach((it) => take(it, null));
  for (const mark of model.all[row]) if (mark.incident) take(mark.incident, mark);
  for (const kind of Object.keys(open)) end(kind, null);
  return bars;
};

const makeViews = (model, layout, { context, colours, size }) => {
  const high = () => Math.max(6, Math.min(38, size.row * 0.52));
  const left = (bar) => (bar.from ? layout.xOf(bar.from) : layout.left);
  // Where a process ended that is only known to have crashed: after the last thing that it did.
  const endOf = (row) => {
    const marks = model.all[row], last = marks[marks.length - 1];
    return model.incidents.ended.has(model.members[row]) && last && last.incident?.op !== "crash" ? layout.xOf(last) + (last.half ?? 0) + 13 : null;
  };
  const right = (bar) => (bar.to ? layout.xOf(bar.to) : (bar.kind === "view" && endOf(bar.row)) || layout.width - layout.right);
  let bars = [];
  const line = (x1, y1, x2, y2) => { context.beginPath(); context.moveTo(x1, y1); context.lineTo(x2, y2); context.stroke(); };

  const drawView = (bar, x, width, y) => {
    // Neighbours differ, and one view has the same shade on every line.
    context.fillStyle = bar.it.number % 2 ? colours.accent : colours.ink;
    context.globalAlpha = bar.it.number % 2 ? 0.13 : 0.09;
    context.beginPath();
    context.roundRect(x, y - high() / 2, width, high(), Math.min(7, high() / 3));
    context.fill();
    context.globalAlpha = 1;
  };
  const drawAbsent = (x, width, y) => {
    context.strokeStyle = colours.card;
    context.lineWidth = 4;
    line(x, y, x + width, y);
    context.strokeStyle = colours.faint;
    context.lineWidth = 1.2;
    context.setLineDash([2, 5]);
    line(x, y, x + width, y);
    context.setLineDash([]);
  };
  const drawBlocked = (x, width, y) => {
    context.save();
    context.beginPath();
    context.rect(x, y - high() / 2, width, high());
    context.clip();
    context.strokeStyle = colours.unsure;
    context.globalAlpha = 0.4;
    context.lineWidth = 1;
    for (let at = x - high(); at < x + width; at += 7) line(at, y + high() / 2, at + high(), y - high() / 2);
    context.restore();
  };
  const drawCut = (x, width, y) => {
    context.strokeStyle = colours.bad;
    context.lineWidth = 1.6;
    context.setLineDash([5, 4]);
    line(x, y + high() / 2 + 3, x + width, y + high() / 2 + 3);
    context.setLineDash([]);
  };
  const inSight = (bar) => {
    const x = Math.max(left(bar), layout.left - 8);
    return { bar, x, width: Math.min(right(bar), layout.width - layout.right + 8) - x, y: size.yOf(bar.row) };
  };
  // Behind everything that happened; returns how many views are in sight.
  const drawBars = () => {
    bars = model.incidents.any ? model.members.flatMap((_, row) => barsOf(model, row)) : [];
    const drawn = bars.map(inSight).filter(({ width }) => width > 0);
    for (const { bar, x, width, y } of drawn) {
      if (bar.kind === "view") drawView(bar, x, width, y);
      else if (bar.kind === "absent") drawAbsent(x, width, y);
      else if (bar.kind === "blocked") drawBlocked(x, width, y);
      else drawCut(x, width, y);
    }
    return drawn.filter(({ bar }) => bar.kind === "view").length;
  };
  const drawLabels = (write) => {
    if (size.row < 40) return;
    context.font = `10.5px ${colours.font}`;
    context.textAlign = "left";
    context.fillStyle = colours.soft;
    for (const { bar, x, width, y } of bars.filter(({ kind }) => kind === "view").map(inSight)) {
      const { number, others } = bar.it, texts = [`view ${number}: ${others.join(", ")}`, `view ${number}`, `${number}`];
      const text = texts.find((each) => context.measureText(each).width + 8 <= width);
      if (text) write(text, x + 3, y - high() / 2 - 9);
    }
  };
  const cross = (x, y, half) => { line(x - half, y - half, x + half, y + half); line(x - half, y + half, x + half, y - half); };
  const triangle = (x, y, half) => { context.beginPath(); context.moveTo(x - half * 0.8, y - half); context.lineTo(x + half, y); context.lineTo(x - half * 0.8, y + half); context.closePath(); };
  // On the ground of the card, so that a sign can be told from the line that it stands on.
  const drawSign = (op, x, y, colour) => {
    const half = Math.max(3, Math.min(7, size.row * 0.16));
    const isBad = op === "crash" || op === "excluded" || op === "cut";
    context.strokeStyle = colour ?? (isBad ? colours.bad : op === "blocked" || op === "unblocked" ? colours.unsure : colours.soft);
    context.fillStyle = colours.card;
    context.lineWidth = 2;
    if (op === "install") { context.lineWidth = 1.4; line(x, y - high() / 2, x, y + high() / 2); return; }
    if (op === "cut" || op === "healed") { for (const side of [-3, 3]) line(x + side - half * 0.5, y + half, x + side + half * 0.5, y - half); return; }
    if (op !== "crash") { context.beginPath(); context.arc(x, y, half + 1.5, 0, 7); context.fill(); }
    if (op === "crash") { context.lineWidth = 2.6; cross(x, y, half); }
    else if (op === "excluded") { context.beginPath(); context.arc(x, y, half, 0, 7); context.stroke(); line(x - half * 0.7, y + half * 0.7, x + half * 0.7, y - half * 0.7); }
    else if (op === "left") { context.strokeRect(x - half * 0.8, y - half * 0.8, half * 1.6, half * 1.6); }
    else if (op === "blocked") { for (const side of [-1, 1]) line(x + side * half * 0.45, y - half * 0.8, x + side * half * 0.45, y + half * 0.8); }
    else { triangle(x, y, half * 0.9); context.stroke(); }
  };
  const drawEnds = () => model.members.forEach((_, row) => { const x = endOf(row); if (x !== null) drawSign("crash", x, size.yOf(row), null); });
  const barsAt = (x, y) => {
    const here = (bar) => Math.abs(size.yOf(bar.row) - y) <= high() / 2 + 6 && left(bar) <= x && x <= right(bar);
    const order = Object.keys(SAYS_BAR);
    return layout.isInSight(x) ? bars.filter(here).sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind)) : [];
  };
  return { drawBars, drawLabels, drawSign, drawEnds, barsAt };
};
