// The picture: a canvas that shows a part of the window, at any width, in the page's colours.
const MANY_ARROWS = 250;   // more than so many are drawn faintly, and without heads

const makeView = (model, layout, canvas) => {
  const context = canvas.getContext("2d");
  const state = { packets: false, chosen: null, past: [], future: [], awaited: new Set(), focus: null, marked: new Set() };
  const size = { height: 0, top: 34, row: 40, bottom: 24, yOf: (row) => size.top + size.row * (row + 0.5) };
  const colours = makeColours(model, state), { colourOf, tones, tone, toneOfArrow, overlaps } = colours;
  const seen = { arrows: 0, sends: 0, deliveries: 0, views: 0 };

  const { yOf } = size, frame = makeFrame(model, layout, { context, colours, size, state });
  const views = makeViews(model, layout, { context, colours, size });
  const radius = () => Math.max(1.8, Math.min(5.5, size.row * 0.15));
  const runHeight = () => Math.max(4, Math.min(20, size.row * 0.42));
  const resize = () => {
    if (canvas.parentElement.clientWidth === layout.width) return false;
    const narrow = canvas.parentElement.clientWidth < 560;
    layout.width = canvas.parentElement.clientWidth;
    layout.left = narrow ? 42 : 104;
    size.row = Math.max(13, Math.min(model.members.length > 6 ? 52 : 78, 620 / Math.max(model.members.length, 1)));
    size.height = Math.ceil(size.top + size.row * model.members.length + size.bottom);
    const ratio = window.devicePixelRatio || 1;
    const wide = Math.round(layout.width * ratio), high = Math.round(size.height * ratio);
    // A canvas that is given a size is made anew, even if it is the size that it has.
    if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
    canvas.style.height = `${size.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return true;
  };

  // How far a mark reaches from its middle to either side. Neighbours that are too near for their counts share the room.
  const measure = () => {
    context.font = `600 11.5px ${colours.font}`;
    for (const row of model.all) {
      for (const mark of row) {
        mark.x = layout.xOf(mark);
        mark.wanted = mark.count > 1 ? context.measureText(countText(mark)).width / 2 + 9 : radius();
      }
      const roomTo = (mark, other) => (other ? ((Math.abs(mark.x - other.x) - 3) * mark.wanted) / (mark.wanted + other.wanted) : Infinity);
      row.forEach((mark, i) => {
        const lasts = layout.mode === "time" ? (layout.toX(mark.until) - layout.toX(mark.time)) / 2 : 0;
        mark.half = Math.max(radius(), lasts, Math.min(mark.wanted, roomTo(mark, row[i - 1]), roomTo(mark, row[i + 1])));
        mark.says = mark.count > 1 && mark.half >= mark.wanted - 3 && size.row >= 24;
      });
    }
  };

  const head = (x1, y1, x2, y2, length) => {
    const angle = Math.atan2(y2 - y1, x2 - x1);
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - length * Math.cos(angle - 0.38), y2 - length * Math.sin(angle - 0.38));
    context.lineTo(x2 - length * Math.cos(angle + 0.38), y2 - length * Math.sin(angle + 0.38));
    context.fill();
  };
  // Where the way to the middle of a mark meets its edge.
  const edgeOf = (mark, x1, y1, x2, y2) => {
    const dx = x2 - x1, dy = y2 - y1, length = Math.hypot(dx, dy) || 1;
    const high = mark.kind === RECEIVE ? 2 : mark.count > 1 ? runHeight() / 2 : radius();
    const away = mark.count > 1 ? Math.min(Math.abs(dx) ? (mark.half * length) / Math.abs(dx) : Infinity, Math.abs(dy) ? (high * length) / Math.abs(dy) : Infinity) : high;
    const share = 1 - Math.min(away + 2, length) / length;
    return [x1 + dx * share, y1 + dy * share];
  };
  const outside = (a, b) => Math.max(a, b) < layout.left || Math.min(a, b) > layout.width - layout.right;
  const drawArrow = (arrow, plain, alpha) => {
    const x2 = layout.xOf(arrow.to), y2 = yOf(arrow.to.row);
    const x1 = arrow.from ? layout.xOf(arrow.from) : x2 - 26;
    // An arrow of which one end is out of sight is in the background.
    context.globalAlpha = layout.isInSight(x1) && layout.isInSight(x2) ? alpha : alpha * 0.45;
    const y1 = arrow.from ? yOf(arrow.from.row) : y2 - Math.sign(arrow.to.process - arrow.origin || 1) * Math.min(18, size.row * 0.4);
    if (arrow.from && layout.isInSight(x1) && layout.isInSight(x2)) seen.arrows += 1;
    const [tipX, tipY] = edgeOf(arrow.to, x1, y1, x2, y2), length = 7 + context.lineWidth;
    context.setLineDash(arrow.from ? [] : [3, 3]);
    context.beginPath();
    context.moveTo(x1, y1);
    const stop = plain ? 0 : (length - 0.5) / (Math.hypot(tipX - x1, tipY - y1) || 1);
    context.lineTo(tipX - (tipX - x1) * stop, tipY - (tipY - y1) * stop);
    context.stroke();
    context.setLineDash([]);
    if (!plain) head(x1, y1, tipX, tipY, length);
  };
  const drawArrows = () => {
    const passing = model.arrows.filter((arrow) => !outside(arrow.from ? layout.xOf(arrow.from) : layout.xOf(arrow.to), layout.xOf(arrow.to)));
    const crowded = passing.length > MANY_ARROWS, opacity = Math.max(0.14, Math.min(0.62, (0.62 * MANY_ARROWS) / passing.length));
    const lit = passing.map((arrow) => [arrow, toneOfArrow(arrow)]);
    for (const dim of [true, false]) for (const [arrow, colour] of lit) {
      if ((colour === null) !== dim) continue;
      const strong = state.chosen !== null && !dim;
      context.strokeStyle = context.fillStyle = colour ?? colours.faint;
      context.lineWidth = (strong ? 1.6 : 1.2) + Math.min(1.6, Math.log10(arrow.count) * 0.35);
      drawArrow(arrow, crowded && !strong, dim ? 0.16 : strong ? 0.9 : opacity);
    }
    context.globalAlpha = 1;
  };
  const drawHolds = () => {
    for (const { from, to } of model.holds) {
      const x1 = layout.xOf(from), x2 = layout.xOf(to);
      if (outside(x1, x2) || x2 - x1 < 1) continue;
      const own = state.chosen !== null && overlaps(to, state.chosen);
      context.strokeStyle = own ? colours.chosen : tone(to) !== null ? colourOf(to.origin) ?? colours.faint : colours.faint;
      context.globalAlpha = own ? 0.5 : state.chosen ? 0.12 : 0.28;
      context.lineWidth = Math.min(6, size.row * 0.2);
      context.beginPath();
      context.moveTo(x1, yOf(from.row));
      context.lineTo(x2, yOf(from.row));
      context.stroke();
    }
    context.globalAlpha = 1;
  };

  const shape = (mark, x, y, grow = 0) => {
    context.beginPath();
    if (mark.count > 1) { const high = runHeight() + 2 * grow; context.roundRect(x - mark.half - grow, y - high / 2, 2 * (mark.half + grow), high, high / 2); }
    else if (!isMessage(mark)) { const half = radius() + grow; context.rect(x - half, y - half, 2 * half, 2 * half); }
    else context.arc(x, y, radius() + grow, 0, 7);
  };
  const fillMark = (mark, x, y, colour) => {
    const filled = mark.kind !== DELIVER;
    context.strokeStyle = context.fillStyle = colour ?? colours.faint;
    context.lineWidth = 1.8;
    shape(mark, x, y);
    if (!filled) { context.fillStyle = colours.card; context.fill(); }
    context.globalAlpha = colour === null ? 0.4 : 1;
    if (filled) context.fill(); else context.stroke();
    context.globalAlpha = colour === null ? 0.7 : 1;
    if (mark.says) {
      context.fillStyle = filled ? colours.card : colour ?? colours.faint;
      context.font = `600 11.5px ${colours.font}`;
      context.textAlign = "center";
      context.fillText(countText(mark), x, y + 4);
    }
    context.globalAlpha = 1;
  };
  const drawReceipt = (mark, x, y) => {
    const colour = tones(mark)[0][1], half = (mark.count > 1 ? runHeight() / 2 : radius()) * 1.4;
    context.strokeStyle = colour ?? colours.faint;
    context.globalAlpha = colour === null ? 0.3 : 1;
    context.lineWidth = mark.count > 1 ? 3 : 1.7;
    context.beginPath();
    context.moveTo(x, y - half);
    context.lineTo(x, y + half);
    context.stroke();
    context.globalAlpha = 1;
  };
  const drawMark = (mark) => {
    const x = layout.xOf(mark), y = yOf(mark.row);
    if (x + mark.half < layout.left - 8 || x - mark.half > layout.width - layout.right + 8) return;
    if (layout.isInSight(x)) { if (mark.kind === SEND) seen.sends += 1; if (mark.kind === DELIVER) seen.deliveries += 1; }
    if (mark.kind === RECEIVE) drawReceipt(mark, x, y);
    else if (mark.incident) views.drawSign(mark.incident.op, x, y, state.marked.has(mark.whole) ? colours.bad : null);
    else {
      let from = 0;
      for (const [to, colour] of tones(mark)) {
        if (to <= from) continue;
        context.save();
        if (to - from < 1) { context.beginPath(); context.rect(x - mark.half - 2 + from * (2 * mark.half + 4), 0, (to - from) * (2 * mark.half + 4), size.height); context.clip(); }
        fillMark(mark, x, y, colour);
        context.restore();
        from = to;
      }
    }
    const ring = (grow, colour, dash) => { context.setLineDash(dash); context.lineWidth = 1.4; context.strokeStyle = colour; shape(mark, x, y, grow); context.stroke(); context.setLineDash([]); };
    if (state.awaited.has(mark)) ring(3, colours.chosen, [2, 2]);
    if (state.focus === mark) ring(5.5, colours.ink, []);
  };
  // Text with a rim in the colour of the ground, so that lines behind it do not cross it out.
  const write = (text, x, y) => {
    context.strokeStyle = colours.card;
    context.lineWidth = 3.5;
    context.lineJoin = "round";
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  };
  // A name stands on the side where fewer arrows come or go.
  const isNamedBelow = (mark) => {
    const others = mark.kind === SEND ? mark.targets : mark.sources;
    const side = others.reduce((sum, other) => sum + Math.sign(other.row - mark.row), 0);
    return side === 0 ? mark.kind === DELIVER : side < 0;
  };
  const drawNames = () => {
    if (size.row < 24) return;
    context.font = `11px ${colours.font}`;
    context.textAlign = "center";
    model.all.forEach((row, r) => {
      const edges = [-Infinity, -Infinity];
      for (const mark of row) {
        const x = layout.xOf(mark);
        if ((mark.kind !== SEND && mark.kind !== DELIVER) || !layout.isInSight(x) || tone(mark) === null) continue;
        const below = Number(isNamedBelow(mark)), text = sayRange(mark), half = context.measureText(text).width / 2;
        // Near an end of the line a name moves inwards, so that it can be read.
        const centre = Math.max(layout.left - 5 + half, Math.min(x, layout.width - layout.right + 5 - half));
        if (centre - half < edges[below] + 5) continue;
        edges[below] = centre + half;
        const lit = state.chosen || state.marked.has(mark.whole);
        context.fillStyle = lit ? tone(mark) : mark.kind === DELIVER ? colours.faint : colours.soft;
        const away = mark.count > 1 ? runHeight() / 2 : radius();
        write(text, centre, below ? yOf(r) + away + 13 : yOf(r) - away - 6);
      }
    });
  };
  const drawPackets = () => {
    context.font = `10px ${colours.font}`;
    context.textAlign = "center";
    model.packets.forEach((packets, row) => {
      let edge = -Infinity;
      for (const packet of packets) {
        const x = layout.xOf(packet), y = yOf(row);
        if (!layout.isInSight(x)) continue;
        context.strokeStyle = colours.soft;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(x, y + 4);
        context.lineTo(x, y - 9);
        context.stroke();
        const half = context.measureText(packet.name).width / 2;
        if (size.row >= 36 && x - half > edge + 4) { edge = x + half; context.fillStyle = colours.soft; write(packet.name, x, y - 13); }
      }
    });
  };
  const draw = () => {
    if (!layout.width) return;
    Object.assign(seen, { arrows: 0, sends: 0, deliveries: 0 });
    context.clearRect(0, 0, layout.width, size.height);
    context.save();
    frame.drawAxis();
    frame.drawMembers();
    context.beginPath();
    context.rect(layout.left - 4, 0, layout.width - layout.left - layout.right + 14, size.height - size.bottom + 8);
    context.clip();
    measure();
    seen.views = views.drawBars();
    drawHolds();
    drawArrows();
    if (state.packets) drawPackets();
    for (const row of model.all) row.forEach(drawMark);
    views.drawEnds();
    views.drawLabels(write);
    drawNames();
    context.restore();
    frame.drawOverview();
  };

  // The mark nearest to a point, in its row or any; null where none is within reach.
  const nearest = (x, y, reach = Infinity) => {
    let best = null, distance = reach;
    const rows = y === null ? model.all : [model.all[Math.floor((y - size.top) / size.row)] ?? []];
    for (const row of rows) for (const mark of row) {
      const far = Math.max(0, Math.abs(layout.xOf(mark) - x) - (mark.half ?? 0));
      if (far < distance) { best = mark; distance = far; }
    }
    return best;
  };
  const arrowAt = (x, y) => {
    let best = null, distance = 6;
    for (const arrow of model.arrows) {
      if (!arrow.from) continue;
      const x1 = layout.xOf(arrow.from), y1 = yOf(arrow.from.row), x2 = layout.xOf(arrow.to), y2 = yOf(arrow.to.row);
      const long = (x2 - x1) ** 2 + (y2 - y1) ** 2;
      if (!long) continue;
      const share = Math.min(1, Math.max(0, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / long));
      const far = Math.hypot(x - x1 - share * (x2 - x1), y - y1 - share * (y2 - y1));
      if (far < distance) { best = arrow; distance = far; }
    }
    return best;
  };
  return { state, size, seen, resize, draw, nearest, arrowAt, barsAt: views.barsAt, yOf, recolour: () => { colours.read(); draw(); } };
};
