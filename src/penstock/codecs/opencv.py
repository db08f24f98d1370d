"""OpenCV, imported on first use, with its private warnings off: what matters we say ourselves."""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def opencv() -> ModuleType:
    import cv2

    # It writes to stderr about every private tag of a GeoTIFF; errors reach us as None or exceptions.
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    module: ModuleType = cv2
    return module
