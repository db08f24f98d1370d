"""A flow as Lightning takes it, with the flow at hand for those who want to know how it is doing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.flow.flow import Flow

Batch = dict[str, Any]


class FlowLoader:
    """Batches of tensors, an epoch for each iteration; its state is saved with a checkpoint."""

    batch_sampler = None  # Lightning asks for it where there is a sampler

    def __init__(
        self,
        flow: Flow,
        device: Any = None,
        *,
        finish: Callable[[Batch], Batch] | None = None,
        bad_before: tuple[Any, ...] = (),
    ) -> None:
        self.flow = flow
        self._bad_before = bad_before  # samples that were replaced when the data were brought here
        self._loader = flow.to_torch(device)
        self._finish = finish
        self.sampler = self._loader.sampler

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._loader) if self._finish is None else map(self._finish, self._loader)

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far, as a few numbers."""
        state: dict[str, Any] = self._loader.state_dict()  # type: ignore[attr-defined]
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on with exactly the next batch."""
        self._loader.load_state_dict(state)  # type: ignore[attr-defined]

    @property
    def bad_samples(self) -> tuple[Any, ...]:
        """The samples that were replaced so far, with the reasons."""
        return (*self._bad_before, *self.flow.bad_samples)

    def close(self) -> None:
        self.flow.close()
