"""From what a user gives as data to a source: images in memory, image files, or data with labels."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image, encode_image, upright
from penstock.errors import DataError, OptionError, Problem
from penstock.formats.paths import IMAGE_ENDINGS, expand, files_below, origin_of, read_bytes
from penstock.formats.rasters.rasters import raster_paths
from penstock.opening import kind_of
from penstock.opening import open as open_any
from penstock.samples import Field, Origin, Raw, Sample, Schema, Source, Store, as_store
from penstock.samples.store import ImageStorage
from penstock.storage.locations import readable_name
from penstock.training.data_splits import training_data
from penstock.training.options import DataOptions
from penstock.wording import counted

# Images in memory: arrays of NumPy and images of Pillow, as prediction takes them.


Pixels = NDArray[np.uint8]
EXPECTED = "expected an array H×W×3 of uint8, RGB"
ORIENTATION = 0x0112  # the tag of EXIF
# Modes of Pillow that Pillow itself converts: for those that PNG has, to the pixels that we decode from the file.
# 16 bits are scaled by our own rule, because Pillow cuts them off at 255; 32 bits, floats and the like have no rule.
CONVERTED_MODES = ("RGB", "RGBA", "RGBX", "L", "LA", "P", "PA", "1", "CMYK", "YCbCr")
DEEP_MODES = ("I;16", "I;16L", "I;16B")


class ImageArrays(Store):
    """Pixels in the order in which they were given; the key of each is its number."""

    def __init__(self, images: Sequence[Pixels]) -> None:
        self.images = list(images)
        self._schema = Schema((Field("image", "image"),))

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"ImageArrays({counted(len(self), 'image')})"

    def read(self, index: int) -> Raw:
        return Raw(index, b"")

    def decode(self, raw: Raw) -> Sample:
        # A copy: steps may write into what they are given, and these pixels are the caller's.
        return {"image": np.array(self.images[raw.index], order="C"), **self.annotations(raw.index)}

    def annotations(self, index: int) -> Sample:
        """The number as a name; each image is a group of its own."""
        return {"key": image_name(index), "group": image_name(index)}

    def column(self, name: str) -> NDArray[Any]:
        if name not in ("key", "group"):
            raise KeyError(name)
        return np.array([image_name(index) for index in range(len(self))], dtype=object)

    def origin(self, index: int) -> Origin:
        return Origin(image_name(index), 0, 0)


def image_name(index: int) -> str:
    """How tables and errors call an image that has no file."""
    return f"image {index}"


def are_in_memory(data: Any) -> bool:
    """Whether data is an array, an image of Pillow or a tensor, or a list with one of them."""
    return any(map(_is_one, data)) if isinstance(data, (list, tuple)) else _is_one(data)


def image_arrays(data: Any) -> ImageArrays:
    """The images of an array, an image of Pillow, or a list of these; an error lists all that are something else."""
    given = list(data) if isinstance(data, (list, tuple)) else [data]
    problems = [Problem(image_name(index), None, *wrong) for index, one in enumerate(given) if (wrong := _wrong(one))]
    if problems:
        raise DataError(problems)
    return ImageArrays([_pixels(one) for one in given])


def _is_one(one: Any) -> bool:
    return isinstance(one, np.ndarray) or _is_pillow(one) or _is_tensor(one)


def _is_pillow(one: Any) -> bool:
    module = sys.modules.get("PIL.Image")  # who has not imported it has no image of it
    return module is not None and isinstance(one, module.Image)


def _is_tensor(one: Any) -> bool:
    module = sys.modules.get("torch")
    return module is not None and isinstance(one, module.Tensor)


def _wrong(one: Any) -> tuple[str, str] | None:
    """What is wrong with an image, and what to do about it."""
    if _is_tensor(one):
        found = f"found a torch tensor {_shape(one.shape)} of {str(one.dtype).removeprefix('torch.')}"
        order = ".permute(1, 2, 0)" if one.ndim == 3 and one.shape[0] == 3 and one.shape[2] != 3 else ""
        scale = ", with values from 0 to 255" if one.dtype.is_floating_point else ""
        return f"{EXPECTED}, {found}", f"Pass tensor{order}.to(torch.uint8).cpu().numpy(){scale}"
    if _is_pillow(one):
        known = one.mode in CONVERTED_MODES + DEEP_MODES
        what = f"an image of Pillow of mode {one.mode!r} has no rule for RGB"
        return None if known else (what, 'Scale its values to 0…255 and pass image.convert("RGB")')
    if not isinstance(one, np.ndarray):
        return f"{EXPECTED}, or an image of Pillow, found {type(one).__name__}", "Pass images or paths, not both"
    if one.ndim == 3 and one.shape[2] == 3 and one.dtype == np.uint8 and one.size:
        return None
    return f"{EXPECTED}, found {_shape(one.shape)} of {one.dtype}", _remedy(one)


def _remedy(array: NDArray[Any]) -> str:
    if array.ndim == 4:
        return "Pass a list of images: list(array)"
    if array.ndim == 2:
        return "Repeat grey values for three channels: np.stack([array] * 3, axis=2)"
    if array.ndim == 3 and array.shape[2] == 4:
        return "Leave out the alpha channel: array[:, :, :3]"
    if array.ndim == 3 and array.shape[0] == 3 and array.shape[2] != 3:
        return "Put the channels last: array.transpose(1, 2, 0)"
    return "Scale values to 0…255 and convert them: array.astype(np.uint8)" if array.size else "Leave out empty images"


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a single value"


def _pixels(one: Any) -> Pixels:
    if isinstance(one, np.ndarray):
        return one
    # Through our decoder: the one rule for 16 bits is there.
    deep = one.mode in DEEP_MODES
    pixels = decode_image(encode_image(np.array(one, np.uint16), "png")) if deep else np.array(one.convert("RGB"))
    return upright(pixels, one.getexif().get(ORIENTATION, 1))


# Image files by their paths, without labels: what prediction is given when it is given photos.


PathLike = str | os.PathLike[str]


class ImageFiles(Store):
    """Images in the order in which they were given; the key of each is its path."""

    def __init__(self, files: Iterable[PathLike]) -> None:
        self.files = [os.fspath(file) for file in files]
        self._schema = Schema((Field("image", "image"),))

    def __len__(self) -> int:
        return len(self.files)

    @property
    def image_storage(self) -> ImageStorage:
        return "encoded"

    def __repr__(self) -> str:
        return f"ImageFiles({counted(len(self), 'image')})"

    def read(self, index: int) -> Raw:
        return Raw(index, read_bytes(self.files[index]))

    def decode(self, raw: Raw) -> Sample:
        return {"image": decode_image(raw.data), **self.annotations(raw.index)}

    def annotations(self, index: int) -> Sample:
        """The path; each image is a group of its own."""
        name = readable_name(self.files[index])
        return {"key": name, "group": name}

    def column(self, name: str) -> NDArray[Any]:
        if name not in ("key", "group"):
            raise KeyError(name)
        return np.array([readable_name(file) for file in self.files], dtype=object)

    def origin(self, index: int) -> Origin:
        return origin_of(self.files[index])


def image_files(paths: PathLike | Sequence[PathLike]) -> ImageFiles:
    """The images that a file, a folder, a pattern with * or a list of these stands for."""
    found: dict[str, None] = {}
    for path in expand(paths):
        files = files_below(path, IMAGE_ENDINGS) if path.is_dir() else [path]
        found.update(dict.fromkeys(map(os.fspath, files)))
    if not found:
        given = paths if isinstance(paths, (str, Path)) else "the list"
        raise DataError(
            [Problem(str(given), None, "there is no image", f"Known are {', '.join(sorted(IMAGE_ENDINGS))}")]
        )
    return ImageFiles(found)


# What a folder or file may be taken for that is, for prediction, simply images.
SIMPLY_IMAGES = ("Images", "Boxes", "Rasters", "")
TABLES = (".csv", ".tsv", ".txt", ".json", ".xml")


def source_for_prediction(data: Any) -> Store:
    """A Source as it is; images in memory; files, folders, patterns and lists of them; else as `penstock.open` does."""
    if isinstance(data, Source):
        return as_store(data)
    if are_in_memory(data):
        return image_arrays(data)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return image_files(data)
    if not isinstance(data, (str, os.PathLike)):
        what = "a path, a list of paths, an array H×W×3 of uint8, an image of Pillow, a list of these, or a Source"
        raise OptionError(f"data must be {what}, not {type(data).__name__}.")
    if _is_simply_images(data):
        return image_files(data)
    source: Store = open_any(data)
    return source


def files_or_source(data: Any) -> list[Path] | ImageArrays | Store:
    """Image files and rasters by their paths, as they are given; images in memory; all else as a Source."""
    if isinstance(data, Source):
        return as_store(data)
    if are_in_memory(data):
        return image_arrays(data)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return raster_paths(data)
    source = source_for_prediction(data) if not _is_simply_images(data) else None
    return raster_paths(data) if source is None else source


def _is_simply_images(data: Any) -> bool:
    if not isinstance(data, (str, os.PathLike)):
        return False
    is_missing = not Path(data).exists() and "*" not in os.fspath(data)
    return is_missing or (Path(data).suffix not in TABLES and kind_of(data) in SIMPLY_IMAGES)


def source_for_evaluation(data: Any, split: str | None) -> Store:
    """A Source or what `penstock.open` takes; with `split` that part of it, by the rule of packing."""
    if split is None:
        source: Store = as_store(data) if isinstance(data, Source) else open_any(data)
        return source
    return training_data(data, DataOptions(train=split, val=None)).train
