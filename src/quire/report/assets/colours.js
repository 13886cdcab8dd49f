// Which colours marks and arrows have: those of their senders, or, once messages are chosen, what they are to these.
const COLOURS = ["paper", "card", "ink", "soft", "faint", "rule", "wash", "accent", "unsure", "chosen", "past", "future", "bad", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
const SENDERS = 8;   // so many members have colours of their own

// The page's colours and font, read once, and again when they change: a live page makes two pictures a second.
const palette = {};
const readPalette = () => {
  const style = getComputedStyle(root);
  for (const name of COLOURS) palette[name] = style.getPropertyValue(`--${name}`).trim();
  palette.font = getComputedStyle(document.body).fontFamily;
};

const makeColours = (model, state) => {
  const colours = {};
  colours.read = () => { readPalette(); Object.assign(colours, palette); };
  const colourOf = (origin) => {
    const row = model.members.indexOf(origin);
    return model.members.length <= SENDERS && row >= 0 ? colours[`s${row}`] : null;
  };
  // The colours of a mark from left to right, each with the share of it where that colour ends; null is a colour for the rest.
  const tones = (mark) => {
    if (state.marked.has(mark.whole)) return [[1, colours.bad]];
    const { chosen } = state;
    if (!chosen) return [[1, isMessage(mark) ? colourOf(mark.origin) ?? colours.ink : colours.soft]];
    const whole = (colour) => [[1, colour]];
    if (mark.kind === RECEIVE) return whole(overlaps(mark, chosen) ? colours.chosen : null);
    const past = Math.min(1, Math.max(0, (state.past[mark.row] - mark.start) / mark.count));
    const future = Math.min(1, Math.max(0, (state.future[mark.row] - mark.start) / mark.count));
    if (!overlaps(mark, chosen)) return [[past, colours.past], [future, null], [1, colours.future]];
    const from = Math.max(0, (chosen.first - mark.first) / mark.count), to = Math.min(1, (chosen.last + 1 - mark.first) / mark.count);
    return [[Math.min(past, from), colours.past], [from, null], [to, colours.chosen], [1, future < 1 ? colours.future : null]];
  };
  const overlaps = (mark, chosen) => isMessage(mark) && mark.origin === chosen.origin && mark.first <= chosen.last && mark.last >= chosen.first;
  // The colour that most of a mark has; null where that is the colour for the rest.
  const tone = (mark) => {
    let from = 0, most = 0, found = null;
    for (const [to, colour] of tones(mark)) { if (colour !== null && to - from > most) { most = to - from; found = colour; } from = Math.max(from, to); }
    return found;
  };

  const toneOfArrow = ({ from, to, origin, first, last }) => {
    const { chosen } = state;
    if (!chosen) return state.marked.has(to.whole) ? colours.bad : colourOf(origin) ?? colours.faint;
    if (origin === chosen.origin && first <= chosen.last && last >= chosen.first) return colours.chosen;
    if (from && state.past[from.row] > from.start + Math.max(0, first - from.first)) return colours.past;
    if (from && state.future[from.row] < from.start + from.count) return colours.future;
    return null;
  };
  if (!palette.font) readPalette();
  return Object.assign(colours, palette, { colourOf, tones, tone, toneOfArrow, overlaps });
};
