// Where marks stand: by order, in columns that are as wide as what is in them, or by time. And which part of that is in sight.
const NEAR = 26;   // pixels for a column of single events, so near that they can be told apart
const CROWDED = 1.2;   // how much nearer than that marks may come if everything is in sight then
const CANDIDATES = 2000;
const COUNT_WIDTH = 0.29, COUNT_MARGIN = 1.15;
const countText = (mark) => `${thousands(mark.count)}${mark.cut ? "+" : ""}`;

const makeLayout = (model) => {
  const layout = { mode: "step", low: 0, high: 1, width: 0, left: 0, right: 14, columns: [] };

  const widthOf = (mark) => (mark.count > 1 ? COUNT_MARGIN + COUNT_WIDTH * countText(mark).length : 1);
  const widthsOf = (marks) => marks.reduce((sum, mark) => sum + widthOf(mark), 0);
  // Marks of one step stand in one column; the parts of an opened mark share its column, side by side.
  const arrangeByOrder = () => {
    const opened = new Map();
    for (const mark of model.all.flat()) if (mark.index === 0) opened.set(mark.whole, [mark]); else opened.get(mark.whole).push(mark);
    const widths = [];
    for (const [whole, parts] of opened) widths[whole.step] = Math.max(widths[whole.step] ?? 1, widthsOf(parts));
    let edge = 0;
    layout.columns = Array.from(widths, (width = 1) => { edge += width; return edge - width / 2; });
    for (const [whole, parts] of opened) {
      const needed = widthsOf(parts);
      let begun = layout.columns[whole.step] - widths[whole.step] / 2;
      for (const part of parts) { const width = (widthOf(part) / needed) * widths[whole.step]; part.slot = begun + width / 2; begun += width; }
    }
  };
  // Packets stand between the marks before and after them.
  const arrangePackets = () => model.packets.forEach((packets, row) => {
    const marks = model.all[row].filter((mark) => mark.kind !== RECEIVE);
    let next = 0, run = [];
    const settle = () => {
      const left = next > 0 ? marks[next - 1].slot : (marks[0]?.slot ?? 1) - 1, right = next < marks.length ? marks[next].slot : left + 1;
      run.forEach((packet, i) => { packet.slot = left + ((i + 1) / (run.length + 1)) * (right - left); });
      run = [];
    };
    for (const packet of packets) {
      if (next < marks.length && marks[next].pos < packet.pos) { settle(); while (next < marks.length && marks[next].pos < packet.pos) next += 1; }
      run.push(packet);
    }
    settle();
  });
  // Marks of a member at the same instant stand side by side.
  const spread = () => {
    for (const row of model.all) {
      let last = null, count = 0;
      for (const mark of row) {
        count = last !== null && value(mark) === last ? count + 1 : 0;
        last = value(mark);
        mark.shift = layout.mode === "time" ? Math.min(count, 12) : 0;
      }
    }
  };
  const value = (mark) => (layout.mode === "step" ? mark.slot : mark.until === undefined ? mark.time : (mark.time + mark.until) / 2);
  const arrange = () => { arrangeByOrder(); arrangePackets(); spread(); };

  const domain = () => {
    let low = Infinity, high = -Infinity;
    for (const row of model.all) for (const mark of row) { low = Math.min(low, value(mark)); high = Math.max(high, value(mark)); }
    if (low === Infinity) return [0, 1];
    const margin = layout.mode === "time" ? (high - low) * 0.01 + 1 : 1.4;
    return [low - margin, high + margin];
  };
  const plot = () => Math.max(1, layout.width - layout.left - layout.right);
  const toX = (number) => layout.left + ((number - layout.low) / (layout.high - layout.low)) * plot();
  const fromX = (x) => layout.low + ((x - layout.left) / plot()) * (layout.high - layout.low);
  const xOf = (mark) => toX(value(mark)) + (mark.shift ?? 0) * 9;
  const isInSight = (x) => x >= layout.left && x <= layout.width - layout.right;

  const show = (low, high) => {
    const [least, most] = domain();
    const smallest = layout.mode === "time" ? (most - least) / 2e5 : 3;
    const width = Math.min(Math.max(high - low, Math.min(smallest, most - least)), most - least);
    layout.low = Math.min(Math.max((low + high) / 2 - width / 2, least), most - width);
    layout.high = layout.low + width;
  };
  const fit = () => show(...domain());
  const zoom = (factor, x) => {
    const centre = x === undefined ? (layout.low + layout.high) / 2 : fromX(x);
    show(centre - (centre - layout.low) * factor, centre + (layout.high - centre) * factor);
  };
  const pan = (pixels) => {
    const by = (pixels / plot()) * (layout.high - layout.low);
    show(layout.low + by, layout.high + by);
  };
  // So near that the marks of the busiest member can be told apart, around a mark or at the start.
  const approach = (mark) => {
    const [least, most] = domain();
    const busiest = Math.max(1, ...model.all.map(widthsOf));
    const width = layout.mode === "step" ? plot() / NEAR : (most - least) * Math.min(1, plot() / NEAR / busiest);
    const centre = mark ? value(mark) : least + width / 2;
    show(centre - width / 2, centre + width / 2);
  };
  // The first picture is everything, if that is hardly more than fits, or the start. Where the start has few arrows from one
  // member to another, it is where most of them are.
  const showFirst = () => {
    approach();
    const [least, most] = domain(), width = layout.high - layout.low;
    if (most - least <= width * CROWDED) { fit(); return; }
    const arrows = model.arrows.filter((arrow) => arrow.from).map((arrow) => [value(arrow.from), value(arrow.to)].sort((a, b) => a - b));
    arrows.sort((a, b) => a[0] - b[0]);
    const within = (low, from) => {
      let count = 0;
      for (let i = from; i < arrows.length && arrows[i][0] <= low + width; i += 1) if (arrows[i][0] >= low && arrows[i][1] <= low + width) count += 1;
      return count;
    };
    if (!arrows.length || within(layout.low, 0) >= model.members.length) return;
    let best = layout.low, found = within(layout.low, 0);
    arrows.slice(0, CANDIDATES).forEach(([low], i) => { const count = within(low - 1, i); if (count > found) { best = low - 1; found = count; } });
    if (found) show(best, best + width);
    else show(arrows[0][0] - 1, arrows[0][1] + 1);
  };
  const showAll = (marks) => {
    const values = marks.map(value);
    const low = Math.min(...values), high = Math.max(...values);
    const width = Math.max(layout.high - layout.low, (high - low) * 1.3);
    show((low + high - width) / 2, (low + high + width) / 2);
  };
  const reveal = (mark) => {
    const x = xOf(mark), half = (layout.high - layout.low) / 2;
    if (x < layout.left + 20 || x > layout.width - layout.right - 20) show(value(mark) - half, value(mark) + half);
  };
  const setMode = (mode, centre) => { layout.mode = mode; spread(); approach(centre); };
  return Object.assign(layout, { arrange, domain, plot, toX, fromX, xOf, isInSight, value, show, fit, zoom, pan, approach, showFirst, showAll, reveal, setMode });
};
