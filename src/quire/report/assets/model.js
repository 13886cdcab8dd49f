// The window of the trace as objects, and the questions that the diagram asks of it.
const SEND = 0, DELIVER = 1, PACKET = 2, VIEW = 3, LOCAL = 4, RECEIVE = 5;
const VERBS = ["sent", "delivered", "put on the wire", "changed its view", "did", "received"];
const isMessage = (event) => event.kind === SEND || event.kind === DELIVER || event.kind === RECEIVE;

const buildModel = (trace) => {
  const rowOf = new Map(trace.members.map((member, row) => [member, row]));
  const word = (name, i) => {
    const column = trace.words[name];
    return column && column.of[i] >= 0 ? column.words[column.of[i]] : null;
  };
  const events = trace.process.map((process, i) => ({
    i, process, row: rowOf.get(process), kind: trace.kind[i], origin: trace.origin[i], seq: trace.seq[i], pos: trace.pos[i],
    time: trace.time ? trace.time[i] : null, lamport: trace.lamport ? trace.lamport[i] : null, step: trace.step[i],
    bytes: trace.bytes[i], dests: trace.dests[i], word: (name) => word(name, i),
  }));
  const messages = new Map();
  const logs = trace.members.map(() => []);     // what happened at each member, packets and receipts apart
  const all = trace.members.map(() => []);      // everything that can be pointed at
  const packets = trace.members.map(() => []);
  const messageOf = (event) => messages.get(`${event.origin}:${event.seq}`);
  for (const event of events) {
    if (event.kind === PACKET) { packets[event.row].push(event); continue; }
    all[event.row].push(event);
    if (event.kind !== RECEIVE) { event.place = logs[event.row].length; logs[event.row].push(event); }
    if (!isMessage(event)) continue;
    const key = `${event.origin}:${event.seq}`;
    if (!messages.has(key)) messages.set(key, { key, origin: event.origin, seq: event.seq, send: null, deliveries: [], receipts: new Map() });
    const message = messages.get(key);
    if (event.kind === SEND && event.process === event.origin && !message.send) message.send = event;
    else if (event.kind === DELIVER) message.deliveries.push(event);
    else if (event.kind === RECEIVE && !message.receipts.has(event.process)) message.receipts.set(event.process, event);
  }
  const order = [...messages.values()];

  // Everything reached from the starts by going one way: along each member's line, and between a send and its deliveries.
  const reach = (starts, next) => {
    const seen = new Set(starts);
    const todo = [...starts];
    while (todo.length) for (const event of next(todo.pop())) if (!seen.has(event)) { seen.add(event); todo.push(event); }
    return seen;
  };
  const before = (event) => {
    const found = event.place > 0 ? [logs[event.row][event.place - 1]] : [];
    const message = event.kind === DELIVER ? messageOf(event) : null;
    if (message && message.send) found.push(message.send);
    return found;
  };
  const after = (event) => {
    const found = event.place + 1 < logs[event.row].length ? [logs[event.row][event.place + 1]] : [];
    if (event.kind === SEND && messageOf(event).send === event) found.push(...messageOf(event).deliveries);
    return found;
  };
  const past = (message) => {
    const found = message.send ? reach([message.send], before) : new Set();
    found.delete(message.send);
    return found;
  };
  const future = (message) => {
    const starts = message.send ? [message.send] : message.deliveries;
    const found = reach(starts, after);
    starts.forEach((event) => found.delete(event));
    message.deliveries.forEach((event) => found.delete(event));
    return found;
  };
  // What a member delivered between the receipt of a message, or its sending where receipts are not recorded, and its delivery.
  const meanwhile = (delivery) => {
    const message = messageOf(delivery);
    const receipt = message.receipts.get(delivery.process);
    const start = receipt || message.send;
    if (!start) return [];
    const earlier = logs[delivery.row].slice(0, delivery.place).filter((event) => event.kind === DELIVER);
    if (receipt) return earlier.filter((event) => event.pos > receipt.pos);
    if (start.process === delivery.process) return earlier.filter((event) => event.pos > start.pos);
    if (start.time !== null) return earlier.filter((event) => event.time > start.time);
    return earlier.filter((event) => event.step > start.step);
  };
  return {
    trace, events, messages, order, logs, all, packets, members: trace.members, messageOf, past, future, meanwhile,
    timed: Boolean(trace.time), receipts: events.some((event) => event.kind === RECEIVE),
  };
};

const sayTime = (nanoseconds) => {
  const size = Math.abs(nanoseconds);
  const [scale, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${Number((nanoseconds / scale).toPrecision(4))} ${unit}`;
};
const sayEvent = (event, model) => {
  const what = isMessage(event) ? `${event.origin}:${event.seq}` : event.word(event.kind === PACKET ? "packet" : "op") ?? (event.kind === LOCAL ? "something" : "");
  const when = model.timed ? ` at ${sayTime(event.time)}` : "";
  return `member ${event.process} ${VERBS[event.kind]} ${what}${when}`;
};
