"""Model: a trained network with all that it needs to answer, restored from a Run or a checkpoint file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from penstock.errors import OptionError, Sealed, nearest
from penstock.prediction.devices import Placed, dealt, devices_of, placed
from penstock.runs.run import Run
from penstock.storage.locations import refuses_urls
from penstock.tasks.checkpoints import AUTO, NEWEST_VERSION, autocast, choose_precision, model_file, read_checkpoint
from penstock.tasks.task import Answers, Batch, Task
from penstock.tasks.weights import write_weights
from penstock.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from penstock.results.ethograms import Ethogram

# A network sees so many rows at a time, the last group filled up: libraries sum in another order for other shapes, so
# only with one shape is an answer the same whatever it came with. Small on a CPU, where one photo should not wait long.
GROUP_ROWS = {"cpu": 8}
GROUP_ROWS_ELSEWHERE = 64


class Model(Sealed):
    """A task and its trained network; `predict` answers, `save` writes the weights.

    With a list of devices there is a copy of the network on each, and what is to be answered is dealt to them. It
    computes with the precision of its training, if it knows it and the devices can, unless another is asked for.
    """

    def __init__(
        self,
        task: Task,
        network: torch.nn.Module,
        *,
        meta: Mapping[str, Any] | None = None,
        device: Any = None,
        precision: str = AUTO,
    ) -> None:
        self.task, self.meta = task, dict(meta or {})
        self.devices = devices_of(device)
        self._asked = precision
        self.precision, self.precision_words = choose_precision(precision, self.meta.get("precision"), self.devices)
        self.copies = placed(network, self.devices)

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings are those of the task, and a model stays as it is: `changed` gives another."""
        if self._is_made and name in [field.name for field in dataclasses.fields(self.task)]:  # type: ignore[arg-type]
            raise AttributeError(f"a model is not changed: use model = model.changed({name}={value!r}).")
        if self._is_made and not name.startswith("_"):
            known = [field.name for field in dataclasses.fields(self.task)]  # type: ignore[arg-type]
            hint = nearest(name, known) or nearest(name, list(vars(self)))
            raise AttributeError(f"a model has no attribute {name!r} that can be set.{hint}")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        places = ", ".join(map(str, self.devices))
        return f"<Model: {self.task.kind} of {counted(len(self.task.classes), 'class')} on {places}>"

    @property
    def network(self) -> torch.nn.Module:
        return self.copies[0].network

    @property
    def device(self) -> torch.device:
        return self.devices[0]

    @property
    def classes(self) -> tuple[str, ...]:
        return self.task.classes

    @property
    def thresholds(self) -> dict[str, float]:
        """The scores from which something counts as found."""
        return dict(getattr(self.task, "thresholds", {}) or self.meta.get("thresholds") or {})

    def changed(self, **settings: Any) -> Model:
        """The same network with other settings of its task, such as score_threshold."""
        task: Any = self.task
        known = [field.name for field in dataclasses.fields(task)]
        for name in settings:
            if name not in known:
                raise OptionError(f"a {task.kind} has no setting {name!r}.{nearest(name, known)}")
        changed: Task = dataclasses.replace(task, **settings)
        return Model(changed, self.network, meta=self.meta, device=self.devices, precision=self._asked)

    @property
    def group_rows(self) -> int:
        rows: int = getattr(self.task, "group_rows", GROUP_ROWS).get(self.device.type, GROUP_ROWS_ELSEWHERE)
        return rows

    def answer(self, batch: Batch) -> dict[str, Any]:
        """Answers of a batch of any length; those of a row do not depend on the other rows."""
        return self._grouped(batch, self.task.answer)

    def judge(self, batch: Batch) -> dict[str, Any]:
        """The same of a batch with labels, with the loss of each row."""
        return self._grouped(batch, lambda network, rows: self.task.judge(network, rows).answers)

    def _grouped(self, batch: Batch, ask: Callable[[torch.nn.Module, Batch], Answers]) -> dict[str, Any]:
        count = len(batch["index"])

        def answers(one: Placed, start: int) -> Answers:
            rows = torch.arange(start, start + self.group_rows).clamp(max=count - 1)
            group = {name: _rows(value, rows, one.device) for name, value in batch.items()}
            with torch.inference_mode(), autocast(self.precision, one.device):
                found = ask(one.network, group)
            return {name: _moved(value[: count - start], self.device) for name, value in found.items()}

        found = list(dealt(self.copies, answers, range(0, count, self.group_rows)))
        return {name: _joined([one[name] for one in found]) for name in found[0]} if found else {}

    @refuses_urls()
    def predict(self, data: Any, **options: Any) -> pd.DataFrame | Ethogram | list[Ethogram] | Path:
        """See `penstock.predict`."""
        from penstock.prediction.predicting import predict

        return predict(self, data, **options)

    @refuses_urls()
    def save(self, path: str | Path) -> Path:
        """Write weights and settings, which `penstock.load` restores: .safetensors, .pt or .pth.

        A plain state_dict is `torch.save(model.network.state_dict(), path)`.
        """
        if Path(path).suffix not in (".safetensors", ".pt", ".pth"):
            raise OptionError(f"{path} must end in .safetensors, .pt or .pth.")
        task = {"kind": self.task.kind, "settings": self.task.settings()}
        kept: dict[str, Any] = {name: self.meta[name] for name in ("precision", "input") if name in self.meta}
        meta = {"version": NEWEST_VERSION, "task": task, "thresholds": self.thresholds, **kept}
        write_weights(path, self.network.state_dict(), meta)
        return Path(path)


def _rows(value: Any, rows: torch.Tensor, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value[rows.to(value.device)].to(device)
    return [_moved(value[row], device) for row in rows.tolist()]


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, list):
        return [_moved(one, device) for one in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _joined(pieces: list[Any]) -> Any:
    """Answers of all groups: tensors, or lists with something for each row."""
    if isinstance(pieces[0], torch.Tensor):
        return torch.cat(pieces)
    return [one for piece in pieces for one in piece]


@refuses_urls(model="run")
def load(
    run: Run | Model | str | os.PathLike[str],
    *,
    which: Literal["best", "last"] = "best",
    device: Any = None,
    precision: str = AUTO,
) -> Model:
    """The trained model of a Run (its folder), or of a checkpoint or safetensors file; nothing else is needed for it.
    Also a detector that DeepForest published: its file, or hf://owner/name, which is downloaded.

    `which` chooses among the checkpoints of a Run. `precision` is 32, bf16 or 16; auto: that of its training. Nothing
    in the file is run: it is tensors and plain values.
    """
    if isinstance(run, Model):
        if device is None and precision == AUTO:
            return run
        place = run.devices if device is None else device
        asked = run._asked if precision == AUTO else precision
        return Model(run.task, run.network, meta=run.meta, device=place, precision=asked)
    checkpoint = read_checkpoint(_checkpoint_path(run, which))
    return Model(checkpoint.task, checkpoint.network(), meta=checkpoint.meta, device=device, precision=precision)


def _checkpoint_path(run: Run | str | os.PathLike[str], which: Literal["best", "last"]) -> str | Path:
    if isinstance(run, Run):
        return run.checkpoint(which)
    if not isinstance(run, (str, os.PathLike)):
        raise OptionError(f"a Run, its folder, or a checkpoint is needed, not {type(run).__name__}.")
    return model_file(run, which)
