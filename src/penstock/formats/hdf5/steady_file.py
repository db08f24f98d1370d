"""A file that HDF5 writes to without ever learning that the disk is full, of which its library may crash."""

from __future__ import annotations

import io
from pathlib import Path


class SteadyFile(io.RawIOBase):
    """Remembers the first failure of the disk instead of raising it; what comes after goes nowhere.

    Whoever writes asks `raise_failure` from time to time, and throws the file away when it raises.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b", buffering=0)
        self._failure: OSError | None = None

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        left = memoryview(data)
        try:
            while self._failure is None and len(left):
                left = left[self._file.write(left) :]
        except OSError as error:
            self._failure = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        try:
            return self._file.truncate(size)
        except OSError as error:
            self._failure = self._failure or error
            return size or 0

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._file.readinto(buffer) or 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self._file.close()
        super().close()
