"""Models from the hub against real servers on this machine: one that serves, some that do not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")
constants = pytest.importorskip("huggingface_hub.constants")

pytest.importorskip("safetensors")

from safetensors.torch import save_file  # noqa: E402
from tests.tasks.detection.test_detector_files import published  # noqa: E402

import penstock as ps  # noqa: E402
from penstock.tasks import weights  # noqa: E402
from penstock.tasks.weights import pretrained_weights  # noqa: E402

TREES = {"num_classes": 1, "label_dict": {"Palm": 0}, "score_thresh": 0.3}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ADDRESS = "hf://owner/name"
LOAD = f"import penstock as ps; print(','.join(ps.load('{ADDRESS}', device='cpu').classes))"


class Hub:
    """The files of one repository, and what was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.requests: list[str] = []
        self.is_down = False


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[Hub, str]]:
    task = ps.Detection(["Tree", "Snag"], backbone="tiny")
    path = ps.Model(task, task.network(), device="cpu").save(tmp_path / "model.safetensors")
    found = Hub({"model.safetensors": path.read_bytes()})

    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            if self.path.startswith("/owner/name/"):  # newer versions of the library ask other things on their own
                found.requests.append(f"{self.command} {name}")
            data = found.files.get(name)
            if found.is_down:
                self.send_error(503)
                return
            self.send_response(200 if data is not None else 404)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{name}"')
            if data is None:
                self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data or b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def answering_with(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[int]]]:
    """A listening socket that does something odd with each connection; the list has one number for each."""
    connections: list[int] = []
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(len(connections))
                kept.append(connection)
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", connections
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in kept:
        connection.close()


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Load the model from another address, with an empty cache, in this process."""

    def load(endpoint: str) -> Any:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, endpoint)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        return ps.load(ADDRESS, device="cpu")

    return load


def load_from(endpoint: str, home: Path, command: str = LOAD) -> subprocess.CompletedProcess[str]:
    """The address is read when huggingface_hub is imported, hence a process of its own."""
    environment = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.run(
        [sys.executable, "-c", command], env={**os.environ, **environment}, capture_output=True, text=True, timeout=600
    )


def test_a_model_of_ours_comes_from_the_hub_and_then_from_the_cache(hub: tuple[Hub, str], tmp_path: Path) -> None:
    found, endpoint = hub
    done = load_from(endpoint, tmp_path / "home")
    assert done.stdout.strip() == "Tree,Snag", done.stderr
    assert found.requests[-1] == "GET model.safetensors"

    found.requests.clear()
    found.is_down = True
    again = load_from(endpoint, tmp_path / "home")
    assert again.stdout.strip() == "Tree,Snag", again.stderr
    assert found.requests == ["HEAD model.safetensors"], "one question"


def test_weights_of_others_come_before_their_settings_which_are_not_done_without(
    hub: tuple[Hub, str], at: Callable[[str], Any], tmp_path: Path
) -> None:
    found, endpoint = hub
    save_file(published().state_dict(), tmp_path / "theirs.safetensors")
    found.files["model.safetensors"] = (tmp_path / "theirs.safetensors").read_bytes()
    found.files["config.json"] = json.dumps(TREES).encode()
    assert at(endpoint).classes == ("Palm",)
    names = [request.split()[1] for request in found.requests]
    assert names == sorted(names, reverse=True), "first the weights, which say whether there is a network"

    for path in (tmp_path / "cache").rglob("config.json"):
        path.unlink()
    found.is_down = True
    with pytest.raises(ps.DataError, match=r"owner/name/config.json from .*could not be downloaded"):
        at(endpoint)


def test_a_server_that_is_down_is_asked_once(hub: tuple[Hub, str], at: Callable[[str], Any]) -> None:
    found, endpoint = hub
    found.is_down = True
    with pytest.raises(ps.DataError, match="could not be downloaded: .*503"):
        at(endpoint)
    assert found.requests == ["HEAD model.safetensors"]


def test_a_server_that_hangs_up_is_asked_once(at: Callable[[str], Any]) -> None:
    refused = pytest.raises(ps.DataError, match="could not be downloaded.*pass the path of the file")
    with answering_with(lambda connection: connection.close()) as (endpoint, connections), refused:
        at(endpoint)
    assert len(connections) == 1


def test_a_server_that_never_answers_is_asked_once(at: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "TRY_SECONDS", 0.3)
    refused = pytest.raises(ps.DataError, match="could not be downloaded")
    with answering_with(lambda connection: None) as (endpoint, connections), refused:
        at(endpoint)
    assert len(connections) == 1


def test_an_address_that_refuses_is_said_at_once(at: Callable[[str], Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(ps.DataError, match=f"owner/name/model.safetensors from {endpoint}: could not be downloaded"):
        at(endpoint)


def test_weights_of_torchvision_without_network_are_said_after_one_short_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(weights, "TRY_SECONDS", 0.3)
    with answering_with(lambda connection: None) as (proxy, connections):
        monkeypatch.setenv("https_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(ps.DataError, match="could not be downloaded"):
            pretrained_weights("imagenet", "mobilenet_v2")
    assert len(connections) == 1
