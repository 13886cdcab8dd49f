"""The first picture of a report as an SVG file, as the README shows it.

    python -m tests.report.picture runs/demo/report.html docs/pictures/demo.svg

A browser opens the report, and what its script draws on the canvas is written down as shapes. Colours stay names, with
their values for light and dark beside them, so that the picture fits the reader's theme.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any

from tests.report.browser import Browser

WIDTH = 1400
"""Of the window; the diagram takes what its panel leaves of that."""

RECORD = """
const original = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (...given) {
  const real = original.apply(this, given);
  if (this.id !== "diagram") return real;
  window.drawn = [];
  return new Proxy(real, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...given) => {
        if (name === "clearRect") window.drawn = [];
        const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign } = target;
        const dash = target.getLineDash();
        window.drawn.push({ name, given, fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, dash });
        return value.apply(target, given);
      };
    },
    set(target, name, value) { target[name] = value; return true; },
  });
};
"""
VALUES = """(() => {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
})()"""
NAMES = ["card", "ink", "soft", "faint", "rule", "wash", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"]
ANCHORS = {"center": "middle", "right": "end", "left": "start"}


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Shapes:
    """Turns calls of a canvas into elements of an SVG file."""

    def __init__(self, calls: list[dict[str, Any]], names: dict[str, str]) -> None:
        self.names = {colour: name for name, colour in names.items()}
        self.used: set[str] = set()
        self.elements: list[str] = []
        self.path: list[str] = []
        self.clips = 0
        self.groups: list[int] = []
        for call in calls:
            handle = getattr(self, f"on_{call['name']}", None)
            if handle is not None:
                handle(call, *call["given"])

    def colour(self, value: str) -> str:
        name = self.names[value]
        self.used.add(name)
        return name

    def on_save(self, call: dict[str, Any]) -> None:
        self.groups.append(0)

    def on_restore(self, call: dict[str, Any]) -> None:
        self.elements += ["</g>"] * self.groups.pop()

    def on_clip(self, call: dict[str, Any]) -> None:
        self.clips += 1
        self.groups[-1] += 1
        shape = f'<clipPath id="c{self.clips}"><path d="{"".join(self.path)}"/></clipPath>'
        self.elements.append(f'{shape}<g clip-path="url(#c{self.clips})">')

    def on_beginPath(self, call: dict[str, Any]) -> None:  # noqa: N802
        self.path = []

    def on_moveTo(self, call: dict[str, Any], x: float, y: float) -> None:  # noqa: N802
        self.path.append(f"M{number(x)} {number(y)}")

    def on_lineTo(self, call: dict[str, Any], x: float, y: float) -> None:  # noqa: N802
        self.path.append(f"L{number(x)} {number(y)}")

    def on_rect(self, call: dict[str, Any], x: float, y: float, width: float, height: float) -> None:
        self.path.append(f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z")

    def on_arc(self, call: dict[str, Any], x: float, y: float, radius: float, *angles: float) -> None:
        r = number(radius)
        self.path.append(
            f"M{number(x - radius)} {number(y)}a{r} {r} 0 1 1 {number(2 * radius)} 0a{r} {r} 0 1 1 {number(-2 * radius)} 0z"
        )

    def on_roundRect(self, call: dict[str, Any], x: float, y: float, width: float, height: float, radius: float) -> None:  # noqa: N802
        r, side, down = number(radius), number(width - 2 * radius), number(height)
        up, back = number(-height), number(2 * radius - width)
        self.path.append(f"M{number(x + radius)} {number(y)}h{side}a{r} {r} 0 0 1 0 {down}h{back}a{r} {r} 0 0 1 0 {up}z")

    def on_fillRect(self, call: dict[str, Any], x: float, y: float, width: float, height: float) -> None:  # noqa: N802
        self.on_beginPath(call)
        self.on_rect(call, x, y, width, height)
        self.on_fill(call)

    def on_fill(self, call: dict[str, Any]) -> None:
        self.draw(call, f'class="{self.colour(call["fillStyle"])}"')

    def on_stroke(self, call: dict[str, Any]) -> None:
        dash = f' stroke-dasharray="{" ".join(map(number, call["dash"]))}"' if call["dash"] else ""
        self.draw(call, f'class="l {self.colour(call["strokeStyle"])}" stroke-width="{number(call["lineWidth"])}"{dash}')

    def draw(self, call: dict[str, Any], style: str) -> None:
        alpha = "" if call["globalAlpha"] == 1 else f' opacity="{call["globalAlpha"]:.2g}"'
        self.elements.append(f'<path d="{"".join(self.path)}" {style}{alpha}/>')

    def on_fillText(self, call: dict[str, Any], text: str, x: float, y: float) -> None:  # noqa: N802
        size = call["font"].split("px")[0].split()
        weight = ' font-weight="600"' if len(size) > 1 else ""
        look = f'class="{self.colour(call["fillStyle"])}{self.rim}" font-size="{size[-1]}"{weight}'
        anchor = f'text-anchor="{ANCHORS[call["textAlign"]]}"'
        self.elements.append(f'<text x="{number(x)}" y="{number(y)}" {look} {anchor}>{escape(text)}</text>')
        self.rim = ""

    def on_strokeText(self, call: dict[str, Any], text: str, x: float, y: float) -> None:  # noqa: N802
        self.used.add("card")
        self.rim = " r"

    rim = ""


def picture(report: Path) -> str:
    with Browser() as browser:
        browser.before_every_page(RECORD)
        read = VALUES.replace("NAMES", str(NAMES))
        browser.open(report, width=WIDTH, dark=True)
        dark = browser.run(read)
        browser.open(report, width=WIDTH)
        light = browser.run(read)
        calls = browser.run("drawn")
        width, height = browser.run(
            "[document.getElementById('diagram').clientWidth, document.getElementById('diagram').clientHeight]"
        )
        says = browser.run("document.getElementById('in-view').textContent")
    shapes = Shapes(calls, light)
    used = [name for name in NAMES if name in shapes.used | {"card", "rule"}]

    def colours(values: dict[str, str]) -> str:
        return "".join(f".{name}{{fill:{values[name]}}}.l.{name}{{stroke:{values[name]}}}" for name in used) + (
            f".r{{stroke:{values['card']}}}"
        )

    style = f".l{{fill:none!important}}.r{{stroke-width:3.5px;stroke-linejoin:round;paint-order:stroke}}{colours(light)}"
    style += f"@media(prefers-color-scheme:dark){{{colours(dark)}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui,sans-serif" role="img" '
        f'aria-label="{escape(says)}">\n<style>{style}</style>\n'
        f'<rect width="{width}" height="{height}" rx="12" class="card"/>\n' + "\n".join(shapes.elements) + "\n</svg>\n"
    )


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture(Path(sys.argv[1])), encoding="utf-8")
