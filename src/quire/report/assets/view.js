// The picture: a canvas that shows a part of the window, at any width, in the page's colours.
const makeView = (model, canvas) => {
  const context = canvas.getContext("2d");
  const state = { mode: "step", low: 0, high: 1, packets: false, chosen: null, past: new Set(), future: new Set(), awaited: new Set(), focus: null, marked: new Set() };
  const size = { width: 0, height: 0, left: 0, right: 14, top: 30, row: 40, bottom: 22 };
  let colours = {};

  const readColours = () => {
    const style = getComputedStyle(root);
    for (const name of ["card", "ink", "soft", "faint", "rule", "wash", "accent", "past", "future", "bad"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
    colours.font = getComputedStyle(document.body).fontFamily;
  };
  const value = (event) => (state.mode === "time" ? event.time : event.step);
  // Events of a member at the same instant stand side by side.
  const spread = () => {
    for (const row of model.all) {
      let last = null, count = 0;
      for (const event of row) {
        count = last !== null && value(event) === last ? count + 1 : 0;
        last = value(event);
        event.shift = state.mode === "time" ? Math.min(count, 12) : 0;
      }
    }
  };
  const domain = () => {
    let low = Infinity, high = -Infinity;
    for (const row of model.all) if (row.length) { low = Math.min(low, value(row[0])); high = Math.max(high, value(row[row.length - 1])); }
    if (low === Infinity) return [0, 1];
    const margin = state.mode === "time" ? (high - low) * 0.01 + 1 : 0.8;
    return [low - margin, high + margin];
  };
  const plot = () => size.width - size.left - size.right;
  const toX = (number) => size.left + ((number - state.low) / (state.high - state.low)) * plot();
  const fromX = (x) => state.low + ((x - size.left) / plot()) * (state.high - state.low);
  const gap = () => Math.max(3, Math.min(9, size.row * 0.22));
  const xOf = (event) => toX(value(event)) + (event.shift || 0) * gap();
  const yOf = (row) => size.top + size.row * (row + 0.5);

  const resize = () => {
    if (canvas.parentElement.clientWidth === size.width) return;
    const narrow = canvas.parentElement.clientWidth < 560;
    size.width = canvas.parentElement.clientWidth;
    size.row = Math.max(13, Math.min(52, 620 / Math.max(model.members.length, 1)));
    size.left = narrow ? 34 : 86;
    size.height = Math.ceil(size.top + size.row * model.members.length + size.bottom);
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(size.width * ratio);
    canvas.height = Math.round(size.height * ratio);
    canvas.style.height = `${size.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw();
  };
  const show = (low, high) => {
    const [least, most] = domain();
    const smallest = state.mode === "time" ? (most - least) / 2e5 : 3;
    const width = Math.min(Math.max(high - low, Math.min(smallest, most - least)), most - least);
    const start = Math.min(Math.max((low + high) / 2 - width / 2, least), most - width);
    state.low = start;
    state.high = start + width;
    draw();
  };
  const fit = () => show(...domain());
  const zoom = (factor, x) => {
    const centre = x === undefined ? (state.low + state.high) / 2 : fromX(x);
    show(centre - (centre - state.low) * factor, centre + (state.high - centre) * factor);
  };
  const pan = (pixels) => {
    const by = (pixels / plot()) * (state.high - state.low);
    show(state.low + by, state.high + by);
  };
  // So near that the events of the busiest member can be told apart, around an event or at the start.
  const approach = (event) => {
    const [least, most] = domain();
    const busiest = Math.max(1, ...model.all.map((row) => row.length));
    const width = (most - least) * Math.min(1, plot() / 24 / busiest);
    const centre = event ? value(event) : least + width / 2;
    show(centre - width / 2, centre + width / 2);
  };
  const reveal = (event) => {
    const x = xOf(event);
    if (x < size.left + 20 || x > size.width - size.right - 20) { const width = state.high - state.low; show(value(event) - width / 2, value(event) + width / 2); }
    else draw();
  };
  const setMode = (mode) => {
    const centre = state.focus || nearest(size.left + plot() / 2, null);
    state.mode = mode;
    spread();
    approach(centre);
  };

  const tone = (event, message) => {
    if (state.marked.has(event)) return colours.bad;
    if (!state.chosen) return colours.ink;
    if (message === state.chosen) return colours.accent;
    if (state.past.has(event)) return colours.past;
    if (state.future.has(event)) return colours.future;
    return null;
  };
  const toneOfMessage = (message) => {
    if (!state.chosen) return colours.faint;
    if (message === state.chosen) return colours.accent;
    if (message.send && state.past.has(message.send)) return colours.past;
    if (message.send && state.future.has(message.send)) return colours.future;
    return null;
  };
  const outside = (a, b) => Math.max(a, b) < size.left || Math.min(a, b) > size.width - size.right;

  const head = (x1, y1, x2, y2, length) => {
    const angle = Math.atan2(y2 - y1, x2 - x1);
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - length * Math.cos(angle - 0.36), y2 - length * Math.sin(angle - 0.36));
    context.lineTo(x2 - length * Math.cos(angle + 0.36), y2 - length * Math.sin(angle + 0.36));
    context.fill();
  };
  const arrow = (message, delivery, radius, many) => {
    if (delivery.process === message.origin) return;
    const end = message.receipts.get(delivery.process) || delivery;
    const x2 = xOf(end), y2 = yOf(end.row);
    let x1, y1;
    if (message.send) { x1 = xOf(message.send); y1 = yOf(message.send.row); }
    else { x1 = x2 - 26; y1 = y2 - Math.sign(delivery.process - message.origin || 1) * Math.min(16, size.row * 0.4); context.setLineDash([3, 3]); }
    if (!outside(x1, x2)) {
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const tipX = x2 - ((x2 - x1) / length) * (radius + 1), tipY = y2 - ((y2 - y1) / length) * (radius + 1);
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(tipX, tipY);
      context.stroke();
      if (!many) head(x1, y1, tipX, tipY, 7);
    }
    context.setLineDash([]);
  };
  const drawArrows = (radius) => {
    const dim = [], lit = [];
    let many = 0;
    for (const message of model.order) {
      const colour = toneOfMessage(message);
      (colour === null || !state.chosen ? dim : lit).push([message, colour]);
      many += message.deliveries.length;
    }
    const share = (state.high - state.low) / (domain()[1] - domain()[0]);
    const crowded = many * share > 900;
    const paint = (list, alpha, width) => {
      context.lineWidth = width;
      context.globalAlpha = alpha;
      for (const [message, colour] of list) {
        context.strokeStyle = context.fillStyle = colour ?? colours.faint;
        const strong = message === state.chosen;
        if (strong) context.lineWidth = width + 0.9;
        for (const delivery of message.deliveries) arrow(message, delivery, radius, crowded && !strong);
        if (strong) context.lineWidth = width;
      }
      context.globalAlpha = 1;
    };
    paint(dim, state.chosen ? 0.16 : crowded ? 0.3 : 0.6, 1);
    paint(lit, 0.9, 1.4);
  };
  const drawHolds = () => {
    for (const message of model.order) {
      for (const delivery of message.deliveries) {
        const receipt = message.receipts.get(delivery.process);
        if (!receipt) continue;
        const x1 = xOf(receipt), x2 = xOf(delivery);
        if (outside(x1, x2) || x2 - x1 < 1) continue;
        const colour = toneOfMessage(message);
        context.strokeStyle = colour ?? colours.faint;
        context.globalAlpha = colour === null ? 0.12 : message === state.chosen ? 0.5 : 0.3;
        context.lineWidth = Math.min(6, size.row * 0.2);
        context.beginPath();
        context.moveTo(x1, yOf(receipt.row));
        context.lineTo(x2, yOf(receipt.row));
        context.stroke();
      }
    }
    context.globalAlpha = 1;
  };
  const drawEvent = (event, radius) => {
    const x = xOf(event), y = yOf(event.row);
    if (x < size.left - 8 || x > size.width - size.right + 8) return;
    const message = isMessage(event) ? model.messageOf(event) : null;
    const colour = tone(event, message);
    context.globalAlpha = colour === null ? 0.28 : 1;
    context.strokeStyle = context.fillStyle = colour ?? colours.soft;
    context.lineWidth = 1.7;
    context.beginPath();
    if (event.kind === RECEIVE) { context.moveTo(x, y - radius * 1.5); context.lineTo(x, y + radius * 1.5); context.stroke(); }
    else if (!isMessage(event)) { context.rect(x - radius, y - radius, 2 * radius, 2 * radius); context.fill(); }
    else {
      context.arc(x, y, radius, 0, 7);
      if (event.kind === DELIVER) { context.save(); context.fillStyle = colours.card; context.globalAlpha = 1; context.fill(); context.restore(); context.stroke(); }
      else context.fill();
    }
    context.globalAlpha = 1;
    if (state.awaited.has(event)) { context.setLineDash([2, 2]); context.lineWidth = 1.2; context.strokeStyle = colours.accent; context.beginPath(); context.arc(x, y, radius + 3, 0, 7); context.stroke(); context.setLineDash([]); }
    if (state.focus === event) { context.strokeStyle = colours.ink; context.lineWidth = 1.6; context.beginPath(); context.arc(x, y, radius + 5.5, 0, 7); context.stroke(); }
  };
  // Text with a rim in the colour of the ground, so that lines behind it do not cross it out.
  const write = (text, x, y) => {
    context.strokeStyle = colours.card;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  };
  const drawLabels = (radius) => {
    if (size.row < 24) return;
    context.font = `11px ${colours.font}`;
    context.textAlign = "center";
    model.all.forEach((row, r) => {
      const edges = [-Infinity, -Infinity];
      for (const event of row) {
        if (event.kind !== SEND && event.kind !== DELIVER) continue;
        const x = xOf(event);
        if (x < size.left + 6 || x > size.width - size.right) continue;
        const message = model.messageOf(event);
        const colour = tone(event, message);
        if (colour === null) continue;
        const below = event.kind === DELIVER ? 1 : 0;
        const width = context.measureText(message.key).width;
        if (x - width / 2 < edges[below] + 4) continue;
        edges[below] = x + width / 2;
        context.fillStyle = colour === colours.ink ? (below ? colours.faint : colours.soft) : colour;
        write(message.key, x, below ? yOf(r) + radius + 12 : yOf(r) - radius - 5);
      }
    });
  };
  const drawPackets = () => {
    context.font = `10px ${colours.font}`;
    context.textAlign = "center";
    model.packets.forEach((row, r) => {
      let edge = -Infinity;
      for (const event of row) {
        const x = xOf(event), y = yOf(r);
        if (x < size.left || x > size.width - size.right) continue;
        context.strokeStyle = colours.faint;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(x, y - 3);
        context.lineTo(x, y - 9);
        context.stroke();
        const name = event.word("packet") ?? "";
        const width = context.measureText(name).width;
        if (size.row >= 36 && x - width / 2 > edge + 4) { edge = x + width / 2; context.fillStyle = colours.faint; write(name, x, y - 12); }
      }
    });
  };
  const drawFrame = () => {
    const narrow = size.left < 60;
    context.font = `12px ${colours.font}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const every = Math.ceil(14 / size.row);
    model.members.forEach((member, row) => {
      const y = yOf(row);
      context.strokeStyle = colours.rule;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(size.left, y);
      context.lineTo(size.width - size.right, y);
      context.stroke();
      if (row % every === 0) { context.fillStyle = colours.soft; context.fillText(narrow ? `${member}` : `member ${member}`, size.left - 13, y); }
    });
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    context.font = `11px ${colours.font}`;
    const span = state.high - state.low;
    let step = 10 ** Math.floor(Math.log10(span / Math.max(plot() / 110, 1)));
    for (const factor of [1, 2, 5, 10]) if ((span / (step * factor)) * 110 <= plot()) { step *= factor; break; }
    if (state.mode === "step") step = Math.max(1, Math.round(step));
    for (let tick = Math.ceil(state.low / step) * step; tick <= state.high; tick += step) {
      if (state.mode === "step" && tick < 0) continue;
      const x = toX(tick);
      context.strokeStyle = colours.rule;
      context.lineWidth = 1;
      context.globalAlpha = 0.7;
      context.beginPath();
      context.moveTo(x, size.top - 6);
      context.lineTo(x, size.height - size.bottom + 2);
      context.stroke();
      context.globalAlpha = 1;
      context.fillStyle = colours.faint;
      if (x > size.left + 8) context.fillText(state.mode === "time" ? sayTime(Math.round(tick)) : `${tick}`, x, 17);
    }
    if (!narrow) { context.textAlign = "right"; context.fillText(state.mode === "time" ? "time" : "step", size.left - 13, 17); }
  };
  const drawOverview = () => {
    const [least, most] = domain();
    const y = size.height - 10, width = plot();
    const at = (number) => size.left + ((number - least) / (most - least)) * width;
    context.fillStyle = colours.wash;
    context.fillRect(size.left, y - 4, width, 8);
    context.fillStyle = colours.faint;
    context.globalAlpha = 0.55;
    context.fillRect(at(state.low), y - 4, Math.max(6, at(state.high) - at(state.low)), 8);
    context.globalAlpha = 1;
    const dot = (event, colour) => { context.fillStyle = colour; context.fillRect(at(value(event)) - 1, y - 5, 2.5, 10); };
    state.marked.forEach((event) => dot(event, colours.bad));
    if (state.chosen && state.chosen.send) dot(state.chosen.send, colours.accent);
  };
  const draw = () => {
    if (!size.width) return;
    context.clearRect(0, 0, size.width, size.height);
    context.save();
    drawFrame();
    context.beginPath();
    context.rect(size.left - 6, 0, size.width - size.left - size.right + 14, size.height - size.bottom + 8);
    context.clip();
    const radius = Math.max(1.8, Math.min(5, size.row * 0.16));
    drawHolds();
    drawArrows(radius);
    if (state.packets) drawPackets();
    for (const row of model.all) for (const event of row) drawEvent(event, radius);
    drawLabels(radius);
    context.restore();
    drawOverview();
  };

  // The event nearest to a place, in its row or any; null where none is within reach.
  const nearest = (x, y, reach = Infinity) => {
    let best = null, distance = reach;
    const rows = y === null ? model.all : [model.all[Math.floor((y - size.top) / size.row)] ?? []];
    for (const row of rows) for (const event of row) {
      const far = Math.abs(xOf(event) - x);
      if (far < distance) { best = event; distance = far; }
    }
    return best;
  };
  const messageAt = (x, y) => {
    let best = null, distance = 6;
    for (const message of model.order) {
      if (!message.send) continue;
      const x1 = xOf(message.send), y1 = yOf(message.send.row);
      for (const delivery of message.deliveries) {
        const end = message.receipts.get(delivery.process) || delivery;
        const x2 = xOf(end), y2 = yOf(end.row), long = (x2 - x1) ** 2 + (y2 - y1) ** 2;
        if (!long) continue;
        const share = Math.min(1, Math.max(0, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / long));
        const far = Math.hypot(x - x1 - share * (x2 - x1), y - y1 - share * (y2 - y1));
        if (far < distance) { best = delivery; distance = far; }
      }
    }
    return best;
  };
  readColours();
  spread();
  return { state, size, resize, draw, fit, show, zoom, pan, approach, reveal, setMode, nearest, messageAt, xOf, yOf, fromX, domain, plot, recolour: () => { readColours(); draw(); } };
};
