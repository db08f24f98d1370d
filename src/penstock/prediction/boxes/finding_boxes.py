"""Boxes in files, folders and sources, as one table."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.augment.pixelwise import Normalize
from penstock.codecs.map_files import layer_errors, read_layer
from penstock.errors import DataError, OptionError, PenstockError, Problem, require
from penstock.prediction.answering import AnswerOptions, answered
from penstock.prediction.boxes.journals import Journal, Kept, kept_by, plan_of
from penstock.prediction.boxes.mosaics import Mosaic, SceneBoxes
from penstock.prediction.boxes.options import FindingOptions, unscalable
from penstock.prediction.boxes.scenes import (
    Scene,
    Shown,
    WindowPlan,
    image_scene,
    open_scene,
    window_plan,
    windows_ahead,
)
from penstock.prediction.devices import Placed, dealt, lanes
from penstock.prediction.inputs import ImageArrays, image_name
from penstock.prediction.models import Model
from penstock.results.box_tables import box_table
from penstock.results.georeferences import Georeference, metres_per_pixel
from penstock.samples import Store
from penstock.tasks.checkpoints import FULL, autocast
from penstock.tasks.detection.retina import Found
from penstock.tasks.inference.folding import made_to_answer
from penstock.wording import counted

# Polygons on the map inside of which boxes are looked for.


def read_area(within: Any) -> Any:
    """The polygons of a layer, or of a GeoDataFrame, as a GeoSeries with a coordinate system."""
    require("geopandas", "geo", "Predicting within polygons")
    if isinstance(within, (str, os.PathLike)):
        damage: tuple[type[Exception], ...] = (OSError, *layer_errors())
        try:
            layers, frame = read_layer(Path(within))
        except damage as error:
            raise _refused(
                within, f"it cannot be read as a layer: {error}", "Name a .gpkg, .geojson or .shp"
            ) from error
        if frame is None:
            what = f"it has {counted(len(layers), 'layer')} with geometry{': ' if layers else ''}{', '.join(layers)}"
            raise _refused(within, what, "Save the one that is meant as its own file")
        found = frame.geometry
    else:
        found = getattr(within, "geometry", None)
        if found is None:
            raise OptionError(f"within must be a layer or a GeoDataFrame, not {type(within).__name__}.")
    solid = found[found.geom_type.isin(["Polygon", "MultiPolygon"])]
    if not len(solid):
        raise _refused(within, "it has no polygons", "Name a layer of areas")
    if solid.crs is None:
        raise _refused(within, "it does not say its coordinate system", "Save it with one")
    return solid


def _refused(within: Any, what: str, remedy: str) -> DataError:
    return DataError([Problem(str(within) if isinstance(within, (str, os.PathLike)) else "within", None, what, remedy)])


class Area:
    """The polygons in pixels of one scene."""

    def __init__(self, polygons: Any, scene: Scene) -> None:
        shapely: Any = require("shapely", "geo", "Predicting within polygons")
        if scene.place is None:
            raise OptionError(f"within: {scene.name} is on no map, so nobody knows where in it the polygons are.")
        place = scene.place
        a, b, c, d, e, f = place.transform
        determinant = a * e - b * d

        def to_pixels(points: NDArray[np.float64]) -> NDArray[np.float64]:
            x, y = points[:, 0] - c, points[:, 1] - f
            return np.stack([(e * x - b * y) / determinant, (a * y - d * x) / determinant], axis=1)

        joined = polygons.to_crs(place.crs).union_all()
        self._shapely = shapely
        self._shape = shapely.transform(joined, to_pixels)
        shapely.prepare(self._shape)

    def windows(self, plan: WindowPlan) -> NDArray[np.int64]:
        """The windows that share something with the polygons."""
        boxes = [plan.grid.window(number) for number in range(len(plan.grid))]
        corners = np.array([(one.x, one.y, one.x + one.width, one.y + one.height) for one in boxes], np.float64)
        touched = self._shapely.intersects(self._shape, self._shapely.box(*corners.T))
        return np.flatnonzero(touched)

    def holds(self, boxes: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Which boxes have their centre inside."""
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2
        inside: NDArray[np.bool_] = self._shapely.contains_xy(self._shape, centres[:, 0], centres[:, 1])
        return inside


# Asking a network about windows: in groups of one shape, with the precision of the model.


def in_groups(shown: Iterable[Shown], size: int) -> Iterator[list[Shown]]:
    """As many windows as the network sees at a time; the last group may be smaller."""
    items = iter(shown)
    while group := list(islice(items, size)):
        yield group


