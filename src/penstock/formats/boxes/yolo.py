"""YOLO text files: `class x_centre y_centre width height` in fractions of the image, one file per image.

A sixth number is the score of a prediction; a line of more numbers is a polygon and takes its bounds, unless data.yaml
has kpt_shape: then keypoints follow the box, and are left out. An empty file,
or an image without a file, is a negative sample. Names of the classes come from classes.txt, data.yaml or `classes`;
otherwise the numbers are names. Two images of one stem (a.jpg and a.png) with a label file are a problem, as it
cannot be told which of them it is about.

    root/images + root/labels          root/train/images + root/train/labels (splits)
    root/images/train + root/labels/train (splits)          texts beside their images, or under `images`
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import Problem
from penstock.formats.boxes.rows import ImageName, Rows, make_rows, numbered
from penstock.formats.paths import IMAGE_ENDINGS, files_below
from penstock.formats.reading import ReadingOptions, class_file
from penstock.storage.plain_files import open_file, read_file
from penstock.wording import counted

CLASS_FILES = ("classes.txt", "obj.names", "data.yaml", "dataset.yaml", "data.yml")
# Fractions are written with about six decimals, so that boxes at the border may pass it by rounding.
ROUNDING = 1e-5
# A class, four numbers, and the score of a prediction.
SCORED_WORDS = 6


def is_yolo_file(file: Path) -> bool:
    """Whether a text file is empty or its first line is made of at least five numbers between blanks."""
    try:
        with open_file(file) as opened:
            words = opened.readline(65536).split()
            if not words:
                words = opened.read(65536).split(b"\n", 1)[0].split()
    except OSError:
        return False
    if not words:
        return True
    return len(words) >= 5 and all(_number(word.decode("latin-1")) is not None for word in words[:5])


def label_files(folder: Path) -> list[Path]:
    """The text files of a folder of labels."""
    return [file for file in files_below(folder, [".txt"]) if file.name not in CLASS_FILES]


def loose_label_files(files: Sequence[Path], options: ReadingOptions) -> list[Path]:
    """Of text files that may be anything, those that look like labels or are called like an image."""
    stems = {folder: _stems(_image_folder(folder, options)) for folder in {file.parent for file in files}}
    others = [file for file in files if file.name not in CLASS_FILES]
    return [file for file in others if file.stem in stems[file.parent] or is_yolo_file(file)]


def yolo_rows(files: Sequence[Path], options: ReadingOptions, root: Path | None = None) -> Rows:
    """Rows of label files; below a `root`, images without a label file are negatives too."""
    files = [file for file in files if file.name not in CLASS_FILES]
    reader = _YoloReader(files, options, root)
    for number, file in enumerate(files):
        reader.add(number, file)
    reader.add_unlabelled()
    return reader.rows()


class _YoloReader:
    """Collects the rows of many small files."""

    def __init__(self, files: Sequence[Path], options: ReadingOptions, root: Path | None) -> None:
        self.files, self.root = files, root
        self.problems: list[Problem] = []
        self.images: list[ImageName] = []
        self.found: list[tuple[int, int, str, list[float], bool]] = []
        self.splits: dict[int, str] = {}
        self.scores: dict[int, float] = {}  # by place in `found`
        self.unlabelled = 0
        self.listed = self._listed_names()
        self.given = options.classes
        self.keypoints = {folder: _keypoint_numbers(_class_file(folder, root)) for folder in self.listed}
        self.folders = {file.parent: _image_folder(file.parent, options) for file in files}
        chosen = None if options.files is None else set(options.files)
        self.by_stem = {folder: _stems(folder, chosen) for folder in set(self.folders.values())}

    def _listed_names(self) -> dict[Path, tuple[str, ...] | None]:
        """The names of each folder of labels, as each has its own numbers; None where no file lists them."""
        lists = {folder: _class_file(folder, self.root) for folder in dict.fromkeys(file.parent for file in self.files)}
        names = {file: _names_in(file, self.problems) for file in dict.fromkeys(lists.values()) if file is not None}
        return {folder: None if file is None else names[file] for folder, file in lists.items()}

    def _names(self, number: int) -> tuple[str, ...] | None:
        """The names of the class numbers in a file."""
        return self.listed[self.files[number].parent] or self.given

    def add(self, number: int, file: Path) -> None:
        folder = self.folders[file.parent]
        images = self.by_stem[folder].get(file.stem, [])
        if len(images) > 1:
            what = f"{counted(len(images), 'image')} share this label file: {', '.join(str(image) for image in images)}"
            remedy = "Keep one of them, or give each a name and a label file of its own"
            self.problems.append(Problem(str(file), None, what, remedy))
        image = images[0] if images else None
        name = self._name(image) if image is not None else ""
        self.images.append(ImageName(name, folder, stem=file.stem, file=image))
        self._note_split(number, file)
        lines = self._lines(file)
        for line, words in lines:
            self._add_line(number, line, words)
        if not lines:
            self.found.append((number, 1, "", [np.nan] * 4, False))

    def _lines(self, file: Path) -> list[tuple[int, list[str]]]:
        try:
            text = read_file(file).decode("latin-1").removeprefix("\xef\xbb\xbf")
        except OSError as error:
            self.problems.append(Problem(str(file), None, f"cannot be read: {error.strerror}", "Check the file"))
            return []
        return [(line, words) for line, content in enumerate(text.split("\n"), start=1) if (words := content.split())]

    def _add_line(self, number: int, line: int, words: list[str]) -> None:
        box = _box(words, self.keypoints[self.files[number].parent])
        names = self._names(number)
        label = _label(words[0], names)
        if isinstance(box, str) or label is None:
            what = box if isinstance(box, str) else _unknown(words[0], names)
            remedy = "Write: class x_centre y_centre width height, in fractions of the image"
            if _is_dota(words):
                what, remedy = "this is a line of DOTA: four corners and a class", "Convert the labels to YOLO or COCO"
            self.problems.append(Problem(str(self.files[number]), line, what, remedy))
            self.found.append((number, line, "", [np.nan] * 4, True))
            return
        if len(words) == SCORED_WORDS:
            self.scores[len(self.found)] = float(words[-1])
        self.found.append((number, line, label, box, False))

    def _note_split(self, number: int, file: Path) -> None:
        """train/labels/x.txt or labels/train/x.txt below the root: the split is the folder's name."""
        if self.root is None:
            return
        words = [word for word in file.relative_to(self.root).parent.parts if word != "labels"]
        if words:
            self.splits[number] = words[0]

    def _name(self, image: Path) -> str:
        start = self.root if self.root is not None else image.parent
        return image.relative_to(start).as_posix() if image.is_relative_to(start) else image.name

    def add_unlabelled(self) -> None:
        """Images without a text file, where the layout tells which images belong to the dataset."""
        if self.root is None:
            return
        labelled = {(self.folders[file.parent], file.stem) for file in self.files}
        splits = {self.folders[file.parent]: self.splits.get(number) for number, file in enumerate(self.files)}
        for folder, stems in self.by_stem.items():
            for image in [
                image for stem, images in stems.items() if (folder, stem) not in labelled for image in images
            ]:
                self.unlabelled += 1
                number = len(self.images)
                self.images.append(ImageName(self._name(image), folder, file=image))
                self.found.append((number, 0, "", [np.nan] * 4, False))
                if splits.get(folder):
                    self.splits[number] = str(splits[folder])

    def rows(self) -> Rows:
        root = str(self.root or "")
        if self.unlabelled:
            what = f"{counted(self.unlabelled, 'image', 'has')} no label file: taken as without boxes"
            remedy = "Remove the images that nobody has looked at"
            self.problems.append(Problem(root, None, what, remedy, warning=True))
        codes, labels = numbered(row[2] for row in self.found)
        tables = [str(file) for file in self.files]
        return make_rows(
            tables=[*tables, root],
            images=self.images,
            labels=labels,
            table=[min(row[0], len(tables)) for row in self.found],
            line=[row[1] for row in self.found],
            image=[row[0] for row in self.found],
            label=codes,
            box=[row[3] for row in self.found],
            broken=[row[4] for row in self.found],
            fractions=True,
            score=[self.scores.get(place, np.nan) for place in range(len(self.found))],
            problems=self.problems,
            listed_classes=tuple(dict.fromkeys(name for names in self.listed.values() for name in names or ())),
            splits=self.splits,
        )


