"""A headless Chromium on a pipe: enough of the DevTools protocol to test a page. No network, no driver."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
#: Seconds until an answer is given up.
PATIENCE = 60.0


def find_chromium() -> str | None:
    """Where Chromium is; None where it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium with one page. What the page asked for and complained of is kept."""

    def __init__(self, profile: Path) -> None:
        path = find_chromium()
        assert path is not None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The protocol is spoken on descriptors 3 (in) and 4 (out).
        command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        arguments = [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        limit = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, limit - time.monotonic()))
            data = os.read(self._in, 1 << 20) if ready else b""
            assert data, "Chromium does not answer"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"]))

    def open(self, url: str) -> None:
        """Load a page and wait until its scripts have run."""
        self.requests.clear()
        self.complaints.clear()
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until a JavaScript condition holds."""
        wait = (
            "new Promise((resolve) => { const look = () => (" + condition + ") ? resolve(true) : "
            "setTimeout(look, 10); look(); })"
        )
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            answer = self.send("Runtime.evaluate", expression=wait, returnByValue=True, awaitPromise=True)
            if "exceptionDetails" not in answer:
                return
        raise AssertionError(f"never: {condition}")

    def press(self, key: str) -> None:
        """Press and release a key that has a name, such as Escape or Tab."""
        codes = {"Escape": 27, "Tab": 9, "Enter": 13}
        parts: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        if key == "Enter":
            parts["text"] = "\r"
        self.send("Input.dispatchKeyEvent", type="keyDown", **parts)
        self.send("Input.dispatchKeyEvent", type="keyUp", **parts)

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the first element of a selector."""
        found = f"document.querySelector({selector!r})"
        x, y = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })"
            f"({found})"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Make the page so wide and high, in CSS pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )

    def media(self, *, media: str = "", dark: bool = False) -> None:
        """Look at the page as print, or in dark mode."""
        scheme = "dark" if dark else "light"
        self.send(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def picture(self, file: Path) -> None:
        """Keep what is seen as PNG."""
        data = self.send("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """End Chromium."""
        self._session = None
        try:
            self.send("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        self._process.wait(timeout=PATIENCE)
        os.close(self._out)
        os.close(self._in)
