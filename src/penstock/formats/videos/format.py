"""Videos, and folders of nothing else."""

from __future__ import annotations

from penstock.formats.format import Format
from penstock.formats.paths import VIDEO_ENDINGS

VIDEOS = Format("videos", "penstock.formats.videos.videos:Videos", endings=tuple(VIDEO_ENDINGS))
