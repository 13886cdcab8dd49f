// The window of the trace as marks, and the questions that the diagram asks of them. A mark is one event, or the same event of
// several messages in a row. Opening a mark cuts it, wherever it is drawn, into marks with fewer messages.
const SEND = 0, DELIVER = 1, VIEW = 3, LOCAL = 4, RECEIVE = 5;
const VERBS = { [SEND]: "sent", [DELIVER]: "delivered", [VIEW]: "changed its view", [LOCAL]: "did", [RECEIVE]: "received" };
const isMessage = (mark) => mark.kind === SEND || mark.kind === DELIVER || mark.kind === RECEIVE;

const buildModel = (trace) => {
  const rowOf = new Map(trace.members.map((member, row) => [member, row]));
  const nameIn = (column, i) => (column && column.of[i] >= 0 ? column.names[column.of[i]] : null);
  const incidents = buildHappenings(trace);
  const wholes = trace.process.map((process, i) => ({
    process, row: rowOf.get(process), kind: trace.kind[i], origin: trace.origin[i], pos: trace.pos[i], lastPos: trace.last_pos[i],
    first: trace.seq[i], last: trace.seq[i] + trace.count[i] - 1, count: trace.count[i], cut: trace.cut[i],
    time: trace.time ? trace.time[i] : null, until: trace.until ? trace.until[i] : null, offsets: trace.offsets[i] ?? null,
    step: trace.step[i], meanBytes: trace.bytes[i] / trace.count[i], many: trace.count[i] > 1, dests: trace.dests[i],
    name: (column) => nameIn(trace.names[column], i),
  })).map((mark) => ({ ...mark, incident: mark.kind === VIEW ? incidents.at(mark) : null })).sort((a, b) => a.row - b.row || a.pos - b.pos);
  const packets = trace.members.map(() => []);
  trace.packets.process.forEach((process, i) => packets[rowOf.get(process)].push({
    process, row: rowOf.get(process), pos: trace.packets.pos[i], time: trace.packets.time ? trace.packets.time[i] : null,
    name: nameIn(trace.packets.name, i) ?? "",
  }));

  const model = {
    members: trace.members, hosts: trace.hosts, packets, timed: Boolean(trace.time), receipts: wholes.some((mark) => mark.kind === RECEIVE),
    cuts: new Map(), alone: null, incidents,
  };

  // A part of a mark knows its own times where the page has them, and otherwise those between which it must lie.
  const part = (mark, first, last, index, parts) => {
    if (parts === 1) return { ...mark, whole: mark, index, parts };
    const at = (seq) => mark.time + mark.offsets[seq - mark.first];
    const times = mark.offsets ? { time: at(first), until: at(last) } : {};
    return { ...mark, ...times, first, last, count: last - first + 1, cut: false, offsets: null, whole: mark, index, parts };
  };
  const split = (mark) => {
    const cuts = new Set(mark.count > 1 ? model.cuts.get(mark.origin) : []);
    if (model.alone && model.alone.origin === mark.origin) cuts.add(model.alone.seq).add(model.alone.seq + 1);
    const inside = [...cuts].filter((seq) => seq > mark.first && seq <= mark.last).sort((a, b) => a - b);
    const edges = [mark.first, ...inside, mark.last + 1];
    return edges.slice(1).map((edge, index) => part(mark, edges[index], edge - 1, index, edges.length - 1));
  };
  // Of marks with ascending numbers, those that have messages from first to last.
  const overlapping = (marks, first, last) => {
    let low = 0, high = marks.length;
    while (low < high) { const middle = (low + high) >> 1; if (marks[middle].last < first) low = middle + 1; else high = middle; }
    const found = [];
    for (let i = low; i < marks.length && marks[i].first <= last; i += 1) found.push(marks[i]);
    return found;
  };
  const listIn = (map, key) => { if (!map.has(key)) map.set(key, []); return map.get(key); };
  const ascending = (marks) => marks.sort((a, b) => a.first - b.first).filter((mark, i) => i === 0 || mark.first > marks[i - 1].last);

  const rebuild = () => {
    model.all = trace.members.map(() => []);      // everything that can be pointed at
    model.logs = trace.members.map(() => []);     // what happened at each member, receipts apart, and how many events before
    const sends = new Map(), receipts = new Map();
    for (const mark of wholes.flatMap(split)) {
      model.all[mark.row].push(mark);
      if (mark.kind === SEND && mark.process === mark.origin) listIn(sends, mark.origin).push(mark);
      if (mark.kind === RECEIVE) { listIn(receipts, `${mark.row} ${mark.origin}`).push(mark); continue; }
      const log = model.logs[mark.row], before = log[log.length - 1];
      mark.position = log.length;
      mark.start = before ? before.start + before.count : 0;
      mark.sources = [];
      mark.targets = [];
      log.push(mark);
    }
    for (const lists of [sends, receipts]) for (const [key, marks] of lists) lists.set(key, ascending(marks));
    model.arrows = [];
    model.holds = [];
    for (const delivery of model.logs.flat()) {
      if (delivery.kind !== DELIVER) continue;
      const { origin, first, last } = delivery;
      const arrived = overlapping(receipts.get(`${delivery.row} ${origin}`) ?? [], first, last);
      delivery.receipts = arrived;
      delivery.sources = overlapping(sends.get(origin) ?? [], first, last);
      model.holds.push(...arrived.map((receipt) => ({ from: receipt, to: delivery })));
      for (const source of delivery.sources) source.targets.push(delivery);
      if (delivery.process === origin) continue;
      // An arrow ends where the message was received; without receipts, where it was delivered. Without a send it begins nowhere.
      const starts = delivery.sources.length ? delivery.sources : [null];
      for (const start of starts) for (const end of arrived.length ? arrived : [delivery]) {
        const from = Math.max(first, end.first, start ? start.first : first), to = Math.min(last, end.last, start ? start.last : last);
        if (from <= to) model.arrows.push({ from: start, to: end, delivery, origin, first: from, last: to, count: to - from + 1 });
      }
    }
    model.sends = sends;
    model.isOpen = model.all.some((row) => row.some((mark) => mark.parts > 1));
  };

  const inSight = () => {
    const ranges = new Map();
    for (const mark of wholes) if (isMessage(mark)) listIn(ranges, mark.origin).push([mark.first, mark.last]);
    let counted = 0;
    for (const list of ranges.values()) {
      let edge = -Infinity;
      for (const [first, last] of list.sort((a, b) => a[0] - b[0])) { counted += Math.max(0, last - Math.max(first - 1, edge)); edge = Math.max(edge, last); }
    }
    return counted;
  };
  // Messages of one sender, with what is in the window of them; null where nothing is.
  model.select = (origin, first, last) => {
    const own = model.all.flat().filter((mark) => isMessage(mark) && mark.origin === origin && mark.first <= last && mark.last >= first);
    if (!own.length) return null;
    const of = (kind) => own.filter((mark) => mark.kind === kind);
    const sends = of(SEND).filter((mark) => mark.process === origin);
    return { origin, first, last, count: last - first + 1, sends, deliveries: of(DELIVER), receipts: of(RECEIVE), marks: own };
  };
  // The marks of a log that have any of its events from one number up to before another.
  const between = (row, from, to) => {
    const log = model.logs[row];
    let low = 0, high = log.length;
    while (low < high) { const middle = (low + high) >> 1; if (log[middle].start + log[middle].count <= from) low = middle + 1; else high = middle; }
    let end = low;
    while (end < log.length && log[end].start < to) end += 1;
    return log.slice(low, end);
  };
  // How many events of each log happened before the last of these messages was sent: a past is a beginning of every log.
  model.past = ({ sends, last }) => {
    const ends = model.logs.map(() => 0), todo = [];
    const reach = (send, seq) => {
      const end = send.start + Math.min(send.last, seq) - send.first + 1;
      if (end > ends[send.row]) { todo.push([send.row, ends[send.row], end]); ends[send.row] = end; }
    };
    sends.forEach((send) => reach(send, last));
    while (todo.length) {
      const [row, from, to] = todo.pop();
      for (const mark of between(row, from, to)) {
        const seq = Math.min(mark.last, mark.first + to - mark.start - 1);
        mark.sources.filter((source) => source.first <= seq).forEach((source) => reach(source, seq));
      }
    }
    return ends;
  };
  // From which event on each log is after the first of these messages: a future is an end of every log.
  model.future = ({ sends, deliveries, first }) => {
    const starts = model.logs.map((log) => (log.length ? log[log.length - 1].start + log[log.length - 1].count : 0)), todo = [];
    const reach = (mark, seq) => {
      const start = mark.start + Math.max(0, seq - mark.first);
      if (start < starts[mark.row]) { todo.push([mark.row, start, starts[mark.row]]); starts[mark.row] = start; }
    };
    (sends.length ? sends : deliveries).forEach((mark) => reach(mark, first));
    while (todo.length) {
      const [row, from, to] = todo.pop();
      for (const mark of between(row, from, to)) {
        const seq = mark.first + Math.max(0, from - mark.start);
        mark.targets.filter((target) => target.last >= seq).forEach((target) => reach(target, seq));
      }
    }
    return starts;
  };
  // What a member delivered between the receipt of messages, or their sending where receipts are not recorded, and their delivery.
  model.meanwhile = (delivery) => {
    const receipt = delivery.receipts[0], start = receipt ?? delivery.sources[0];
    if (!start) return [];
    const earlier = model.logs[delivery.row].slice(0, delivery.position).filter((mark) => mark.kind === DELIVER);
    if (start.row === delivery.row) return earlier.filter((mark) => mark.pos > start.pos);
    return earlier.filter((mark) => (model.timed ? mark.time > start.time : mark.step > start.step));
  };

  // Opening goes by powers of ten: 8,192 messages become nine marks, a thousand become ten, ten become single messages.
  model.open = (mark) => {
    const size = 10 ** Math.ceil(Math.log10(mark.count) - 1);
    const cuts = model.cuts.get(mark.origin) ?? new Set();
    cuts.add(mark.first).add(mark.last + 1);
    for (let seq = (Math.floor(mark.first / size) + 1) * size; seq <= mark.last; seq += size) cuts.add(seq);
    model.cuts.set(mark.origin, cuts);
    rebuild();
  };
  // Draw one message apart from those that it stands in a row with.
  model.single = (origin, seq) => { model.alone = { origin, seq }; rebuild(); };
  model.close = () => { model.cuts.clear(); model.alone = null; rebuild(); };
  model.counted = inSight();
  rebuild();
  return model;
};

