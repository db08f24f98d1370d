"""`ps.evaluate`: how well a model answers, over a whole set."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import OptionError, require_learning
from penstock.formats.videos.label_options import LabelOptions
from penstock.prediction.box_files import BoxOptions, compared, details_of, facts_of, image_table
from penstock.prediction.ethogram_files import compare_ethograms, is_ethograms
from penstock.results.box_scores import MATCH_IOU
from penstock.runs.layout import plain
from penstock.storage.locations import refuses_urls
from penstock.storage.whole_files import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from penstock.prediction.answering import AnswerOptions
    from penstock.prediction.models import Model
    from penstock.runs.run import Run
    from penstock.samples import Store


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores over a whole set; `details` has what a report draws, `table` what was answered, `facts` how they came
    about: for behaviours how many frames the rule of shortest bouts changed, and how many are near a threshold."""

    scores: Mapping[str, float]
    details: Mapping[str, Any]
    table: pd.DataFrame
    samples: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        width = max(map(len, self.scores), default=0)
        lines = [f"{name:<{width}}  {value:.4f}" for name, value in self.scores.items()]
        return "\n".join([f"{'samples':<{width}}  {self.samples:,}", *lines])

    @refuses_urls()
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write scores and details as .json, or the row of every sample as .csv, .jsonl or .parquet."""
        target = Path(path)
        if target.suffix == ".json":
            content = {name: plain(dict(getattr(self, name))) for name in ("scores", "facts", "details")}
            write_whole(target, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
            return target
        from penstock.prediction.tables import write_table

        rows: Any = self.table.to_dict("records")
        return write_table(target, [rows], columns=list(self.table.columns))


@refuses_urls(model="run")
def evaluate(
    run: Run | Model | str | os.PathLike[str],
    data: Any = None,
    *,
    split: str | None = None,
    batch_size: int | str = "auto",
    workers: int | str = "auto",
    device: Any = None,
    progress: bool = False,
    precision: str = "auto",
    min_bout_frames: int | tuple[int, ...] | str | None = None,
    videos: Any = None,
    truth: Any = None,
    min_score: float | None = None,
    iou: float = MATCH_IOU,
    count_empty: bool = False,
    images: str | os.PathLike[str] | None = None,
    allow_outside: bool = False,
    allow_drivers: str | Sequence[str] = (),
    units: str = "auto",
    subject: str | None = None,
) -> Evaluation:
    """Answer every sample of labelled data and compare: a Run, a Model or a checkpoint, on a Source or a path.

    `split` takes one split of the data. Without data, it is a split of what the Run was trained on, by default the one
    that it was validated with. Nothing is left out and nothing is random. `min_bout_frames` are other shortest bouts
    for a behaviour model: one number, one for each behaviour, or "off". `videos` are the files that its data were
    packed from, found by name: frames come from there, labels from the data. `precision` is that of its training
    (auto), 32, bf16 or 16. `facts` of what is given back say which precision was used, and where frames came from.

    With `truth`, boxes made by anything stand in place of the run: `evaluate("boxes.csv", truth="xml/*.xml")`; both may
    be a table or any files that `Boxes` reads. `min_score`, `iou`, `count_empty`, `images`, `allow_outside` and
    `allow_drivers` belong to that; see `BoxOptions`. So may ethograms, as files of frames, with labels that `Videos`
    reads: `evaluate("predictions/", truth="labels/*.csv")`; `units` and `subject` say how events are read, as in
    `Videos`.
    """
    box_options = BoxOptions(min_score, iou, count_empty, images, allow_outside, allow_drivers)
    label_options = LabelOptions(units=units, subject=subject)
    if truth is not None:
        _refuse_unused(
            {"data": data, "split": split, "batch_size": batch_size, "workers": workers, "device": device}
            | {"precision": precision, "min_bout_frames": min_bout_frames, "videos": videos}
        )
    if truth is not None and is_ethograms(run):
        return _evaluate_ethograms(run, truth, box_options, label_options)
    if label_options != LabelOptions():
        raise OptionError("units and subject say how events of behaviours are read: pass ethograms, and truth too.")
    if truth is not None:
        return _evaluate_boxes(run, truth, box_options)
    if box_options != BoxOptions():
        raise OptionError(
            "min_score, iou, count_empty, images, allow_outside and allow_drivers compare boxes with their truth: "
            "pass truth too."
        )
    require_learning("Evaluation")
    import pandas as pd

    from penstock.prediction.answering import FIXED, AnswerOptions, answered, on_cpu, rows_of
    from penstock.prediction.inputs import source_for_evaluation
    from penstock.prediction.models import load
    from penstock.prediction.predicting import precision_facts
    from penstock.prediction.run_data import run_split

    options = AnswerOptions(batch_size, workers, "raise", progress)
    source = run_split(run, split) if data is None else source_for_evaluation(data, split)
    model = load(run, device=device, precision=precision)
    model.task.check(source, "evaluation")
    if model.task.kind == "behaviour":
        return _evaluate_videos(model, source, options, min_bout_frames, videos)
    if min_bout_frames is not None or videos is not None:
        raise OptionError(f"min_bout_frames and videos are for behaviour models, and {run} is a {model.task.kind}.")
    scores, rows = model.task.scores(), []
    for found in answered(model, source, options, lambda batch: on_cpu(model.judge(batch)), FIXED):
        scores.update(found.answers, found.batch)
        rows += rows_of(model, source, found, lists_problems=False)
    if model.task.kind == "detection":
        from penstock.results.box_tables import FOUND_COLUMNS, BoxTable

        # Without rows the table has its columns all the same.
        table: pd.DataFrame = BoxTable(rows, columns=None if rows else ["image_path", *FOUND_COLUMNS[:-1]])
    else:
        table = pd.DataFrame(rows)
    return Evaluation(scores.compute(), scores.details(), table, len(source), precision_facts(model))


def _refuse_unused(given: Mapping[str, Any]) -> None:
    """Options of a network that answers say nothing about a comparison of files."""
    used = [
        name for name, value in given.items() if value is not None and not (isinstance(value, str) and value == "auto")
    ]
    if used:
        raise OptionError(
            f"{', '.join(used)}: with truth, files are compared as they are and no network answers. "
            "Leave it out, or leave truth out to evaluate a Run."
        )


def _evaluate_videos(
    model: Model, source: Store, options: AnswerOptions, min_bout_frames: Any, videos: Any
) -> Evaluation:
    import pandas as pd

    from penstock.prediction.behaviour.decisions import Decisions
    from penstock.prediction.behaviour.ethogram_predicting import labelled_ethograms, row_of
    from penstock.prediction.predicting import precision_facts
    from penstock.results.behaviour_scores import score_ethograms
    from penstock.results.ethogram_tables import ethogram_details

    ethograms = labelled_ethograms(model, source, options, videos, min_bout_frames=min_bout_frames)
    scores = score_ethograms(ethograms)
    details = {**scores.details(), "ethograms": ethogram_details(ethograms)}
    table = pd.DataFrame([row_of(one) for one in ethograms])
    frames_from = "the data" if videos is None else "the videos"
    facts = {
        **precision_facts(model),
        "frames_from": frames_from,
        **Decisions.together(map(Decisions.of, ethograms)).facts(),
    }
    return Evaluation(scores.scores(), details, table, sum(map(len, ethograms)), facts)


def _evaluate_boxes(predictions: Any, truth: Any, options: BoxOptions) -> Evaluation:
    scores, both = compared(predictions, truth, options)
    table = image_table(scores, both)
    return Evaluation(scores.scores(), details_of(scores, both), table, len(table), facts_of(both, options))


def _evaluate_ethograms(
    predictions: str | os.PathLike[str], truth: Any, options: BoxOptions, label_options: LabelOptions
) -> Evaluation:
    if options != BoxOptions():
        raise OptionError(
            f"min_score, iou, count_empty, images, allow_outside and allow_drivers are for boxes; {predictions} holds "
            "behaviours."
        )
    both = compare_ethograms(predictions, truth, label_options)
    scores, table = both.scores(), both.table()
    details = {**scores.details(), "not_in_truth": list(both.not_in_truth)}
    return Evaluation(scores.scores(), details, table, int(table["frames"].sum()))
