"""What binds, in one sentence; the diagnosis as people read it."""

from __future__ import annotations

from dataclasses import replace

from penstock.diagnosis.diagnosis import Applied, Diagnosis, Remedy, Verdict, rate_words
from penstock.diagnosis.present import Present
from penstock.diagnosis.variants import is_video
from penstock.flow.explaining.plan_words import size_words
from penstock.flow.making.chains import function_name
from penstock.flow.making.limiting import functions_of
from penstock.flow.measuring.cost_model import Limit, feed_rate
from penstock.flow.measuring.metrics import HOPS
from penstock.flow.measuring.waits import lock_names
from penstock.wording import counted

SHARED = 0.9  # of what the scarcer of both allows: then feed and model take cores from one another
STARVED = 0.5  # of the cores: other programs have more of them than this one


def verdict_of(present: Present) -> Verdict:
    """From the run of feed and model together, or of the feed alone."""
    together, limit = present.together, present.binding
    hop, feed, busy = _hop(present, limit), f"{rate_words(present.feed.rate)} samples/s", _busy(present)
    if together is None or present.model is None:
        words = f"the feed is bound by {hop}: it gives {feed}{_why(present, limit)}{busy}"
        return Verdict(limit.resource, hop, False, words)
    model = rate_words(present.model.rate)
    if not together.waiting.is_bound_by_data:
        words = f"training is bound by the model: it takes {model} samples/s, and the feed could give {feed}"
        if _cores_are_shared(present):
            words = (
                f"training is bound by the model, which shares the cores with the feed: alone it takes {model} and "
                f"the feed gives {feed}, together they reach {rate_words(together.rate)}{busy}"
            )
        return Verdict("model", "model", False, words)
    if limit.resource in ("cores", "workers") and (_is_slowed_by_model(present) or _cores_are_shared(present)):
        words = (
            f"training is bound by the cores that feed and model share, most of the feed's part is {hop}: alone the "
            f"feed gives {feed} and the model takes {model}, together they reach {rate_words(together.rate)}{busy}"
        )
        return Verdict("cores", hop, True, words)
    words = (
        f"training is bound by {hop}: the feed gives {feed}, the model could take {model}{_why(present, limit)}{busy}"
    )
    return Verdict(limit.resource, hop, True, words)


def _cores_are_shared(present: Present) -> bool:
    assert present.model is not None
    return present.modelled_rate < SHARED * min(present.binding.rate, present.model.rate)


def _is_slowed_by_model(present: Present) -> bool:
    """Whether the feed alone would be enough for a model that computes on the same cores."""
    assert present.model is not None
    return present.feed.rate > present.model.rate and present.model.computes


def _busy(present: Present) -> str:
    """A word on other programs, where they take the cores."""
    if present.profile.core_share(present.setup.cores) > STARVED:
        return ""
    could = feed_rate(present.cost, replace(present.setup, share=1.0))
    return f"; other programs use most of the cores, with all of them it could give {rate_words(could)}"


def _hop(present: Present, limit: Limit) -> str:
    """The hop that a limit is about."""
    alone, crowded = present.profile.alone, present.profile.crowded
    if limit.resource in ("disk", "lock"):
        return "read"
    if limit.resource == "deliver":
        return "deliver"
    if limit.resource == "gil" and _functions(present):
        return "transform"
    if limit.resource in ("cores", "gil"):
        return max(HOPS, key=lambda hop: crowded.hops[hop].cpu_seconds)
    return max(HOPS, key=lambda hop: alone.hops[hop].cpu_seconds + alone.hops[hop].wait_seconds)


def _functions(present: Present) -> list[str]:
    """The functions of the user."""
    running = present.flow.running
    steps = functions_of(running.program) if running.has_random_access else ()
    return list(dict.fromkeys(function_name(step.function) for step in steps))


def _why(present: Present, limit: Limit) -> str:
    setup = present.setup
    if limit.resource == "disk":
        return ", and waits for its bytes"
    if limit.resource == "lock":
        names = lock_names(leaf.source for leaf in present.flow.running.program.leaves)
        return f", and threads wait for {' and '.join(names) or 'a lock'}"
    if limit.resource == "gil":
        functions = ", ".join(_functions(present))
        what = f"{functions} holds" if functions else "its Python code holds"
        return f"; {what} the GIL, so that threads work one after another"
    if limit.resource == "workers":
        return f", with {counted(setup.workers, 'worker')} on {counted(setup.cores, 'core')}"
    if limit.resource == "calling thread":
        return ", made in the calling thread (workers=0), one after the other"
    if limit.resource == "deliver":
        return "; handing over small batches takes the time"
    if _hop(present, limit) == "read" and is_video(present.flow):
        return "; a frame is decoded from the frames before it"
    return ""


# The diagnosis as people read it: one table, one sentence, at most five remedies, and the machine.


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
