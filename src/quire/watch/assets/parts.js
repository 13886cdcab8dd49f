// What all parts of the page share: elements with text and nothing else in them, numbers in words, times.
const SVG = "http://www.w3.org/2000/svg";
const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
  return made;
};
const draw = (name, attributes = {}, ...children) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
};
const find = (id) => document.getElementById(id);
const sayCount = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return size >= 100 || Number.isInteger(value) ? thousands(Math.round(value)) : value.toPrecision(2);
};
const sayBytes = (value) => (value >= 1 << 20 ? `${(value / (1 << 20)).toFixed(1)} MiB` : value >= 1024 ? `${(value / 1024).toFixed(1)} KiB` : `${value} B`);
const saySeconds = (value) => (value === null || value === undefined ? "–" : sayTime(Math.round(value * 1e9)));
const clockTime = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const sayClock = (seconds) => clockTime.format(seconds * 1000);
const COLOUR_COUNT = 8;
const colourClass = (index, count) => (count <= COLOUR_COUNT ? `s${index}` : "");
