"""Decoded pieces of files that are kept for a while: at most so many bytes, the least used go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Piece = TypeVar("Piece")

# A few row groups or shards as they are usually written.
KEPT_BYTES = 256 << 20


class Kept(Generic[Piece]):
    """Pieces by name, shared by all threads; a piece is made by one of them while the others wait for it.

    The last piece is always kept, however large it is. A copy in another process begins empty.
    """

    def __init__(self, limit_bytes: int = KEPT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._pieces: OrderedDict[Hashable, tuple[Piece, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._limit_bytes,)

    def get(self, name: Hashable, make: Callable[[], tuple[Piece, int]]) -> Piece:
        """The piece of this name; `make` gives it and its size where it is not there."""
        with self._lock:
            found = self._pieces.get(name)
            if found is not None:
                self._pieces.move_to_end(name)
                return found[0]
            making = self._making.setdefault(name, threading.Lock())
        with making:
            with self._lock:
                found = self._pieces.get(name)
            if found is None:
                found = make()
                self._keep(name, found)
        return found[0]

    def _keep(self, name: Hashable, made: tuple[Piece, int]) -> None:
        with self._lock:
            self._pieces[name] = made
            self._making.pop(name, None)
            while len(self._pieces) > 1 and self.bytes > self._limit_bytes:
                self._pieces.popitem(last=False)

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self._pieces.values())