def _label(word: str, names: tuple[str, ...] | None) -> str | None:
    """The name of a class number."""
    number = _number(word)
    if number is None or number < 0 or not number.is_integer():  # infinity and NaN are none either
        return None
    if names is None:
        return str(int(number))
    return names[int(number)] if number < len(names) else None


def _unknown(word: str, names: tuple[str, ...] | None) -> str:
    if names is None or _number(word) is None:
        return f"{word!r} is not the number of a class"
    return f"class {word} does not exist: there are {len(names)}, from 0 to {len(names) - 1}"


def _is_dota(words: list[str]) -> bool:
    """Whether a line is one of DOTA's: eight numbers, a class and difficulty, or one of its first two lines."""
    if len(words) == 1:
        return words[0].startswith(("imagesource:", "gsd:"))
    return len(words) in (9, 10) and all(map(_is_number, words[:8])) and not _is_number(words[8])


def _is_number(word: str) -> bool:
    return _number(word) is not None


def _box(words: list[str], keypoint_numbers: int = 0) -> list[float] | str:
    """The corners in fractions, or what is wrong with the line."""
    numbers = [_number(word) for word in words[1:]]
    for word, number in zip(words[1:], numbers, strict=True):
        if number is None or not np.isfinite(number):
            return f"{word!r} is not a finite number"
    values = np.array(numbers, np.float64)
    if len(values) == 4 or (len(values) == 5 and not keypoint_numbers):  # the fifth is the score of a prediction
        return _corners(values[0], values[1], values[2], values[3])
    if keypoint_numbers:
        if len(values) != 4 + keypoint_numbers:
            expected = f"expected 5, and {counted(keypoint_numbers, 'number')} of keypoints as kpt_shape says"
            return f"the line has {counted(len(words), 'number')}, {expected}"
        return _corners(values[0], values[1], values[2], values[3])
    if len(values) < 6 or len(values) % 2:
        expected = "expected 5, or 6 with a score, or a class and at least three corners of a polygon"
        return f"the line has {counted(len(words), 'number')}, {expected}"
    return [*values.reshape(-1, 2).min(axis=0).tolist(), *values.reshape(-1, 2).max(axis=0).tolist()]


