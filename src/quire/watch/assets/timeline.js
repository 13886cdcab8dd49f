// Members and views over time: a bar where a member is in a view, and marks where something happened to it.
const BAD = ["lost", "excluded", "unreachable", "violated"], UNSURE = ["blocked", "unread", "stalled", "gap"];
const drawTimeline = ({ views, incidents, now, processes }) => {
  const names = [...new Set([...views.flatMap(({ members }) => members), ...(views.length ? processes.map(({ name }) => name) : [])])];
  if (!views.length) return make("p", { class: "empty" }, "The members of this group do not change.");
  const first = Math.min(...views.map(({ at }) => at)), from = Math.max(first - 2, now - DAY_S), row = names.length > 20 ? 13 : 24, top = 22;
  const shown = (name) => (name.length > 11 ? `${name.slice(0, 10)}…` : name), left = 18 + 7 * Math.max(...names.map((name) => shown(name).length)), width = Math.min(1180, find("timeline").clientWidth);
  const x = (at) => left + ((Math.max(at, from) - from) / Math.max(now - from, 1e-3)) * (width - left - 10);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${top + names.length * row + 22}`, role: "img", "aria-label": `Views of ${names.join(", ")}` });
  names.forEach((name, index) => {
    const y = top + index * row;
    if (row > 14 || index % 2 === 0) svg.append(draw("text", { x: left - 10, y: y + row / 2 + 4, "text-anchor": "end" }, shown(name)));
    svg.append(draw("line", { x1: left, x2: width - 10, y1: y + row / 2, y2: y + row / 2 }));
  });
  views.forEach(({ number, members, at }, index) => {
    const end = index + 1 < views.length ? views[index + 1].at : now, wide = Math.max(1, x(end) - x(at));
    for (const name of members) svg.append(draw("rect", { class: `in-view${number % 2 ? "" : " even"}`, x: x(at), y: top + names.indexOf(name) * row + 2, width: wide, height: row - 4, rx: 4 }, draw("title", {}, `view ${number}: ${members.join(", ")}`)));
    if (wide > 22) svg.append(draw("text", { class: "number", x: x(at) + 3, y: 14 }, wide > 60 ? `view ${number}` : number));
  });
  for (const { at, kind, text } of incidents) {
    const bad = BAD.includes(kind);
    if (at < from || (!bad && !UNSURE.includes(kind))) continue;
    const sign = draw("line", { class: `sign${bad ? "" : " unsure"}`, x1: x(at), x2: x(at), y1: top - 4, y2: top + names.length * row + 2 });
    sign.append(draw("title", {}, text));
    svg.append(sign);
  }
  svg.append(draw("text", { class: "tick", x: left, y: top + names.length * row + 16 }, sayClock(from)), draw("text", { class: "tick", x: width - 10, y: top + names.length * row + 16, "text-anchor": "end" }, `now, ${sayClock(now)}`));
  return svg;
};