class Asker:
    """A model made ready for windows: copies of its network that only answer, one on each device."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._copies = tuple(
            Placed(made_to_answer(network, device, short=model.precision != FULL), device)
            for network, device in model.copies
        )

    def ask(self, shown: Iterable[Shown], side_px: int) -> Generator[tuple[int, Found]]:
        """The number of each window, and every box with score enough, unsuppressed, in pixels that it was shown."""
        copies, threads = self._lanes(side_px)
        groups = in_groups(shown, self.model.group_rows)
        with closing(dealt(copies, self._answers, groups, threads)) as answers:
            for group in answers:
                yield from group

    def _lanes(self, side_px: int) -> tuple[tuple[Placed, ...], int | None]:
        if len(self._copies) > 1:
            return self._copies, None
        task: Any = self.model.task
        return lanes(self._copies[0], self.model.group_rows * round(side_px * task.input_scale) ** 2)

    def _answers(self, one: Placed, group: list[Shown]) -> list[tuple[int, Found]]:
        task: Any = self.model.task
        # Filled up to one shape: libraries sum in another order for other shapes.
        filled = [group[min(place, len(group) - 1)].pixels for place in range(self.model.group_rows)]
        images = torch.from_numpy(np.stack(filled)).to(one.device)
        with torch.inference_mode(), autocast(self.model.precision, one.device):
            seen = one.network(task.inputs(images))
        with torch.inference_mode():
            proposed = task.proposed(one.network, seen, scale=task.input_scale)
        return [
            (window.number, Found(*(value.cpu() for value in found)))
            for window, found in zip(group, proposed, strict=False)
        ]


# Threads that read windows, where the user does not say: two keep ahead of any network, also of compressed rasters.
AUTO_READERS = 2


class Collected:
    """The boxes of all images so far, and what was looked at."""

    def __init__(self, model: Model) -> None:
        self.classes, self.precision = model.classes, model.precision
        self.names: list[str] = []
        self.found: list[SceneBoxes] = []
        self.sizes: dict[str, tuple[int, int]] = {}
        self.places: dict[str, Georeference] = {}
        self.problems: dict[str, str] = {}

    def add(self, name: str, found: SceneBoxes, size: tuple[int, int], place: Georeference | None) -> None:
        self.names.append(name)
        self.found.append(found)
        self.sizes[name] = size
        if place is not None:
            self.places[name] = place

    def table(self) -> Any:
        """One row for each box; what could not be read is in `attrs["problems"]`."""
        empty = SceneBoxes(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0))
        columns = SceneBoxes(*(np.concatenate(column) for column in zip(empty, *self.found, strict=True)))
        counts = [len(one.scores) for one in self.found]
        table = box_table(
            columns.boxes,
            np.array(self.classes, object)[columns.labels],
            columns.scores,
            np.repeat(np.array(self.names, object), counts),
            classes=self.classes,
            image_sizes=self.sizes,
            places=self.places,
        )
        table.attrs["precision"] = self.precision
        if self.problems:
            table.attrs["problems"] = self.problems
        return table


def boxes_in_files(
    model: Model,
    files: list[Path],
    options: FindingOptions,
    answering: AnswerOptions,
    journal: Journal | None = None,
) -> Any:
    """The table of boxes of image files and rasters, one after another."""
    model = _with_thresholds(model, options)
    polygons = None if options.within is None else read_area(options.within)
    if journal is not None:
        journal.begin(plan_of(model, files, options))
    asker = Asker(model)
    collected = Collected(model)
    for number, file in enumerate(files):
        try:
            scene = open_scene(file, options.bands, options.allow_drivers)
            found = boxes_in_scene(asker, scene, options, answering, polygons, kept_by(journal, number))
        except PenstockError as error:
            if answering.on_bad_sample == "raise":
                raise
            collected.problems[str(file)] = str(error)
            continue
        collected.add(scene.name, found, (scene.width, scene.height), scene.place)
    return _noted(collected.table(), collected, model, options)


def boxes_in_arrays(model: Model, images: ImageArrays, options: FindingOptions, answering: AnswerOptions) -> Any:
    """The table of boxes of images in memory, each cut into windows as a file of the same pixels is."""
    model = _with_thresholds(model, options)
    asker = Asker(model)
    collected = Collected(model)
    for number, pixels in enumerate(images.images):
        scene = image_scene(image_name(number), pixels)
        found = boxes_in_scene(asker, scene, options, answering)
        collected.add(scene.name, found, (scene.width, scene.height), scene.place)
    return _noted(collected.table(), collected, model, options)


def _noted(table: Any, collected: Collected, model: Model, options: FindingOptions) -> Any:
    """A table that says which images could not be brought to the resolution of the model."""
    trained = getattr(model.task, "gsd", None)
    unplaced = [name for name in collected.sizes if name not in collected.places]
    if options.gsd == "auto" and isinstance(trained, (int, float)) and unplaced:
        note = (
            f"{counted(len(unplaced), 'image')} without a georeference (CRS), such as {unplaced[0]}: not brought to "
            f"the {trained:g} m a pixel that the model was trained with"
        )
        table.attrs["notes"] = [*table.attrs.get("notes", ()), note]
    return table


def boxes_in_scene(
    asker: Asker,
    scene: Scene,
    options: FindingOptions,
    answering: AnswerOptions,
    polygons: Any = None,
    kept: Kept | None = None,
) -> SceneBoxes:
    """The boxes of one image, best first."""
    task: Any = asker.model.task
    plan = _plan(task, scene, options)
    area = None if polygons is None else Area(polygons, scene)
    wanted = np.arange(len(plan.grid)) if area is None else area.windows(plan)
    finished = {} if kept is None else kept.finished
    mosaic = Mosaic(plan, task)
    for number, piece in finished.items():
        mosaic.add(number, piece)
    numbers = np.setdiff1d(wanted, list(finished))
    readers = AUTO_READERS if isinstance(answering.workers, str) else max(1, answering.workers)
    with (
        closing(windows_ahead(scene, plan, numbers, readers)) as ahead,
        _bar(answering.progress, len(wanted), len(finished)) as bar,
        closing(asker.ask(bar(ahead), plan.shown_px)) as answers,
    ):
        for number, found in answers:
            piece = mosaic.answered(number, found)
            mosaic.add(number, piece)
            if kept is not None:
                kept.add(number, piece)
    boxes = mosaic.boxes()
    inside = boxes if area is None else boxes.taken(np.flatnonzero(area.holds(boxes.boxes)))
    return inside.taken(np.arange(len(inside.scores))[: task.detections_per_image])


def _plan(task: Any, scene: Scene, options: FindingOptions) -> WindowPlan:
    red, green, blue = (round(level) for level in Normalize(task.normalize).mean)
    return window_plan(
        scene.width,
        scene.height,
        tile_px=options.window_px(scene.width, scene.height, is_photo=scene.is_photo),
        overlap=options.overlap,
        stride=max(1, round(task.largest_stride / task.input_scale)),
        ratio=_ratio(task, scene, options),
        fill=(red, green, blue),  # what the network is shown beyond the borders of images in training
    )


def _ratio(task: Any, scene: Scene, options: FindingOptions) -> float:
    """Pixels of the image for each of the model's resolution; 1 where either does not say, unless the user asked."""
    wanted = task.gsd if options.gsd == "auto" else options.gsd
    if not isinstance(wanted, (int, float)):
        return 1.0
    place = scene.place
    middle = {"x": scene.width / 2, "y": scene.height / 2}
    found = None if place is None else metres_per_pixel(place.transform, place.crs, **middle)
    if found is None and options.gsd != "auto":
        raise unscalable([scene.name], wanted)
    return 1.0 if found is None else wanted / found