def _corners(x: float, y: float, width: float, height: float) -> list[float]:
    """Corners of a box around its centre; what passes the border by rounding alone is put onto it."""
    corners = np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])
    corners[np.abs(corners) < ROUNDING] = 0
    corners[np.abs(corners - 1) < ROUNDING] = 1
    out: list[float] = corners.tolist()
    return out


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _image_folder(labels: Path, options: ReadingOptions) -> Path:
    """Where the images of a folder of labels are: `images`, its twin called images, or the folder itself."""
    parts = list(labels.parts)
    if "labels" in parts:
        place = len(parts) - 1 - parts[::-1].index("labels")
        twin = Path(*parts[:place], "images", *parts[place + 1 :])
        if twin.is_dir():
            return twin
    return options.images or labels


def _stems(folder: Path, chosen: Container[Path] | None = None) -> dict[str, list[Path]]:
    """Images directly in a folder by stem; of several with one stem only those that are `chosen`, where any is."""
    stems: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() in IMAGE_ENDINGS:
            stems[file.stem].append(file)
    if chosen is None:
        return dict(stems)
    return {stem: [file for file in files if file in chosen] or files for stem, files in stems.items()}


def _class_file(labels: Path, root: Path | None) -> Path | None:
    """The nearest file with class names: at the root, beside the labels, or up to two folders above."""
    folders = [*([] if root is None else [root]), labels, *list(labels.parents)[:2]]
    return next((folder / name for folder in folders for name in CLASS_FILES if (folder / name).is_file()), None)


def _names_in(file: Path, problems: list[Problem]) -> tuple[str, ...] | None:
    if file.suffix not in (".yaml", ".yml"):
        return class_file(file)
    import yaml

    from penstock.storage.documents import load_yaml

    try:
        settings = load_yaml(read_file(file))
    except yaml.YAMLError as error:
        line = None if getattr(error, "problem_mark", None) is None else error.problem_mark.line + 1
        reason = getattr(error, "problem", None) or error
        problems.append(Problem(str(file), line, f"it cannot be read as YAML: {reason}", "Write names: [A, B]"))
        return None
    names = settings.get("names") if isinstance(settings, dict) else None
    listed = _listed(names)
    if names and listed is None:
        what = "names is neither a list nor a map from 0, 1, 2 … to names"
        problems.append(Problem(str(file), None, what, "Write names: [A, B], or 0: A, 1: B, without gaps"))
    return listed


def _keypoint_numbers(file: Path | None) -> int:
    """How many numbers follow a box as keypoints, by kpt_shape: [points, 2 or 3] of a data.yaml."""
    if file is None or file.suffix not in (".yaml", ".yml"):
        return 0
    import yaml

    from penstock.storage.documents import load_yaml

    try:
        settings = load_yaml(read_file(file))
    except yaml.YAMLError:
        return 0  # which is a problem already
    shape = settings.get("kpt_shape") if isinstance(settings, dict) else None
    is_shape = isinstance(shape, list) and len(shape) == 2 and all(type(side) is int and side > 0 for side in shape)
    return math.prod(shape) if shape is not None and is_shape else 0


def _listed(names: Any) -> tuple[str, ...] | None:
    """`names` of a data.yaml: a list, or a map from number to name without gaps."""
    if isinstance(names, list):
        return tuple(str(name) for name in names)
    if isinstance(names, dict) and sorted(names) == list(range(len(names))):
        return tuple(str(names[number]) for number in range(len(names)))
    return None
