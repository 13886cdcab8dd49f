// Numbers over time, kept as the server keeps them: fine for minutes, coarse for a day, and never more.
const FINE = 600, COARSE = 1440, SPAN_S = 300, LEAST_SPAN_S = 60, DAY_S = 86400;
const MEASURES = {
  delivered: ["Messages delivered a second", sayCount], latency: ["From sending to delivery, median", saySeconds],
  unread: ["Delivered, not read by the application", sayCount], unsettled: ["Sent, not delivered yet", sayCount],
};
const makeHistory = () => {
  const kept = new Map();
  const series = (key, measure) => {
    const name = `${key}\n${measure}`;
    if (!kept.has(name)) kept.set(name, { fine: [], coarse: [] });
    return kept.get(name);
  };
  const load = (history) => {
    kept.clear();
    for (const [key, measures] of Object.entries(history)) for (const [measure, points] of Object.entries(measures)) Object.assign(series(key, measure), points);
  };
  const add = (key, measure, at, value) => {
    if (value === null || value === undefined) return;
    const { fine, coarse } = series(key, measure), minute = at - (at % 60);
    fine.push([at, value]);
    if (fine.length > FINE) fine.shift();
    const last = coarse[coarse.length - 1];
    if (last && last[0] === minute) last[1] = Math.max(last[1], value); else coarse.push([minute, value]);
    if (coarse.length > COARSE) coarse.shift();
  };
  return { load, add, series, size: () => [...kept.values()].reduce((sum, { fine, coarse }) => sum + fine.length + coarse.length, 0) };
};
const niceTop = (value) => {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * unit).find((top) => top >= value);
};
// More points than a chart is wide cannot be seen: of those that fall together, the largest is drawn.
const thinned = (points, most) => {
  const step = Math.ceil(points.length / most);
  if (step <= 1) return points;
  const kept = [];
  for (let i = 0; i < points.length; i += step) kept.push(points.slice(i, i + step).reduce((top, point) => (point[1] > top[1] ? point : top)));
  return kept;
};
const pathOf = (points, x, y) => points.map(([at, value], i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
const sparkline = (points, now) => {
  const recent = points.filter(([at]) => at > now - 60), top = Math.max(...recent.map(([, value]) => value), 1e-9);
  const x = (at) => ((at - now + 60) / 60) * 200, y = (value) => 31 - (value / top) * 28;
  const svg = draw("svg", { viewBox: "0 0 200 34", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (recent.length > 1) {
    const path = pathOf(recent, x, y);
    svg.append(draw("path", { class: "spark-area", d: `${path}L${x(recent[recent.length - 1][0])} 34L${x(recent[0][0])} 34Z` }), draw("path", { class: "spark", d: path }));
  }
  return svg;
};
const drawChart = (measure, processes, history, now, day) => {
  const [title, say] = MEASURES[measure], width = Math.min(560, innerWidth - 40), height = 170, left = 58, bottom = 22, top = 10, most_points = processes.length > COLOUR_COUNT ? 120 : 280;
  // The first minutes fill the width, too.
  const oldest = Math.min(now, ...processes.map(({ key }) => history.series(key, "delivered").fine[0]?.[0] ?? now));
  const span = day ? DAY_S : Math.min(SPAN_S, Math.max(LEAST_SPAN_S, now - oldest));
  const said = (share) => (day ? `${24 * share} h` : span === SPAN_S ? `${5 * share} min` : `${Math.round(span * share)} s`);
  const lines = processes.map(({ key, name }, index) => ({ name, index, points: thinned(history.series(key, measure)[day ? "coarse" : "fine"].filter(([at]) => at > now - span), most_points) }));
  const most = niceTop(Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value))));
  const x = (at) => left + ((at - now + span) / span) * (width - left - 8), y = (value) => height - bottom - (value / most) * (height - bottom - top);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const share of [0, 0.5, 1]) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - 8, y1: y(most * share), y2: y(most * share) }));
    svg.append(draw("text", { x: left - 8, y: y(most * share) + 4, "text-anchor": "end" }, share ? say(most * share) : "0"));
  }
  for (const [share, text] of [[0, `${said(1)} ago`], [0.5, said(0.5)], [1, "now"]]) svg.append(draw("text", { x: left + share * (width - left - 8), y: height - 6, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, text));
  for (const { points, index } of lines) if (points.length > 1) svg.append(draw("path", { class: `line ${colourClass(index, lines.length) || "rest"}`, stroke: lines.length <= COLOUR_COUNT ? "currentColor" : "", d: pathOf(points, x, y) }));
  const last = lines.map(({ points }) => points[points.length - 1]?.[1]).filter((value) => value !== undefined);
  const [least, largest] = [Math.min(...last), Math.max(...last)].map(say);
  return make("div", { class: "chart" }, make("h3", {}, title, make("small", {}, last.length ? `now ${least}${largest === least ? "" : ` to ${largest}`}` : "nothing yet")), svg);
};
const drawKey = (processes) => (processes.length > COLOUR_COUNT ? null : make("ul", { class: "key" }, ...processes.map(({ name }, index) => {
  const swatch = draw("svg", { class: `swatch ${colourClass(index, processes.length)}`, viewBox: "0 0 14 14" }, draw("rect", { width: 14, height: 14, rx: 3, fill: "currentColor" }));
  return make("li", {}, swatch, name);
})));
