"""The C extension; absent where it could not be built."""

from typing import Any

LIBRARY: str

def decode_range(
    sources: tuple[Any, ...], crops: Any, flips: Any, out: Any, table: Any, width: int, height: int, reduce: bool
) -> list[tuple[int, int, str]]: ...
