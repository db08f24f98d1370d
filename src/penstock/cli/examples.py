"""What stands at the end of a command's help."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """Commands as a user types them, each on a line of its own."""
    # \b keeps click from filling the lines up.
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  penstock {line}" for line in lines)])