// One formatter for all numbers: toLocaleString makes one for each number, which takes most of the time of a picture.
const inThousands = new Intl.NumberFormat("en-US");
const thousands = (number) => inThousands.format(number);
const plural = (number, noun) => `${thousands(number)} ${noun}${number === 1 ? "" : "s"}`;
const sayRange = ({ origin, first, last }) => (first === last ? `${origin}:${first}` : `${origin}:${first}–${last}`);
const sayTime = (nanoseconds) => {
  const size = Math.abs(nanoseconds);
  const [scale, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${Number((nanoseconds / scale).toPrecision(4))} ${unit}`;
};
const sayWhen = (mark, model) => {
  if (!model.timed) return `step ${mark.step}`;
  return mark.until === mark.time ? sayTime(mark.time) : `${sayTime(mark.time)} to ${sayTime(mark.until)}`;
};
// What an imported log calls a member, or else its number.
const sayMember = (member, model) => (model.hosts ? model.hosts[model.members.indexOf(member)] ?? `member ${member}` : `member ${member}`);
const sayMark = (mark, model) => {
  if (mark.incident) return `${sayMember(mark.process, model)}${sayIncarnation(mark.incident)} ${SAYS[mark.incident.op](mark.incident)}${model.timed ? ` at ${sayWhen(mark, model)}` : ""}`;
  const what = (mark.count === 1 ? mark.name("text") : null) ?? (isMessage(mark) ? sayRange(mark) : mark.name("op") ?? (mark.kind === LOCAL ? "something" : ""));
  const many = mark.count > 1 ? `, ${plural(mark.count, "message")}${mark.cut ? " or more" : ""}` : "";
  const when = model.timed ? ` at ${sayWhen(mark, model)}` : "";
  return `${sayMember(mark.process, model)} ${VERBS[mark.kind]} ${what}${many}${when}`;
};
