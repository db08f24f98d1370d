"""From the lines of metrics to the charts of a training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from penstock.reporting.charts import Chart, Series, line_chart
from penstock.reporting.page import Markup, note, tag
from penstock.reporting.stories import Story, is_loss, is_score
from penstock.reporting.wording import listed, number, shown, words
from penstock.runs.layout import TRAINING_PREFIX, VALIDATION_LOSS
from penstock.runs.run import Line

TRAINING_LOSS = f"{TRAINING_PREFIX}loss"
STEP_LOSS = f"{TRAINING_PREFIX}step_loss"
RATES = (f"{TRAINING_PREFIX}learning_rate", "learning_rate")
LOSSES = (TRAINING_LOSS, VALIDATION_LOSS, STEP_LOSS)
VALIDATION_PREFIX = "val_"
NO_CURVES = ("epoch", "step")
MOST_LINES = 6  # in one chart of scores; with more nothing can be told apart
MOST_CHARTS = 12
SHARE = (0.0, 1.0)


class Curves:
    """The values of a Run by name, at positions counted in epochs, or in steps where no epoch was finished."""

    def __init__(self, story: Story) -> None:
        self.story = story
        lines, marks = story.metrics, {TRAINING_LOSS, VALIDATION_LOSS, story.goal}
        is_end = [bool(marks & line.keys()) for line in lines]
        self.unit = "epoch" if any(is_end) else "step"
        self._positions = epoch_positions(lines, is_end) if any(is_end) else [_step(line) for line in lines]
        self.names = list(dict.fromkeys(name for line in lines for name in line if name not in NO_CURVES))

    def points(self, name: str) -> tuple[tuple[float, float], ...]:
        """Positions and values of one name; later lines at the same position replace earlier ones."""
        pairs = zip(self._positions, self.story.metrics, strict=True)
        found = {position: number(line[name]) for position, line in pairs if name in line}
        return tuple(sorted(found.items()))

    def series(self, name: str, slot: int, *, is_faint: bool = False, called: str = "") -> Series:
        return Series(called or words(name), self.points(name), slot, is_faint)

    @property
    def scores(self) -> list[str]:
        """The names of all scores, the goal first."""
        known = {*LOSSES, *RATES, *(name for part in self.parts for name in _of_part(part))}
        found = [name for name in self.names if is_score(name) and name not in known]
        return sorted(found, key=lambda name: name != self.story.goal)

    @property
    def parts(self) -> list[str]:
        """What the loss is a sum of, by the names that training and validation log them under, without who logs.

        A number of the validation that is no score is a loss by its name, or one that training has too.
        """
        ends = [
            (name, name.removeprefix(prefix))
            for name in self.names
            for prefix in (TRAINING_PREFIX, VALIDATION_PREFIX)
            if name.startswith(prefix) and name not in (*LOSSES, *RATES)
        ]
        names = set(self.names)
        is_part = {end for name, end in ends if is_loss(name) or names.issuperset(_of_part(end))}
        return [end for end in dict.fromkeys(end for _, end in ends) if end in is_part]

    @property
    def others(self) -> list[str]:
        """Other numbers of training."""
        known = {*self.scores, *LOSSES, *RATES, *(name for part in self.parts for name in _of_part(part))}
        return [name for name in self.names if name not in known]

    def is_share(self, name: str) -> bool:
        values = [value for _, value in self.points(name) if value == value]
        return all(SHARE[0] <= value <= SHARE[1] for value in values)


def _of_part(part: str) -> tuple[str, str]:
    """The names of a part of the loss, in training and in validation."""
    return TRAINING_PREFIX + part, VALIDATION_PREFIX + part


def epoch_positions(lines: Sequence[Line], is_end: Sequence[bool]) -> list[float]:
    """Where each line stands, in epochs: the end of the first is 1. An unfinished one is as long as the one before."""
    last: dict[int, float] = {}
    done: set[int] = set()
    for line, ends in zip(lines, is_end, strict=True):
        epoch = _epoch(line)
        last[epoch] = max(last.get(epoch, 0.0), _step(line))
        done |= {epoch} if ends else set()
    return [_position(line, last, done) for line in lines]


def _position(line: Line, last: dict[int, float], done: set[int]) -> float:
    epoch, step = _epoch(line), _step(line)
    first = last.get(epoch - 1, 0.0)
    length = last[epoch] - first
    if epoch not in done:
        length = max(length, first - last.get(epoch - 2, 0.0))
    return epoch - 1 + (min(1.0, max(0.0, (step - first) / length)) if length > 0 else 1.0)


def _epoch(line: Line) -> int:
    epoch = number(line.get("epoch"))
    return int(epoch) if math.isfinite(epoch) else 1


def _step(line: Line) -> float:
    step = number(line.get("step"))
    return step if math.isfinite(step) else 0.0


def run_charts(story: Story, others_are: str = "see the scores below") -> list[Markup]:
    """Loss and its parts, scores, other numbers and learning rate of one Run."""
    curves = Curves(story)
    charts = [_loss_chart(curves), *(_part_chart(curves, part) for part in curves.parts[:MOST_CHARTS])]
    charts += _score_charts(curves, others_are)
    charts += [_single(curves, name) for name in curves.others[:MOST_CHARTS]]
    charts += [_single(curves, name, "learning rate") for name in RATES if name in curves.names][:1]
    return [chart for chart in charts if chart is not None]


def _chart_of_lines(chart: Chart, series: Sequence[Series]) -> Markup | None:
    """A chart, or None where every line is a single dot: `single_values` writes those as numbers."""
    return line_chart(chart, series) if any(len(one.points) > 1 for one in series) else None


def single_values(story: Story) -> Markup | None:
    """Numbers that were logged once, such as those of a training of one epoch, in a sentence."""
    curves = Curves(story)
    once = [(name, points[0]) for name in curves.names if len(points := curves.points(name)) == 1]
    if not once:
        return None
    at = sorted({position for _, (position, _) in once})
    when = f"After {curves.unit} {at[0]:g}" if len(at) == 1 else "Logged once"
    return note(f"{when}: {', '.join(f'{words(name)} {shown(value)}' for name, (_, value) in once)}.")


def _loss_chart(curves: Curves) -> Markup | None:
    lines = [curves.series(name, slot) for slot, name in enumerate((TRAINING_LOSS, VALIDATION_LOSS))]
    lines.append(curves.series(STEP_LOSS, 0, is_faint=True, called="train loss of steps"))
    return _chart_of_lines(Chart("Loss", curves.unit, may_be_log=True, mark=_best_mark(curves)), lines)


def _part_chart(curves: Curves, part: str) -> Markup | None:
    lines = [curves.series(name, slot) for slot, name in enumerate(_of_part(part))]
    return _chart_of_lines(Chart(_title(words(part)), curves.unit, may_be_log=True), lines)


def _title(heading: str) -> str:
    return heading[:1].upper() + heading[1:]


def _best_mark(curves: Curves) -> tuple[float, str] | None:
    story = curves.story
    if not story.best or story.goal is None:
        return None
    positions = [at for at, value in curves.points(story.goal) if value == number(story.best.get(story.goal))]
    return (positions[0], f"best {words(story.goal)}") if positions else None


def _score_charts(curves: Curves, others_are: str) -> list[Markup | None]:
    """Scores between 0 and 1 together; others have axes of their own."""
    shares = [name for name in curves.scores if curves.is_share(name)]
    lines = [curves.series(name, slot) for slot, name in enumerate(shares[:MOST_LINES])]
    hidden = shares[MOST_LINES:]
    remark = f"Not drawn: {listed([words(name) for name in hidden], 3)}; {others_are}." if hidden else ""
    together = _chart_of_lines(
        Chart("Scores", curves.unit, limits=SHARE, mark=_best_mark(curves), remark=remark), lines
    )
    drawn = set(shares)
    alone = [name for name in curves.scores if name not in drawn]
    return [together, *(_single(curves, name) for name in alone[:MOST_CHARTS])]


def _single(curves: Curves, name: str, title: str = "") -> Markup | None:
    heading = title or words(name)
    chart = Chart(_title(heading), curves.unit, may_be_log=is_loss(name))
    return _chart_of_lines(chart, [curves.series(name, 2, called=heading)])


def compared_charts(stories: Sequence[Story]) -> list[Markup]:
    """A chart for each name that a Run has, with a line for each Run."""
    all_curves = [Curves(story) for story in stories]
    unit = "epoch" if any(curves.unit == "epoch" for curves in all_curves) else "step"
    found = [_compared(all_curves, name, unit) for name in _compared_names(all_curves)]
    return [chart for chart in found if chart is not None]


def _compared_names(all_curves: Iterable[Curves]) -> list[str]:
    curves_list = list(all_curves)
    scores = dict.fromkeys(name for curves in curves_list for name in curves.scores)
    parts = dict.fromkeys(name for curves in curves_list for part in curves.parts for name in _of_part(part)[::-1])
    return [VALIDATION_LOSS, TRAINING_LOSS, *scores, *parts][:MOST_CHARTS]


def _compared(all_curves: Sequence[Curves], name: str, unit: str) -> Markup | None:
    # A Run that has not finished an epoch has no place beside those that are counted in epochs.
    numbered = [(slot, curves) for slot, curves in enumerate(all_curves) if curves.unit == unit]
    lines = [curves.series(name, slot, called=curves.story.name) for slot, curves in numbered]
    is_part = any(name in _of_part(part) for curves in all_curves for part in curves.parts)
    is_any_loss = name in LOSSES or is_part
    is_share = not is_any_loss and all(curves.is_share(name) for curves in all_curves)
    chart = Chart(_title(words(name)), unit, may_be_log=is_any_loss, limits=SHARE if is_share else None)
    return _chart_of_lines(chart, lines)


def chart_grid(charts: Sequence[Markup]) -> Markup | None:
    return tag("div", *charts, class_="grid") if charts else None
