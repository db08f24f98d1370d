"""A server on this machine that notes whoever asks it: what is refused must not reach it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Listener:
    """The address of a server, and what was asked of it."""

    def __init__(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.address = f"http://{self.host}"
        self.requests: list[str] = []


@pytest.fixture
def listener() -> Iterator[Listener]:
    class Noting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.requests.append(f"{self.command} {self.path}")
            self.send_error(404)

        do_HEAD = do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Noting)
    found = Listener(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()
