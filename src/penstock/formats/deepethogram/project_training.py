"""How a DeepEthogram project trains: the settings that a recipe can take over, and those that it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

# The project's key → section and key of a recipe, and what values are the same in both.
_Reader = Callable[[Any], Any]


class Taken(NamedTuple):
    """A setting of the project as a recipe has it."""

    written: str
    section: str
    name: str
    value: Any


class ProjectTraining(NamedTuple):
    """What a recipe takes over, and the settings that are left, as they are written there."""

    taken: tuple[Taken, ...] = ()
    left: tuple[str, ...] = ()

    def value(self, name: str) -> Any:
        """What the project says about one key of a recipe; None where it says nothing."""
        return next((one.value for one in self.taken if one.name == name), None)


NO_TRAINING = ProjectTraining()


def _number(least: float, most: float) -> _Reader:
    def read(value: Any) -> Any:
        value = 0.0 if value is False else value  # LR: false
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if is_number and least <= value <= most else None

    return read


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _word(**words: Any) -> _Reader:
    return lambda value: words.get(value) if isinstance(value, str) else None


def _statistics(value: Any) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Mean and deviation in levels of 255, if the project has measured them; it begins with N: 0 and placeholders."""
    if not isinstance(value, Mapping) or not value.get("N"):
        return None
    mean, std = value.get("mean"), value.get("std")
    are_colours = all(isinstance(one, list) and len(one) == 3 and all(map(_FRACTION, one)) for one in (mean, std))
    if mean is None or std is None or not are_colours:
        return None
    return tuple(round(255 * one, 3) for one in mean), tuple(round(255 * one, 3) for one in std)


_FRACTION = _number(0, 1)
_COUNTERPARTS: dict[str, tuple[str, str, _Reader]] = {
    "augs.LR": ("task", "flip", _FRACTION),
    "augs.UD": ("task", "vertical_flip", _FRACTION),
    "augs.degrees": ("task", "rotation", _number(0, 180)),
    "augs.brightness": ("task", "brightness", _FRACTION),
    "augs.contrast": ("task", "contrast", _FRACTION),
    "augs.saturation": ("task", "saturation", _FRACTION),
    "augs.hue": ("task", "hue", _number(0, 0.5)),
    "augs.grayscale": ("task", "grey", _FRACTION),
    "augs.normalization": ("task", "normalize", _statistics),
    "compute.batch_size": ("train", "batch_size", _count),
    "feature_extractor.final_activation": ("task", "exclusive", _word(sigmoid=False, softmax=True)),
    "flow_generator.n_rgb": ("task", "frames", _count),
    "preset": ("task", "size", _word(deg_f="fast", deg_m="medium", deg_s="slow")),
    "sequence.sequence_length": ("task", "window_frames", _count),
    "train.label_smoothing": ("task", "label_smoothing", _FRACTION),
    "train.loss_gamma": ("task", "focal", _number(0, 10)),
    "train.loss_weight_exp": ("task", "weight_exponent", _FRACTION),
    "train.lr": ("train", "learning_rate", lambda value: _number(0, 1)(value) or None),
}
# Read as the project is: its behaviours, folders, split and the size of frames.
_OF_THE_DATA = ("project.", "split.", "augs.resize")


def read_training(settings: Mapping[str, Any]) -> ProjectTraining:
    """Sort the settings of a project into those that a recipe has and those that it has not."""
    taken, left = [], []
    for written, value in _flat(settings):
        if written.startswith(_OF_THE_DATA):
            continue
        section, name, read = _COUNTERPARTS.get(written, ("", "", _nothing))
        own = read(value)
        if own is not None:
            taken.append(Taken(written, section, name, own))
        elif not _asks_nothing(value):
            left.append(f"{written} {_shown(value)}")
    return ProjectTraining(tuple(taken), tuple(left))


def _flat(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Keys as section.key, two levels deep, which is how DeepEthogram names them."""
    found: list[tuple[str, Any]] = []
    for section, values in settings.items():
        if isinstance(values, Mapping):
            found += [(f"{section}.{name}", value) for name, value in values.items()]
        else:
            found.append((section, values))
    return found


def _nothing(_: Any) -> None:
    return None


def _asks_nothing(value: Any) -> bool:
    if isinstance(value, Mapping):
        return not value or value.get("N") == 0  # statistics that were never measured
    return value is None or value is False or value in ("", "null", [])


def _shown(value: Any) -> str:
    return "{…}" if isinstance(value, Mapping) else str(value)
