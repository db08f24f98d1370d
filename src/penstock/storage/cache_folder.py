"""Where Penstock keeps what it worked out once: settings that were found, samples that a filter chose."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """PENSTOCK_CACHE, else `penstock` in the cache folder of the user; it need not exist."""
    own = os.environ.get("PENSTOCK_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "penstock"
