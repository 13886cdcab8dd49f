// One card a process: how it stands, how fast it is, and what only its kind has to say.
const SAYS_CONDITION = {
  joining: "is not in the group yet", running: "running", changing: "the next view is being agreed upon", blocked: "waits for a majority",
  unread: "its application does not read", ended: "has ended", failed: "has failed", missing: "does not answer",
};
const SAYS_RATE = { group: "delivered a second", client: "delivered a second", objects: "delivered a second", sequencer: "numbered a second", store: "committed a second" };
const drawCard = (process, newest, history, now) => {
  const condition = process.missing ? "missing" : process.condition ?? "running", { last } = process;
  const why = process.missing || process.why, rows = [];
  const row = (name, value, note, extra) => rows.push(make("dt", { class: extra ? "extra" : null }, name), make("dd", { class: extra ? "extra" : null }, value, note ? make("small", {}, note) : null));
  const kind = process.kind ?? "group", rated = kind === "group" || process.delivered !== null;
  if (rated) row(SAYS_RATE[kind] ?? "delivered a second", process.missing ? "–" : sayCount(last.delivered));
  if (kind === "group") {
    row("median latency", process.missing ? "–" : saySeconds(last.latency));
    row("sent, not delivered", process.missing ? "–" : sayCount(process.unsettled), null, true);
    row("delivered, not read yet", process.missing ? "–" : sayCount(process.queues?.inbox?.[0]), null, true);
    if (process.journal) row("in the journal", sayBytes(process.journal[1]), `${sayCount(process.journal[0])} batches`, true);
  }
  for (const [name, value, note] of process.tiles ?? []) row(name, typeof value === "number" ? sayCount(value) : value, note);
  const label = kind !== "group" ? kind : !process.view ? "" : newest && !newest.members.includes(process.name) ? `not in view ${newest.number}` : `view ${process.view}`;
  return make("article", { class: `card ${condition}`, "data-name": process.name, "data-condition": condition },
    make("h3", {}, process.name, make("small", {}, label)),
    make("p", { class: "state" }, why ? `${SAYS_CONDITION[condition]}: ${why}` : SAYS_CONDITION[condition]),
    rated ? sparkline(history.series(process.key, "delivered").fine, now) : null, make("dl", {}, ...rows));
};
const drawLinks = (processes) => {
  const rows = [];
  for (const process of processes) for (const [peer, connected, suspected, unread, bytes, silent] of process.missing ? [] : process.links ?? []) rows.push([process.name, peer, connected ? (suspected ? "suspected" : unread ? "its application does not read" : "up") : "down", bytes, silent, process.latencies?.[peer]]);
  if (!rows.length) return make("p", { class: "empty" }, "No links are known.");
  const order = (row) => (row[2] === "up" ? 0 : -1e12) - row[3];
  rows.sort((a, b) => order(a) - order(b));
  const body = rows.slice(0, 40).map(([from, to, state, bytes, silent, latency]) => make("tr", {}, make("td", {}, `${from} – ${to}`), make("td", { class: state === "up" ? "" : state === "down" ? "bad" : "unsure" }, state), make("td", { class: "number" }, sayBytes(bytes)), make("td", { class: "number" }, silent ? `${saySeconds(silent)} ago` : "now"), make("td", { class: "number" }, saySeconds(latency))));
  const head = ["link", "state", "unconfirmed", "last heard", "median latency from there"].map((text, i) => make("th", { scope: "col", class: i > 1 ? "number" : "" }, text));
  return make("div", { class: "scroll", tabindex: 0 }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)), rows.length > 40 ? make("p", { class: "empty" }, `and ${rows.length - 40} more links, which are up`) : "");
};
