"""How the feed did: whether data or compute was the limit, and what each of the five hops cost."""

from __future__ import annotations

from penstock.flow.measuring.metrics import HOPS
from penstock.reporting.charts import Chart, Series, Share, line_chart, share_bar
from penstock.reporting.feeds import FeedTotals, HopTotal, feed_totals, limit_sentence, rates
from penstock.reporting.packs import readable_bytes
from penstock.reporting.page import Markup, folded, joined, note, table, tag
from penstock.reporting.stories import Story
from penstock.reporting.wording import MISSING, percent, shown

FEWEST_RATES = 3  # with fewer there is no course to see
WAITING, COMPUTING = 1, 0  # colours


def feed(story: Story) -> Markup:
    """A sentence, two bars, the table of hops, and the rate while training; where there are stages, of each."""
    if story.stages:
        return joined([joined([tag("h3", f"Stage {stage.name}"), _of_stage(stage)]) for stage in story.stages])
    totals = feed_totals(story.feed)
    if totals is None:
        return _nothing()
    return joined([_lead(totals), _costs(story, totals)])


def _of_stage(story: Story) -> Markup:
    totals = feed_totals(story.feed)
    if totals is None:
        return _nothing()
    return joined([_lead(totals), folded("what each hop cost", _costs(story, totals))])


def _nothing() -> Markup:
    return note("Nothing was logged of the feed.")


def _lead(totals: FeedTotals) -> Markup:
    return tag("p", limit_sentence(totals), class_="lead")


def _costs(story: Story, totals: FeedTotals) -> Markup:
    bars = [_time_bar(totals), _hop_bar(totals)]
    return joined(
        [
            tag("div", [bar for bar in bars if bar is not None], class_="grid"),
            table(HEAD, [_row(hop, totals) for hop in totals.hops], label="What each hop cost"),
            tag("div", _rate_chart(story), class_="grid"),
        ]
    )


HEAD = (
    "hop",
    "samples",
    "samples per core second",
    "CPU ms a sample",
    "share of CPU",
    "waiting ms a sample",
    "bytes a sample",
)


def _time_bar(totals: FeedTotals) -> Markup | None:
    shares = [
        Share("in the network", totals.used_seconds, COMPUTING, f"{totals.used_seconds:,.1f} s"),
        Share("waiting for data", totals.waited_seconds, WAITING, f"{totals.waited_seconds:,.1f} s"),
    ]
    return share_bar("Where the time of training went", shares)


def _hop_bar(totals: FeedTotals) -> Markup | None:
    shares = [
        Share(hop.name, hop.cpu_seconds, slot, f"{hop.cpu_seconds:,.2f} CPU seconds")
        for slot, hop in enumerate(totals.hops)
    ]
    return share_bar("Where the CPU time of the feed went", shares)


def _row(hop: HopTotal, totals: FeedTotals) -> list[str]:
    return [
        hop.name,
        shown(hop.items),
        f"{hop.items / hop.cpu_seconds:,.0f}" if hop.cpu_seconds else MISSING,
        f"{hop.cpu_milliseconds:,.3f}",
        percent(hop.cpu_seconds / totals.cpu_seconds) if totals.cpu_seconds else MISSING,
        f"{hop.wait_milliseconds:,.3f}",
        readable_bytes(hop.bytes / hop.items) if hop.items and hop.bytes else MISSING,
    ]


def _rate_chart(story: Story) -> Markup | None:
    points = rates(story.feed)
    if len(points) < FEWEST_RATES:
        return None
    return line_chart(
        Chart("Samples per second", "second", from_zero=True), [Series("samples per second", points, len(HOPS))]
    )
