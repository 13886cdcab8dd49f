// What the server sends becomes the page: every part is drawn anew from the last that came, and nothing else is kept but numbers.
const history = makeHistory();
let day = false, last = null, diagram = null, paused = false;
const drawIncidents = (incidents) => (incidents.length ? incidents.map(({ at, kind, text }) => make("li", {}, make("time", {}, sayClock(at)), make("span", { class: kind }, text))) : make("li", {}, make("time", {}, "–"), "Nothing out of the ordinary."));
const drawCharts = () => {
  if (!last) return;
  const shown = last.processes.filter(({ kind }) => kind === undefined || kind === "group" || kind === "client");
  find("charts").replaceChildren(...Object.keys(MEASURES).map((measure) => drawChart(measure, shown, history, last.now, day)));
  const key = drawKey(shown);
  if (key) find("charts").append(key);
};
const drawDiagram = (trace) => {
  if (diagram === null) {
    diagram = startDiagram({ trace, witnesses: {}, chosen: null });
    find("axis").click();
    diagram.replace(trace);
    return;
  }
  const moves = diagram.replace(trace);
  find("diagram-lead").textContent = moves ? `The last ${saySeconds(trace.span)} of events, as they come. Select a message, and it stands still.` : "It stands still while something is selected. Press Escape to let it move on.";
};
// The diagram is the largest part of what comes and of what is drawn, so it is asked for only where it is drawn.
const diagramPace = makePace();
let asking = false;
const moveDiagram = async () => {
  if (!last?.diagram || paused || asking || !diagramPace.isDue()) return;
  asking = true;
  try {
    const trace = await (await fetch("diagram")).json();
    if (trace && !paused) diagramPace.spend(() => drawDiagram(trace));
  } catch { /* The connection says so. */ } finally { asking = false; }
};
// What a part shows is made anew only when it changes: browsers lay out, paint and read aloud whatever is replaced.
const shownBefore = new Map();
const show = (id, act, ...given) => {
  const key = JSON.stringify(given);
  if (shownBefore.get(id) === key) return;
  shownBefore.set(id, key);
  const made = act(...given);
  find(id).replaceChildren(...(Array.isArray(made) ? made : [made]));
};
const NAMES_SAID = 8;
const sayNewest = ({ number, members }) => `view ${number}: ${members.length > NAMES_SAID ? plural(members.length, "member") : members.join(", ")}`;
const update = (now) => {
  last = now;
  for (const process of now.processes) for (const [measure, value] of Object.entries(process.last)) history.add(process.key, measure, now.now, process.missing && measure === "delivered" ? 0 : value);
  if (!document.hidden) render(now);
};
const render = (now) => {
  document.title = `${now.title.group} · Quire watches`;
  show("title", String, now.title.group);
  const newest = now.views[now.views.length - 1];
  const facts = [now.title.protocol, plural(now.processes.length, "process").replace("processs", "processes"), newest ? sayNewest(newest) : null, `watched since ${sayClock(now.began)}`].filter(Boolean);
  show("facts", () => facts.map((fact) => make("li", {}, fact)), facts);
  const checks = now.verdict?.checks ?? [];
  show("headline", drawHeadline, now.verdict && { verdict: now.verdict.verdict, why: now.verdict.why, checks });
  show("judged", sayJudged, now.verdict);
  show("checks", (each) => each.map(drawCheck), checks);
  show("incidents", drawIncidents, now.incidents);
  find("cards").classList.toggle("many", now.processes.length > 12);
  find("cards").replaceChildren(...now.processes.map((process) => drawCard(process, newest, history, now.now)));
  show("waits", drawWaits, now.processes.map(({ name }) => name), now.waits);
  find("space-time").hidden = !now.diagram;
  showTimeline();
  showLinks();
  drawPictures();
};
// These two are shown whenever something happens, and move on only while they are in sight.
const movesOn = (section) => inSight.has(section) && last.now;
const showTimeline = () => last && show("timeline", () => drawTimeline(last), last.views, last.incidents, movesOn("views"));
const showLinks = () => last && show("links-body", () => drawLinks(last.processes), last.processes.map(({ missing, links }) => !missing && links?.map(([peer, ...states]) => [peer, states.slice(0, 3)])), movesOn("links"));
addPicture("views", showTimeline);
addPicture("links", showLinks);
addPicture("numbers", drawCharts);
addPicture("space-time", moveDiagram);
const setSpan = (wanted) => {
  day = wanted;
  find("span-day").setAttribute("aria-pressed", String(day));
  find("span-minutes").setAttribute("aria-pressed", String(!day));
  drawCharts();
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
