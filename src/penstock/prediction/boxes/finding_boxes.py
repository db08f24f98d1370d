"""Boxes in files, folders and sources, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from penstock.augment.pixelwise import Normalize
from penstock.errors import PenstockError
from penstock.prediction.answering import AnswerOptions, answered
from penstock.prediction.boxes.areas import Area, read_area
from penstock.prediction.boxes.asking import Asker
from penstock.prediction.boxes.journals import Journal, Kept, kept_by, plan_of
from penstock.prediction.boxes.mosaics import Mosaic, SceneBoxes
from penstock.prediction.boxes.options import FindingOptions, unscalable
from penstock.prediction.boxes.reading_ahead import windows_ahead
from penstock.prediction.boxes.scenes import Scene, Shown, image_scene, open_scene
from penstock.prediction.boxes.window_plans import WindowPlan, window_plan
from penstock.prediction.image_arrays import ImageArrays, image_name
from penstock.prediction.models import Model
from penstock.results.box_tables import box_table
from penstock.results.georeferences import Georeference
from penstock.results.ground_resolution import metres_per_pixel
from penstock.samples import Store
from penstock.wording import counted

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
