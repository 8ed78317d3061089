"""A headless Chromium that tests talk to through a pipe: pages, keys, colour schemes, what the console says.

Speaks the DevTools protocol: JSON messages that end with a NUL byte, in on descriptor 3 and out on 4.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

CHROMIUM = shutil.which("chromium")
MISSING = "there is no chromium: Debian has it as the package of that name"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--remote-debugging-pipe")
KEYS = {"Tab": 9, "Enter": 13}
SECONDS = 60


class Browser:
    """One page of a browser. `said` is everything its console said, errors of the network and of styles included."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.requests: list[str] = []

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Ask for one thing and wait for the answer."""
        self._number += 1
        session = {} if self._session is None else {"sessionId": self._session}
        message = {"id": self._number, "method": method, "params": params, **session}
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while (found := self._next()).get("id") != self._number:
            self._heard(found)
        assert "error" not in found, found
        return found["result"]

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while (found := self._next())["method"] != "Page.loadEventFired":
            self._heard(found)

    def scheme(self, name: str) -> None:
        """Be in light or in dark."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def size(self, width: int, height: int) -> None:
        """Be as large as that."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            more = text if kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key], **more)

    def picture(self) -> Image.Image:
        """What is to be seen."""
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._out, 1 << 20)
            assert more, "the browser has gone"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _heard(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Log.entryAdded":
                self.said.append(event["params"]["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.said.append(json.dumps(event["params"]))
            case "Network.requestWillBeSent":
                self.requests.append(event["params"]["request"]["url"])
            case _:
                pass


@contextmanager
def browser(folder: Path) -> Generator[Browser]:
    """A browser with a profile of its own in `folder`."""
    assert CHROMIUM is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
    running = subprocess.Popen(
        ["bash", "-c", command, "bash", CHROMIUM, *FLAGS, f"--user-data-dir={folder}"],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        running.terminate()
        running.wait(SECONDS)
