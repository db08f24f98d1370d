"""A row of a table as a picture: one bar for each contestant, as SVG that needs nothing else."""

from __future__ import annotations

from html import escape

from benchmarks.tables import Row, Value, shown

WIDTH, NAME_PX, AMOUNT_PX, LINE_PX, BAR_PX = 760, 270, 90, 24, 16
COLOURS = {"penstock": "#00796b", "peer": "#90a4ae", "other": "#cfd8dc", "limit": "none"}
FRAME = "#455a64"
# Readable on white and on black: the page around it may be either.
TEXT = "fill:#78909c;font:13px system-ui,sans-serif"


def chart(row: Row) -> str:
    """Bars of all that took part, the best first; a limit is an outline."""
    values = row.present
    height = LINE_PX * len(values) + 28
    most = max((value.amount for value in values), default=1.0) or 1.0
    words = "less is better" if row.smaller_is_better else "more is better"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(row.title)}</title>",
            *(part for place, value in enumerate(values) for part in _bar(place, value, most)),
            f'<text x="{NAME_PX}" y="{height - 8}" style="{TEXT}">{escape(row.unit)}, {words}</text>',
            "</svg>",
            "",
        ]
    )


def _bar(place: int, value: Value, most: float) -> list[str]:
    top = place * LINE_PX + 4
    length = max(1.0, (WIDTH - NAME_PX - AMOUNT_PX) * value.amount / most)
    frame = f' stroke="{FRAME}" stroke-dasharray="4 3"' if value.role == "limit" else ""
    return [
        f'<text x="{NAME_PX - 8}" y="{top + 13}" text-anchor="end" style="{TEXT}">{escape(value.name)}</text>',
        f'<rect x="{NAME_PX}" y="{top}" width="{length:.1f}" height="{BAR_PX}" fill="{COLOURS[value.role]}"{frame}/>',
        f'<text x="{NAME_PX + length + 6:.1f}" y="{top + 13}" style="{TEXT}">{shown(value.amount)}</text>',
    ]
