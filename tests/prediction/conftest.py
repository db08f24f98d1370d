"""A model that learned a little, once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.codecs.images import encode_image  # noqa: E402
from shape_making import SHAPES, Shapes, shape_picture  # noqa: E402


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> ps.Run:
    """A Run of a few steps."""
    task = ps.Classification(SHAPES, backbone="tiny", size=32)
    folder = tmp_path_factory.mktemp("runs") / "shapes"
    data = (Shapes(48), Shapes(24, first=1000))
    options: dict[str, Any] = {"batch_size": 16, "progress": False, "logger": False, "workers": 0}
    return ps.train(task, data, epochs=1, folder=folder, **options)


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 21 images, some of them below another folder."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "more").mkdir()
    for number in range(21):
        name = f"photo_{number}.png" if number < 15 else f"more/photo_{number}.png"
        (folder / name).write_bytes(encode_image(shape_picture(number), "png"))
    return folder
