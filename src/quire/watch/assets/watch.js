// What the server sends becomes the page: every part is drawn anew from the last that came, and nothing else is kept but numbers.
const history = makeHistory();
let day = false, last = null, diagram = null, paused = false;
const SIGNS = { holds: "✓", violated: "✗", undecided: "?" };
const SAYS_VERDICT = { holds: "Everything expected holds so far", violated: "Violated", undecided: "No verdict yet" };

const drawVerdict = (verdict) => {
  if (!verdict) return [make("p", { class: "empty" }, "No verdict: nobody judges here.")];
  const broken = verdict.checks.filter((check) => check.verdict === "violated" && check.expected).map(({ name }) => name);
  const headline = verdict.verdict === "undecided" ? `No verdict yet: ${verdict.why}` : verdict.verdict === "violated" ? `Violated: ${broken.join(", ")}` : SAYS_VERDICT.holds;
  const judged = `${verdict.messages.toLocaleString("en-US")} messages and ${verdict.deliveries.toLocaleString("en-US")} deliveries were judged${verdict.since ? ` since ${sayClock(verdict.since)}` : ""}; ${verdict.lag_s > 0.05 ? `judging is ${saySeconds(verdict.lag_s)} behind` : "nothing waits to be judged"}.`;
  const checks = verdict.checks.map(({ name, expected, verdict: says, count, because }) => make("article", { class: `check${expected ? "" : " unexpected"}`, "data-check": name, "data-verdict": says },
    make("p", { class: "check-head" }, make("b", {}, name), make("span", { class: `badge ${says}` }, `${SIGNS[says]} ${says}${count ? ` ${count.toLocaleString("en-US")} ×` : ""}`), expected ? null : make("span", { class: "aside" }, "not expected")),
    make("p", { class: "because" }, says === "undecided" ? "" : `${because.slice(0, 1).toUpperCase()}${because.slice(1)}.`)));
  return [make("p", { class: `banner ${verdict.verdict}` }, make("span", { class: "sign-big", "aria-hidden": "true" }, SIGNS[verdict.verdict]), headline), make("p", { class: "lead" }, judged), make("div", { class: "checks" }, ...checks)];
};
const drawCharts = () => {
  const shown = last.processes.filter(({ kind }) => kind === undefined || kind === "group" || kind === "client");
  find("charts").replaceChildren(...Object.keys(MEASURES).map((measure) => drawChart(measure, shown, history, last.now, day)));
  const key = drawKey(shown);
  if (key) find("charts").append(key);
};
const drawDiagram = (trace) => {
  find("space-time").hidden = !trace;
  if (!trace || paused) return;
  if (diagram === null) {
    diagram = startDiagram({ trace, witnesses: {}, chosen: null });
    find("axis").click();
    diagram.replace(trace);
    return;
  }
  const moves = diagram.replace(trace);
  find("diagram-lead").textContent = moves ? `The last ${saySeconds(trace.span)} of events, as they come. Select a message, and it stands still.` : "It stands still while something is selected. Press Escape to let it move on.";
};
const show = (id, made) => find(id).replaceChildren(...(Array.isArray(made) ? made : [made]));
const update = (now) => {
  last = now;
  for (const process of now.processes) for (const [measure, value] of Object.entries(process.last)) history.add(process.key, measure, now.now, process.missing && measure === "delivered" ? 0 : value);
  if (!document.hidden) render(now);
};
const render = (now) => {
  document.title = `${now.title.group} · Quire watches`;
  show("title", document.createTextNode(now.title.group));
  const views = now.processes.map(({ view }) => view).filter(Boolean), view = views.length ? Math.max(...views) : null;
  const facts = [now.title.protocol, plural(now.processes.length, "process").replace("processs", "processes"), view ? `view ${view}` : null, `watched since ${sayClock(now.began)}`].filter(Boolean);
  show("facts", facts.map((fact) => make("li", {}, fact)));
  show("verdict-body", drawVerdict(now.verdict));
  show("incidents", now.incidents.length ? now.incidents.map(({ at, kind, text }) => make("li", {}, make("time", {}, sayClock(at)), make("span", { class: kind }, text))) : [make("li", {}, make("time", {}, "–"), "Nothing out of the ordinary.")]);
  find("cards").classList.toggle("many", now.processes.length > 12);
  show("cards", now.processes.map((process) => drawCard(process, history, now.now)));
  show("waits", drawWaits(now.processes, now.waits));
  show("timeline", drawTimeline(now));
  show("links-body", drawLinks(now.processes));
  drawCharts();
  drawDiagram(now.trace);
};
const setSpan = (wanted) => {
  day = wanted;
  find("span-day").setAttribute("aria-pressed", String(day));
  find("span-minutes").setAttribute("aria-pressed", String(!day));
  if (last) drawCharts();
};
find("span-day").addEventListener("click", () => setSpan(true));
find("span-minutes").addEventListener("click", () => setSpan(false));
const pause = find("pause");
const setPaused = (wanted) => { paused = wanted; pause.textContent = paused ? "Move on" : "Pause"; pause.setAttribute("aria-pressed", String(paused)); };
pause.addEventListener("click", () => setPaused(!paused));
document.addEventListener("keydown", (event) => { if (event.key === " " && event.target === document.body) { event.preventDefault(); setPaused(!paused); } });
themeListeners.push(() => { if (last) render(last); });
document.addEventListener("visibilitychange", () => { if (last && !document.hidden) render(last); });

const connection = find("connection");
const say = (text, state) => { connection.textContent = text; connection.className = `connection ${state}`; };
const listen = async () => {
  const events = new EventSource("now");
  events.addEventListener("message", (event) => { say("Live", "live"); update(JSON.parse(event.data)); });
  events.addEventListener("error", () => say("quire watch does not answer; it is tried again.", "lost"));
};
fetch("history").then((answer) => answer.json()).then((found) => { history.load(found); }).catch(() => {}).finally(listen);