def boxes_in_source(model: Model, source: Store, options: FindingOptions, answering: AnswerOptions) -> Any:
    """The table of boxes of a pack or another source, each sample looked at as a whole."""
    model = _with_thresholds(model, options)
    task: Any = model.task
    collected = Collected(model)
    for one in answered(model, source, answering, model.answer):
        for row in range(len(one.batch["index"])):
            sample = source.annotations(one.first + row) if source.knows_annotations else {}
            name = str(sample.get("key") or one.first + row)
            if row in one.problems:
                collected.problems[name] = one.problems[row]
                continue
            found = SceneBoxes(*(np.asarray(one.answers[name][row].cpu()) for name in ("boxes", "labels", "scores")))
            kept = found.taken(np.flatnonzero(found.scores >= task.score_threshold))
            height, width = one.batch["image"][row].shape[:2]
            collected.add(name, kept, (int(width), int(height)), _place_of(sample))
    return collected.table()


def _place_of(sample: dict[str, Any]) -> Georeference | None:
    crs, transform = sample.get("crs"), sample.get("transform")
    return Georeference(str(crs), tuple(map(float, transform))) if crs and transform is not None else None


def _with_thresholds(model: Model, options: FindingOptions) -> Model:
    changed = options.thresholds()
    return model.changed(**changed) if changed else model


@contextmanager
def _bar(progress: bool, total: int, finished: int) -> Iterator[Any]:
    """A function that shows how many windows went through it, after those that were finished before."""
    if not progress:
        yield lambda shown: shown
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("looking", total=total, completed=finished)

        def followed(shown: Iterator[Shown]) -> Iterator[Shown]:
            for done, one in enumerate(shown, start=finished + 1):
                yield one
                bar.update(task, completed=done)
            bar.update(task, completed=total)  # windows that nothing can be seen in were left out

        yield followed
