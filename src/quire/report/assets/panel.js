// What is said about the chosen messages, beside the picture.
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const CHIPS = 14;

const makePanel = (model, box, { choose, open }) => {
  const button = (text, act, className) => {
    const made = element("button", text, className);
    made.type = "button";
    made.addEventListener("click", act);
    return made;
  };
  const chips = (ranges, className) => {
    const list = element("span");
    for (const range of ranges.slice(0, CHIPS)) list.append(button(sayRange(range), () => choose(range), `chip ${className ?? ""}`));
    if (ranges.length > CHIPS) list.append(` and ${ranges.length - CHIPS} more`);
    return list;
  };
  const facts = (pairs) => {
    const list = element("dl");
    for (const [name, value] of pairs) {
      if (value === null || value === undefined) continue;
      list.append(element("dt", name));
      const said = element("dd");
      said.append(value);
      list.append(said);
    }
    return list;
  };
  const empty = () => {
    box.replaceChildren(
      element("h3", `${plural(model.counted, "message")} in this window`),
      element("p", "Click or tap a mark to select its messages, or use the arrow keys and Enter."),
      ...(model.members.length > 1 && model.members.length <= SENDERS ? [element("p", "Each colour is one sender.")] : []),
    );
  };
  // What was sent before the given ends of the logs, or from the given starts on; the chosen messages apart.
  const sentIn = (part, chosen) => {
    const found = [];
    for (const mark of model.logs.flat()) {
      if (mark.kind !== SEND || mark.process !== mark.origin) continue;
      const [from, to] = part(mark);
      const first = Math.max(mark.first, mark.first + from), last = Math.min(mark.last, mark.first + to - 1);
      if (first > last) continue;
      if (mark.origin !== chosen.origin || last < chosen.first || first > chosen.last) { found.push({ origin: mark.origin, first, last }); continue; }
      if (first < chosen.first) found.push({ origin: mark.origin, first, last: chosen.first - 1 });
      if (last > chosen.last) found.push({ origin: mark.origin, first: chosen.last + 1, last });
    }
    return found;
  };
  const since = (chosen, mark) => {
    const send = chosen.sends[0];
    if (!mark) return "";
    if (model.timed && send && send.time === send.until && mark.time === mark.until) return `+${sayTime(mark.time - send.time)}`;
    return sayWhen(mark, model);
  };
  const deliveries = (chosen, past) => {
    const table = element("table"), head = element("tr"), body = element("tbody");
    const names = ["member", ...(chosen.count > 1 ? ["messages"] : []), ...(model.receipts ? ["received"] : []), "delivered"];
    for (const name of names) head.append(element("th", name));
    table.append(element("thead"), body);
    table.tHead.append(head);
    const isPast = ({ origin, first, last }) => past.some((range) => range.origin === origin && range.first <= first && range.last >= last);
    for (const delivery of [...chosen.deliveries].sort((a, b) => a.row - b.row)) {
      const row = element("tr");
      row.append(element("td", `${delivery.process}`));
      if (chosen.count > 1) row.append(element("td", thousands(Math.min(delivery.last, chosen.last) - Math.max(delivery.first, chosen.first) + 1)));
      if (model.receipts) row.append(element("td", since(chosen, delivery.receipts[0])));
      row.append(element("td", since(chosen, delivery)));
      body.append(row);
      const awaited = model.meanwhile(delivery).filter((other) => other.origin !== chosen.origin || other.last < chosen.first || other.first > chosen.last);
      if (!awaited.length) continue;
      const line = element("tr"), cell = element("td", null, "awaited");
      cell.colSpan = names.length;
      const due = awaited.filter(isPast), others = awaited.filter((other) => !isPast(other));
      if (due.length) cell.append("waited for its causal past ", chips(due, "past"), " ");
      if (others.length) cell.append("delivered in the meantime ", chips(others));
      line.append(cell);
      body.append(line);
    }
    return table;
  };
  const sizeOf = ({ meanBytes, many }) => (many ? `${Number(meanBytes.toPrecision(3))} bytes on average` : `${meanBytes} bytes`);
  const show = (chosen, pastEnds, futureStarts) => {
    const title = element("h3", chosen.count > 1 ? `Messages ${sayRange(chosen)}` : `Message ${sayRange(chosen)}`);
    const close = button("×", () => choose(null));
    close.setAttribute("aria-label", "Clear the selection");
    title.append(close);
    const send = chosen.sends[0], some = send ?? chosen.deliveries[0] ?? chosen.marks[0];
    const before = sentIn((mark) => [0, pastEnds[mark.row] - mark.start], chosen).reverse();
    const after = sentIn((mark) => [futureStarts[mark.row] - mark.start, mark.count], chosen);
    box.replaceChildren(
      title,
      facts([
        ["sent by", sayMember(chosen.origin, model)],
        ["count", chosen.count > 1 ? thousands(chosen.count) : null],
        ["sent at", send ? sayWhen(send, model) : "before this window"],
        ["group", some.name("group")], ["object", some.name("object")], ["operation", some.name("op")], ["transaction", some.name("txn")],
        ["size", sizeOf(some)],
        ["causal past", before.length ? chips(before, "past") : "none in this window"],
        ["causal future", after.length ? chips(after, "future") : "none in this window"],
      ]),
      deliveries(chosen, before),
    );
    if (chosen.count > 1) box.append(button("Open this run", () => open(chosen), "open"));
    const delivered = chosen.deliveries.reduce((sum, mark) => sum + Math.min(mark.last, chosen.last) - Math.max(mark.first, chosen.first) + 1, 0);
    const missing = send && send.dests !== null ? send.dests * chosen.count - delivered : 0;
    if (missing > 0) box.append(element("p", `${thousands(missing)} of its deliveries ${missing === 1 ? "is" : "are"} not in this window, or never happened.`));
  };
  return { show, empty };
};
