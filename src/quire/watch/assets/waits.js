// Who waits for whom: an arrow from whoever waits to whoever is waited for, and the reason in words.
const drawWaits = (members, waits) => {
  if (!waits.length) return make("p", { class: "empty" }, "Nobody waits for anybody: nothing is held back for longer than a second.");
  const names = [...new Set([...members, ...waits.flatMap(({ from, to }) => [from, to])])];
  const shown = names.length > 12 ? names.filter((name) => waits.some(({ from, to }) => from === name || to === name)).slice(0, 16) : names;
  const size = 320, middle = size / 2, radius = shown.length === 1 ? 0 : 112, node = 24;
  const at = new Map(shown.map((name, i) => { const angle = (i / shown.length) * 2 * Math.PI - Math.PI / 2; return [name, [middle + radius * Math.cos(angle), middle + radius * Math.sin(angle)]]; }));
  const svg = draw("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": waits.map(({ from, to }) => `${from} waits for ${to}`).join(", ") });
  const blamed = new Set(waits.map(({ to }) => to));
  for (const { from, to } of waits) {
    if (!at.has(from) || !at.has(to)) continue;
    const [x1, y1] = at.get(from), [x2, y2] = at.get(to);
    if (from === to) { svg.append(draw("path", { d: `M${x1 - 12} ${y1 - 21}C${x1 - 30} ${y1 - 62} ${x1 + 30} ${y1 - 62} ${x1 + 12} ${y1 - 21}` })); continue; }
    const length = Math.hypot(x2 - x1, y2 - y1), ux = (x2 - x1) / length, uy = (y2 - y1) / length, side = 5;
    const tip = [x2 - ux * (node + 3) - uy * side, y2 - uy * (node + 3) + ux * side], start = [x1 + ux * node - uy * side, y1 + uy * node + ux * side];
    svg.append(draw("line", { x1: start[0], y1: start[1], x2: tip[0] - ux * 7, y2: tip[1] - uy * 7 }));
    svg.append(draw("polygon", { points: [[0, 0], [-10, 4.5], [-10, -4.5]].map(([along, across]) => `${tip[0] + ux * along - uy * across},${tip[1] + uy * along + ux * across}`).join(" ") }));
  }
  for (const [name, [x, y]] of at) svg.append(draw("circle", { cx: x, cy: y, r: node, class: blamed.has(name) ? "blamed" : "" }), draw("text", { x, y }, name.length > 6 ? `${name.slice(0, 5)}…` : name));
  const list = make("ul", {}, ...waits.slice(0, 12).map(({ from, to, because, count }) => make("li", {}, make("b", {}, from === to ? `${from} waits for its own application` : `${from} waits for ${to}`), make("span", {}, `: ${because}${count > 1 ? ` (${sayCount(count)} messages)` : ""}`))));
  return make("div", { class: "waits" }, svg, list);
};
