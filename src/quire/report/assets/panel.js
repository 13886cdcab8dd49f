// What is said about the chosen message, beside the picture.
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const CHIPS = 14;

const makePanel = (model, board, choose) => {
  const chips = (messages, className) => {
    const box = element("span");
    for (const message of messages.slice(0, CHIPS)) {
      const chip = element("button", message.key, `chip ${className ?? ""}`);
      chip.type = "button";
      chip.addEventListener("click", () => choose(message));
      box.append(chip);
    }
    if (messages.length > CHIPS) box.append(` and ${messages.length - CHIPS} more`);
    return box;
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
    const counted = model.order.length;
    board.replaceChildren(
      element("h3", `${counted} message${counted === 1 ? "" : "s"} in sight`),
      element("p", "Choose one: click it, tap it, or move with the arrow keys and press Enter."),
    );
  };
  const sendersOf = (events) => {
    const found = new Map();
    for (const event of events) if (event.kind === SEND) { const message = model.messageOf(event); if (message.send === event) found.set(message.key, message); }
    return [...found.values()];
  };
  const since = (message, event) => {
    if (!event) return "";
    if (model.timed && message.send) return `+${sayTime(event.time - message.send.time)}`;
    return model.timed ? sayTime(event.time) : `step ${event.step}`;
  };
  const deliveries = (message, past) => {
    const table = element("table");
    const head = element("tr");
    for (const name of ["member", ...(model.receipts ? ["received"] : []), "delivered"]) head.append(element("th", name));
    table.append(element("thead"));
    table.tHead.append(head);
    const body = element("tbody");
    for (const delivery of [...message.deliveries].sort((a, b) => a.row - b.row)) {
      const row = element("tr");
      row.append(element("td", `${delivery.process}`));
      if (model.receipts) row.append(element("td", since(message, message.receipts.get(delivery.process))));
      row.append(element("td", since(message, delivery)));
      body.append(row);
      const awaited = model.meanwhile(delivery).map((event) => model.messageOf(event)).filter((other) => other !== message);
      if (awaited.length) {
        const line = element("tr"), cell = element("td", null, "awaited");
        cell.colSpan = 3;
        const due = awaited.filter((other) => other.send && past.has(other.send));
        const others = awaited.filter((other) => !due.includes(other));
        if (due.length) cell.append("waited for its past ", chips(due, "past"), " ");
        if (others.length) cell.append("delivered meanwhile ", chips(others));
        line.append(cell);
        body.append(line);
      }
    }
    table.append(body);
    return table;
  };
  const show = (message, past, future) => {
    const title = element("h3", `Message ${message.key}`);
    const close = element("button", "×");
    close.type = "button";
    close.setAttribute("aria-label", "Choose nothing");
    close.addEventListener("click", () => choose(null));
    title.append(close);
    const send = message.send;
    const before = sendersOf(past), after = sendersOf(future);
    const missing = send && send.dests !== null ? send.dests - message.deliveries.length : 0;
    const some = send ?? message.deliveries[0];
    board.replaceChildren(
      title,
      facts([
        ["sent by", `member ${message.origin}`],
        ["at", send ? (model.timed ? sayTime(send.time) : `step ${send.step}`) : "before this window"],
        ["group", some && some.word("group")], ["object", some && some.word("object")], ["operation", some && some.word("op")], ["transaction", some && some.word("txn")],
        ["size", some ? `${some.bytes} bytes` : null],
        ["past", before.length ? chips(before.reverse(), "past") : "nothing in sight"],
        ["future", after.length ? chips(after, "future") : "nothing in sight"],
      ]),
      deliveries(message, past),
    );
    if (missing > 0) board.append(element("p", `${missing} of its deliveries ${missing === 1 ? "is" : "are"} not in this window, or never happened.`));
  };
  return { show, empty };
};
