"""What tests of prediction ask for: a Run, and photos to predict on."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.codecs.images import encode_image  # noqa: E402
from shape_making import shape_picture  # noqa: E402


@pytest.fixture(scope="session")
def run(shapes_run: ps.Run) -> ps.Run:
    return shapes_run


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 21 images, some of them below another folder."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "more").mkdir()
    for number in range(21):
        name = f"photo_{number}.png" if number < 15 else f"more/photo_{number}.png"
        (folder / name).write_bytes(encode_image(shape_picture(number), "png"))
    return folder
