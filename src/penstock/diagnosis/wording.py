"""The diagnosis as people read it: one table, one sentence, at most five remedies, and the machine."""

from __future__ import annotations

from penstock.diagnosis.diagnosis import Applied, Diagnosis, Remedy, rate_words
from penstock.flow.explaining.wording import size_words
from penstock.wording import counted


def diagnosis_words(found: Diagnosis) -> str:
    """All of it."""
    lines = [
        f"{found.name}: batches of {found.rows:,}, {_workers(found)}, {counted(found.prefetch, 'batch')} ahead",
        "",
        found.table,
        "",
        f"{found.verdict.sentence[0].upper()}{found.verdict.sentence[1:]}.",
        *_waits(found),
        "",
        *_remedies(found),
        f"Machine: {found.hardware}.",
        *[f"Thin: {words}." for words in found.thin],
        _memory(found),
        *[f"Note: {note}." for note in found.notes],
    ]
    return "\n".join(lines)


def _workers(found: Diagnosis) -> str:
    if not found.workers:
        return "made in the calling thread"
    return f"{counted(found.workers, 'worker')} ({found.executor})"


NOTABLE_MILLISECONDS = 0.1
HEAD = f"{'hop':<10}{'samples/s alone':>17}{'CPU ms/sample':>16}{'share of CPU':>15}{'waiting ms/sample':>20}"


def table_of(found: Diagnosis) -> str:
    """The five hops, the feed as a whole, the model, and both together."""
    lines = [HEAD]
    for hop in found.hops:
        rate = "–" if hop.samples_per_second is None else rate_words(hop.samples_per_second)
        lines.append(
            f"{hop.name:<10}{rate:>17}{hop.cpu_milliseconds:>16.3f}{hop.cpu_share:>15.0%}{hop.wait_milliseconds:>20.3f}"
        )
    lines.append(f"{'feed':<10}{rate_words(found.feed_rate):>17}")
    if found.model_rate is not None and found.training_rate is not None:
        lines.append(f"{'model':<10}{rate_words(found.model_rate):>17}")
        waits = f"the model waits {found.waiting_share:.0%} of its time"
        lines.append(f"{'together':<10}{rate_words(found.training_rate):>17}   {waits}")
    return "\n".join(lines)


def _waits(found: Diagnosis) -> list[str]:
    lines = []
    if found.gil_milliseconds > NOTABLE_MILLISECONDS:
        lines.append(f"A sample holds the GIL for {found.gil_milliseconds:.2g} ms.")
    if found.lock_milliseconds > NOTABLE_MILLISECONDS:
        lines.append(f"A sample holds the lock of its source for {found.lock_milliseconds:.2g} ms.")
    if found.reading is not None and found.reading.cold_per_second is not None:
        lines.append(
            f"Reading alone gives {rate_words(found.reading.cold_per_second)} samples/s from the disk "
            f"({found.reading.cold_major_faults:.1f} page faults each) and "
            f"{rate_words(found.reading.warm_per_second)} from memory."
        )
    return lines


def _remedies(found: Diagnosis) -> list[str]:
    lines = [line for one in found.applied for line in _applied(one)]
    lines += [f"{found.written}."] if found.written else []
    lines += [""] if lines else []
    if not found.remedies:
        return [*lines, "Nothing that could be tried here would make it faster by a tenth or more.", ""]
    lines.append("Remedies, by what they should bring:")
    for number, remedy in enumerate(found.remedies, start=1):
        lines += _remedy(number, remedy)
    return [*lines, ""]


def _remedy(number: int, remedy: Remedy) -> list[str]:
    needs = f", {remedy.needs}" if remedy.needs else ""
    lines = [f"  {number}. {remedy.what} (× {remedy.speed_up:.1f}{needs})", f"     {remedy.how}"]
    return [*lines, f"     {remedy.warning}"] if remedy.warning else lines


def _applied(one: Applied) -> list[str]:
    """What it did, and what was measured before and after; all other numbers are from after it."""
    done = "Applied" if one.is_kept else "Tried and taken back"
    rates = f"{rate_words(one.before)} → {rate_words(one.after)} samples/s, × {one.speed_up:.1f}"
    return [f"{done}: {one.remedy.what}: {rates} (predicted × {one.remedy.speed_up:.1f}).", f"  {one.remedy.how}"]


def _memory(found: Diagnosis) -> str:
    memory = found.memory
    return (
        f"Memory: {size_words(memory.batch)} a batch, {size_words(memory.batches)} for those under way; "
        f"this process took {size_words(memory.peak)} at most."
    )
