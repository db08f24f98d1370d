"""Global batches first, then ranks: which positions of an epoch each rank gets in each step."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import RecipeError
from penstock.wording import counted


@dataclass(frozen=True)
class Deal:
    """How an epoch of `length` positions (None: without end) is cut into global batches, and these among ranks.

    All ranks take the same number of steps. A short last batch is dealt as evenly as it goes; when it has fewer samples
    than ranks it is left out, unless `keep_all` (for evaluation) says that nothing is: then some ranks get an empty
    share. `batch_size` counts the samples of all ranks together.
    """

    length: int | None
    batch_size: int
    drop_last: bool = False
    rank: int = 0
    world_size: int = 1
    keep_all: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise RecipeError(f"batch({self.batch_size}): expected 1 sample or more.")
        if not 0 <= self.rank < self.world_size:
            raise RecipeError(
                f"shard(rank={self.rank}, world_size={self.world_size}): expected 0 <= rank < world_size."
            )
        if self.batch_size < self.world_size and not self.keep_all:
            raise RecipeError(
                f"A global batch of {counted(self.batch_size, 'sample')} is too small for {self.world_size} ranks. "
                f"Use batch({self.world_size}) or more: the batch size counts the samples of all ranks together."
            )
        if self.drop_last and self.keep_all:
            raise RecipeError("drop_last=True leaves samples out, and evaluation must not. Use drop_last=False.")

    @property
    def count(self) -> int | None:
        """Steps in an epoch, the same on all ranks."""
        if self.length is None:
            return None
        full, short = divmod(self.length, self.batch_size)
        return full + (1 if self._deals_short(short) else 0)

    @property
    def most_rows(self) -> int:
        """Samples that this rank gets of a full batch, or one more."""
        return -(-self.batch_size // self.world_size)

    @property
    def left_out(self) -> int:
        """Samples at the end of an epoch that no rank gets."""
        short = (self.length or 0) % self.batch_size
        return 0 if self._deals_short(short) else short

    def span(self, batch_number: int) -> tuple[int, int]:
        """The positions, from and up to, of this rank's share of a global batch."""
        start = batch_number * self.batch_size
        size = self.batch_size if self.length is None else min(self.batch_size, self.length - start)
        share = (self.rank * size // self.world_size, (self.rank + 1) * size // self.world_size)
        return start + share[0], start + share[1]

    def _deals_short(self, size: int) -> bool:
        """Whether a last batch of this size, less than a full one, is dealt."""
        if self.keep_all or size == 0:
            return size > 0
        return not self.drop_last and size >= self.world_size
