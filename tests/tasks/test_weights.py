"""Weights to begin with: which files fit, and what is said of those that do not."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.tasks.weights import HubPlace, hub_place, pretrained_weights, read_weights, write_weights  # noqa: E402


def network_of(task: ps.Classification, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return task.network()


TINY = ps.Classification(("a", "b"), backbone="tiny", size=32)
OTHER = ps.Classification(("a", "b", "c"), backbone="tiny", size=32)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("ending", ["pth", "pt", "safetensors"])
def test_weights_that_were_written_are_read_again(tmp_path: Path, ending: str) -> None:
    given = network_of(TINY, seed=1).state_dict()
    write_weights(tmp_path / f"weights.{ending}", given, {})
    network = network_of(TINY)
    TINY.load_backbone(network, read_weights(tmp_path / f"weights.{ending}"))
    assert same(network.state_dict(), given)
    assert [path.name for path in tmp_path.iterdir()] == [f"weights.{ending}"]


@pytest.mark.parametrize("without", [True, False])
def test_a_head_of_other_classes_or_none_leaves_ours_as_it_is(without: bool) -> None:
    given = dict(network_of(OTHER, seed=1).state_dict())
    if without:
        given = {name: value for name, value in given.items() if not name.startswith("classifier")}
    network = network_of(TINY)
    before = network.classifier.weight.clone()
    TINY.load_backbone(network, given)
    assert torch.equal(network.classifier.weight, before)
    assert torch.equal(network.features[0][0].weight, given["features.0.0.weight"])


@pytest.mark.parametrize("prefix", ["network.", "model.", "module.model."])
def test_what_trainers_put_before_the_names_is_taken_off(prefix: str, tmp_path: Path) -> None:
    given = network_of(TINY, seed=1).state_dict()
    torch.save({"state_dict": {prefix + name: value for name, value in given.items()}, "epoch": 3}, tmp_path / "x.ckpt")
    network = network_of(TINY)
    TINY.load_backbone(network, read_weights(tmp_path / "x.ckpt"))
    assert same(network.state_dict(), given)


def test_a_wrong_file_fails_with_the_keys_that_differ() -> None:
    given = dict(network_of(TINY).state_dict())
    given["features.9.weight"] = given.pop("features.0.0.weight")
    given["features.1.0.weight"] = torch.zeros(1)
    with pytest.raises(ps.OptionError) as caught:
        TINY.load_backbone(network_of(TINY), given)
    words = str(caught.value)
    assert "1 missing: features.0.0.weight" in words
    assert "1 unknown: features.9.weight" in words
    assert "features.1.0.weight (1 instead of 32×16×3×3)" in words


def test_nothing_is_taken_over_from_a_wrong_file() -> None:
    network = network_of(TINY)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with pytest.raises(ps.OptionError):
        TINY.load_backbone(network, {"features.0.0.weight": torch.zeros(16, 3, 3, 3)})
    assert same(network.state_dict(), before)


class Dangerous:
    """Would make a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    torch.save({"state_dict": Dangerous(tmp_path / "ran")}, tmp_path / "bad.pth")
    with pytest.raises(ps.DataError, match="Python objects, which Penstock does not load"):
        read_weights(tmp_path / "bad.pth")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ending", ["pth", "safetensors"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_file_that_was_cut_short_says_so(tmp_path: Path, ending: str, kept: float) -> None:
    path = tmp_path / f"weights.{ending}"
    write_weights(path, network_of(TINY).state_dict(), {})
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(ps.DataError, match="cut short"):
        read_weights(path)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    for name in ("no.pth", "no.safetensors"):
        with pytest.raises(ps.DataError, match="no such file"):
            pretrained_weights(str(tmp_path / name), "tiny")


def test_addresses_on_hugging_face_are_read() -> None:
    assert hub_place("hf://weecology/deepforest-tree") == HubPlace("weecology/deepforest-tree", None, None)
    assert hub_place("hf://a/b.c@v1.0/sub/x.pt") == HubPlace("a/b.c", "v1.0", "sub/x.pt")
    with pytest.raises(ps.OptionError, match="hf://owner/name"):
        hub_place("hf://only-one")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that is not connected, with empty caches."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError("network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))


@pytest.mark.usefixtures("no_network")
def test_a_download_without_network_says_what_to_do() -> None:
    with pytest.raises(ps.DataError, match="could not be downloaded.*pass the path of the file"):
        pretrained_weights("imagenet", "mobilenet_v2")


@pytest.mark.usefixtures("no_network")
def test_a_download_from_hugging_face_without_network_says_what_to_do(monkeypatch: Any) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # else it tries again and again
    with pytest.raises(ps.DataError, match="huggingface.co: could not be downloaded.*pass the path of the file"):
        pretrained_weights("hf://penstock-owner/penstock-name", "tiny")


def test_a_file_in_the_cache_of_hugging_face_needs_no_network(
    no_network: None, tmp_path: Path, monkeypatch: Any
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    repository = tmp_path / "models--owner--name"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (repository / "snapshots" / commit).mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    write_weights(repository / "snapshots" / commit / "model.safetensors", network_of(TINY, seed=1).state_dict(), {})
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert same(pretrained_weights("hf://owner/name", "tiny"), network_of(TINY, seed=1).state_dict())


@pytest.mark.usefixtures("no_network")
def test_a_constructor_never_downloads() -> None:
    for weights in ("imagenet", "hf://owner/name", "missing.pth"):
        task = ps.Classification(("a", "b"), backbone="mobilenet_v2", weights=weights)
        assert task.network() is not None


def test_weights_of_torchvision_without_a_head_load(shared_data: Path) -> None:
    path = shared_data.parent / "weights" / "mobilenet_v2_imagenet_features_torchvision.pth"
    task = ps.Classification(("a", "b"), weights=str(path))
    network, weights = task.network(), task.pretrained()
    task.load_backbone(network, weights)
    assert torch.equal(network.features[0][0].weight, weights["features.0.0.weight"])
