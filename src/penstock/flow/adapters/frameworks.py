"""Frameworks that only their own users install."""

from __future__ import annotations

import importlib
from typing import Any

from penstock.errors import MissingExtra


def framework(module: str, purpose: str) -> Any:
    """Import a framework, or say the exact pip line that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing == module:
            raise MissingExtra(f"{purpose} needs {module}. Run: pip install {module}") from error
        if module == "keras" and missing in ("tensorflow", "jax", "torch"):
            raise MissingExtra(
                f"Keras is set to run on {missing}, which is not installed. Run: pip install {missing}, or set the "
                "environment variable KERAS_BACKEND to torch, jax or tensorflow before Keras is imported."
            ) from error
        raise
