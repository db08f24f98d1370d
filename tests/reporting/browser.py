"""A real Chromium without a window, driven through a pipe: its DevTools protocol needs no library and no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LONGEST_WAIT_SECONDS = 300.0
READ_BYTES = 1 << 16
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # it cannot have one where tests run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)


def chromium() -> str | None:
    """Where Chromium is installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """A running browser; it ends with the block."""
    commands_in, commands_out = os.pipe()
    answers_in, answers_out = os.pipe()
    nowhere = os.open(os.devnull, os.O_RDWR)
    # The browser reads commands at descriptor 3 and answers at 4. They are moved out of the way of one another first.
    first, second = (max(commands_in, answers_out, nowhere, 4) + number for number in (1, 2))
    moves = [(os.POSIX_SPAWN_DUP2, nowhere, number) for number in (0, 1, 2)]
    moves += [(os.POSIX_SPAWN_DUP2, commands_in, first), (os.POSIX_SPAWN_DUP2, answers_out, second)]
    moves += [(os.POSIX_SPAWN_DUP2, first, 3), (os.POSIX_SPAWN_DUP2, second, 4)]
    moves += [(os.POSIX_SPAWN_CLOSE, number) for number in (first, second)]
    command = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = os.posix_spawn(program, command, {**os.environ, "HOME": str(profile)}, file_actions=moves)
    for descriptor in (commands_in, answers_out, nowhere):
        os.close(descriptor)
    made = Browser(commands_out, answers_in)
    try:
        made.open_page()
        yield made
    finally:
        # A browser whose pipe is closed ends by itself.
        os.close(commands_out)
        os.close(answers_in)
        os.waitpid(process, 0)


class Browser:
    """One page of a running browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def open_page(self) -> None:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return dict(answer["result"])
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._answers, READ_BYTES)
            assert read, "the browser has ended"
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))

    def _wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._message())

    # What a test asks for

    def visit(
        self, page: Path, *, width: int = 1280, height: int = 900, scheme: str = "light", media: str = ""
    ) -> None:
        """Load a file in a window of this size."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", media=media, features=[feature])
        self.events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri())
        self._wait_for("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What JavaScript says."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def move_to(self, x: float, y: float) -> None:
        """Put the pointer somewhere."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self) -> list[str]:
        """Errors and warnings of the console since the page was loaded, and exceptions."""
        self.value("1")  # what was said before this is known then
        loud = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in loud]

    def requests(self) -> list[str]:
        """What the page asked for since it was loaded, itself and pictures inside of it left out."""
        self.value("1")
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        urls = [str(one["request"]["url"]) for one in sent if one.get("type") != "Document"]
        return [url for url in urls if not url.startswith("data:")]

    def picture(self) -> bytes:
        """The whole page as PNG, however long it is."""
        size = self.value("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(answer["data"])
