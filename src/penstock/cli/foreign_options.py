"""Options by the names that other programs give them, for the hint when one is not known."""

from __future__ import annotations

import click

from penstock.errors import nearest_name

# DeepForest's names, and what they are here.
FOREIGN = {
    "--patch-size": "--tile-px",
    "--patch-overlap": "--overlap",
    "--root-dir": "--images",
    "--score-thresh": "--score-threshold",
    "--nms-thresh": "--nms-threshold",
    "--iou-threshold": "--iou",
    "--save-dir": "--output",
    "--savedir": "--output",
    "--class-file": "--classes",
    "--annotations-file": "--boxes",
    "--image-min-side": "--shortest-side",
}


def with_better_hint(error: click.NoSuchOption) -> click.UsageError:
    """Name the option that has this meaning here, or else the one that is most like it."""
    if error.ctx is None:
        return error
    there = [name for parameter in error.ctx.command.params for name in parameter.opts if name.startswith("--")]
    given = error.option_name.lower().replace("_", "-")
    meant = FOREIGN.get(given)
    found = meant if meant in there else nearest_name(given, there)
    hint = "" if found is None else f" Did you mean {found!r}?"
    return click.UsageError(f"No such option {error.option_name!r}.{hint}", ctx=error.ctx)
