"""What tells events apart beside video, behaviour and time: subjects, and columns that are not used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from penstock.errors import Problem, nearest
from penstock.formats.tables import Table, plain
from penstock.formats.videos.frame_labels import BACKGROUND, Event
from penstock.formats.videos.label_events import (
    BEHAVIOUR_NAMES,
    SUBJECT_NAMES,
    VIDEO_NAMES,
    LabelEvents,
    texts_or_empty,
)
from penstock.formats.videos.label_options import ANY, EACH

NO_SUBJECT = "No focal subject"  # as BORIS writes it
_SHOWN = 5
# Columns that describe a row and do not tell it apart from others, without case, blanks and signs.
_DESCRIBING = re.compile(
    r"comment.*|note.*|remark.*|description|.*date|.*duration.*|total.*length|fps.*|framerate|source|.*offset.*|"
    r"behaviou?rtype|type|(image|frame)(index|filepath|number).*|media.*|.*probability|score|confidence|bout.*|unnamed.*|"
    r"index|id|"
)


def with_subject(content: LabelEvents, subject: str | None, is_used: Callable[[str], bool]) -> LabelEvents:
    """The events of the subject that is meant; several of one video that nobody chose from are a problem.

    `is_used` says of the name of a video whether its events are used.
    """
    if subject == ANY:
        return content
    if subject == EACH:
        return content._replace(events=tuple(map(_named_by_subject, content.events)))
    if subject is None:
        return content._replace(problems=[*content.problems, *_merged(content, is_used)])
    chosen = tuple(event for event in content.events if _name(event) == subject)
    return content._replace(events=chosen)


def subject_problems(contents: Sequence[LabelEvents], subject: str | None, files: Iterable[str]) -> list[Problem]:
    """That a subject which was asked for is in no table."""
    names = sorted({_name(event) for content in contents for event in content.events if event.subject})
    if subject in (None, ANY) or (subject == EACH and names) or subject in names:
        return []
    what = (
        f"no row has the subject {subject!r}" if names else f"subject={subject!r} is given, and no table has subjects"
    )
    there = f"There are {', '.join(names)}.{nearest(str(subject), names)}" if names else "Leave the option out"
    return [Problem(next(iter(files), "labels"), None, what, there)]


def _name(event: Event) -> str:
    return event.subject or NO_SUBJECT


def _named_by_subject(event: Event) -> Event:
    is_named = event.subject not in ("", NO_SUBJECT) and event.behaviour not in ("", BACKGROUND)
    return event._replace(behaviour=f"{event.subject}:{event.behaviour}") if is_named else event


def _merged(content: LabelEvents, is_used: Callable[[str], bool]) -> list[Problem]:
    """What would be put together: an error if it is one behaviour of several subjects, else a warning."""
    subjects: dict[str, dict[str, set[str]]] = {}
    for event in content.events:
        subjects.setdefault(event.video, {}).setdefault(event.behaviour, set()).add(_name(event))
    for video, behaviours in subjects.items():
        names = sorted(set().union(*behaviours.values()))
        if len(names) < 2 or (content.names_videos and not is_used(video)):
            continue
        shared = [behaviour for behaviour, own in behaviours.items() if len(own) > 1]
        where = f" in {video}" if video else ""
        what = f"the events{where} are of {len(names)} subjects: {_listed(names)}"
        what += (
            f"; {_listed(shared)} of all of them would be one class" if shared else "; their classes are put together"
        )
        remedy = f"Choose one by subject={names[0]!r}, or a class for each by subject='each', or all by subject='any'"
        return [Problem(content.table.name, None, what, remedy, warning=not shared)]
    return []


def unused_columns(table: Table, used: Iterable[str | None]) -> list[Problem]:
    """Columns of words that tell rows of events apart and are not used, such as modifiers or observations."""
    names = [name for name in table.columns if name not in set(used) and not _DESCRIBING.fullmatch(plain(name))]
    roles = (VIDEO_NAMES, SUBJECT_NAMES, BEHAVIOUR_NAMES)
    classes = list(zip(*(texts_or_empty(table, role).tolist() for role in roles), strict=True))
    telling = {name: values for name in names if (values := _telling(table, name, classes))}
    if not telling:
        return []
    words = "; ".join(f"{name} ({_listed(values)})" for name, values in telling.items())
    columns = "column" if len(telling) == 1 else "columns"
    what = f"not used: the {columns} {words}. Rows that differ only there are one class"
    remedy = "Write what matters into the behaviour, or keep the rows that you mean"
    return [Problem(table.name, None, what, remedy, warning=True)]


def _telling(table: Table, name: str, classes: Sequence[tuple[str, ...]]) -> list[str]:
    """The words of a column, if it has several for one class of one video; empty where it does not."""
    texts = [text if text.lower() not in ("na", "nan", "none") else "" for text in table.texts(name).tolist()]
    differs = len(set(zip(classes, texts, strict=True))) > len(set(classes))
    found = sorted(set(texts) - {""})
    return found if differs and not all(map(_is_number, found)) else []


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
