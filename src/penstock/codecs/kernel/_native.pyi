"""The C extension; absent where it could not be built."""

from typing import Any

LIBRARY: str

def decode_range(
    sources: tuple[Any, ...],
    views: Any,
    flips: Any,
    out: Any,
    table: Any,
    width: int,
    height: int,
    fill: int,
    reduce: bool,
    fast: bool,
) -> list[tuple[int, int, str]]: ...
def decode_places(
    buffers: tuple[Any, ...],
    places: Any,
    views: Any,
    flips: Any,
    out: Any,
    table: Any,
    width: int,
    height: int,
    fill: int,
    reduce: bool,
    fast: bool,
) -> list[tuple[int, int, str]]: ...
def pixels_range(
    buffers: tuple[Any, ...],
    places: Any,
    views: Any,
    flips: Any,
    out: Any,
    table: Any,
    width: int,
    height: int,
    fill: int,
) -> list[tuple[int, int, str]]: ...
def look_at_files(paths: tuple[bytes, ...], states: Any) -> None: ...
def read_files(paths: tuple[bytes, ...], states: Any, out: Any, is_read: Any) -> None: ...
def measure_halved(sources: tuple[Any, ...], least_side: int, sums: Any) -> None: ...
def jpeg_headers(sources: tuple[Any, ...], headers: Any) -> None: ...
def masked_crc32c(data: Any) -> int: ...
def frame(pieces: tuple[Any, ...]) -> list[tuple[bytes, bytes]]: ...
def frame_examples(pieces: tuple[Any, ...], name: bytes) -> list[tuple[bytes, bytes]]: ...
def scan_records(data: Any, position: int, places: Any) -> tuple[int, int, int]: ...
def check_records(buffers: tuple[Any, ...], places: Any, is_whole: Any) -> None: ...
def find_features(data: Any, places: Any, names: tuple[bytes, ...], features: Any, is_example: Any) -> None: ...
def planes_to_rgb(
    planes: tuple[Any, Any, Any],
    lines: tuple[int, int, int],
    window: tuple[int, int, int, int],
    chroma: tuple[int, int, int, int],
    matrix: tuple[int, int, int, int, int, int],
    size: tuple[int, int],
    out: Any,
) -> None: ...
def read_tiles(descriptor: int, offsets: Any, row_bytes: int, left_bytes: int, out: Any) -> bool: ...
