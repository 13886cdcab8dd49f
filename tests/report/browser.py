"""A browser to test pages with: Chromium, headless, spoken to over a pipe in its DevTools protocol.

The pipe needs no port and no library: messages are JSON, ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 60.0


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium with one page. Everything that the page complains about is in `complaints`. `on`: what comes before a
    command that is to run on another host."""

    def __init__(self, on: Sequence[str] = ()) -> None:
        program = find_browser()
        assert program is not None
        self._profile = tempfile.mkdtemp(prefix="quire-browser-")
        child_in, self._out = os.pipe()
        self._in, child_out = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        command = f'exec "$@" 3<&{child_in} 4>&{child_out}'
        arguments = [
            program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
            f"--user-data-dir={self._profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [*on, "bash", "-c", command, "bash", *arguments], pass_fds=(child_in, child_out), stderr=subprocess.DEVNULL
        )
        os.close(child_in)
        os.close(child_out)
        self._rest = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        try:
            self._attach()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def _attach(self) -> None:
        pages = self._call("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, page: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False, phone: bool = False) -> None:
        """Open a file, or an address, and wait until it is loaded."""
        self.complaints.clear()
        self.requests.clear()
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone
        )
        self._call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self._call(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        )
        self._events.clear()
        self._call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        self._wait_for(lambda: any(event["method"] == "Page.loadEventFired" for event in self._events), "the page to load")
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def before_every_page(self, script: str) -> None:
        """Run this in every page that is opened from now on, before anything of its own."""
        self._call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        result = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def move(self, x: float, y: float) -> None:
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, x: float, y: float, to_x: float) -> None:
        self._call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for share in (0.25, 0.5, 0.75, 1.0):
            self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x + (to_x - x) * share, y=y, button="left", buttons=1)
        self._call("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=y, button="left", clickCount=1)

    def tap(self, x: float, y: float) -> None:
        self._call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self._call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def wheel(self, x: float, y: float, by: float, *, control: bool = False) -> None:
        self._call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by, modifiers=2 if control else 0)

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        for letter in text:
            self.key(letter)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A screenshot, of the whole page or of what is in sight."""
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        self._wait_for(lambda: number in self._answers, method)
        answer = self._answers.pop(number)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def _wait_for(self, happened: Any, what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not happened():
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"the browser did not answer in time: {what}"
            data = os.read(self._in, 1 << 16)
            assert data, "the browser went away"
            *whole, self._rest = (self._rest + data).split(b"\0")
            for text in whole:
                self._take(json.loads(text))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
            return
        self._events.append(message)
        parameters = message.get("params", {})
        match message["method"]:
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description") or details["text"])
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.complaints.append(" ".join(str(each.get("value", each)) for each in parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.complaints.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
