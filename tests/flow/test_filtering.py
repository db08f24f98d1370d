from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import EveryKind, Pictures


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test remembers for itself."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "filters"


class Counted(Pictures):
    """Counts what is decoded, and knows itself by a word of the test."""

    def __init__(self, count: int = 150, word: str = "1", **more: Any) -> None:
        super().__init__(count, **more)
        self.word = word
        self.decoded: list[int] = []

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        self.decoded.append(raw.index)
        return super().decode(raw)

    def fingerprint(self) -> str:
        return self.word


def indices(flow: ps.Flow) -> list[int]:
    return [int(index) for batch in flow for index in batch["index"]]


def is_first_class(sample: dict[str, Any]) -> bool:
    return bool(sample["label"] == 0)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_filter_keeps_what_a_plain_loop_keeps_in_its_order(workers: int) -> None:
    def bright(sample: dict[str, Any]) -> Any:
        return sample["image"].mean() > 127.5

    source = Counted()
    expected = [index for index in range(150) if bright(source.decode(source.read(index)))]
    assert indices(ps.Flow(source, workers=workers).filter(bright).batch(7)) == expected
    assert 0 < len(expected) < 150


def test_a_filter_sees_what_the_steps_before_it_made() -> None:
    flow = ps.Flow(Counted(9)).map(lambda sample: {**sample, "label": sample["label"] + 1})
    assert indices(flow.filter(lambda sample: sample["label"] == 1).batch(2)) == [0, 3, 6]


def test_a_filter_after_where_and_take_looks_at_no_other_samples() -> None:
    source = Counted(30)
    flow = ps.Flow(source, workers=0).where(label=1).take(3).filter(lambda sample: True)
    assert flow.batch(9).running.samples() == 3
    assert source.decoded == [1, 4, 7]


def test_what_a_filter_found_is_remembered(memory: Path) -> None:
    first = indices(ps.Flow(Counted()).filter(is_first_class).batch(7))
    assert len(list(memory.glob("*.npy"))) == 1
    later = Counted()
    assert len(ps.Flow(later).filter(is_first_class).batch(7)) == 8
    assert later.decoded == []
    assert indices(ps.Flow(Counted()).filter(is_first_class).batch(7)) == first


def test_another_source_another_function_or_another_value_inside_it_is_found_anew(memory: Path) -> None:
    def class_is(number: int) -> Any:
        return lambda sample: sample["label"] == number

    assert len(indices(ps.Flow(Counted()).filter(class_is(0)).batch(7))) == 50
    assert indices(ps.Flow(Counted()).filter(class_is(1)).batch(7))[0] == 1
    other = Counted(word="2")
    indices(ps.Flow(other).filter(class_is(0)).batch(7))
    assert len(other.decoded) >= 200
    indices(ps.Flow(Counted()).map(lambda sample: sample).filter(class_is(0)).batch(7))
    assert len(list(memory.glob("*.npy"))) == 4


def test_another_choice_before_a_filter_is_found_anew() -> None:
    found = [
        indices(flow.filter(is_first_class).batch(7))
        for flow in (ps.Flow(Counted(30)), ps.Flow(Counted(30)).skip(1), ps.Flow(Counted(30)).where(group=["g3", "g4"]))
    ]
    assert found == [list(range(0, 30, 3)), list(range(3, 30, 3)), [3]]


def test_a_changed_default_global_or_partial_argument_is_another_function(monkeypatch: Any, memory: Path) -> None:
    from functools import partial

    from penstock.flow.caching.identity import identity_of_value

    def above(sample: dict[str, Any], least: int = 1) -> bool:
        return bool(sample["label"] > least + LEAST)

    first = identity_of_value(above)
    assert identity_of_value(partial(above, least=2)) != identity_of_value(partial(above, least=3))
    monkeypatch.setattr(above, "__defaults__", (2,))
    second = identity_of_value(above)
    monkeypatch.setitem(globals(), "LEAST", 5)
    assert len({repr(one) for one in (first, second, identity_of_value(above))}) == 3


LEAST = 0


def test_an_object_that_cannot_be_described_makes_a_filter_that_is_not_remembered(memory: Path) -> None:
    import threading

    lock = threading.Lock()

    def locked(sample: dict[str, Any]) -> bool:
        with lock:
            return True

    assert len(indices(ps.Flow(Counted(10)).filter(locked).batch(7))) == 10
    assert not memory.exists()


def test_a_source_without_a_word_of_its_own_is_not_remembered(memory: Path) -> None:
    flow = ps.Flow(EveryKind(6)).filter(lambda sample: sample["label"] == 0).batch(2, shapes="ragged")
    assert indices(flow) == [0, 2, 4]
    assert not memory.exists()


def test_files_that_changed_are_looked_at_again(tmp_path: Path) -> None:
    from penstock.codecs.images import encode_image

    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.png").write_bytes(encode_image(np.full((8, 8, 3), 40 * number, np.uint8), "png"))

    def dark(sample: dict[str, Any]) -> bool:
        return bool(sample["image"].mean() < 60)

    def found() -> list[int]:
        return indices(ps.Flow(ps.Images(tmp_path / "images")).filter(dark).batch(4))

    assert found() == found() == [0, 1]
    (folder / "0.png").write_bytes(encode_image(np.full((9, 9, 3), 200, np.uint8), "png"))
    assert found() == [1]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x93NUMPY\x01\x00garbage"])
def test_a_broken_file_of_a_remembered_filter_is_replaced(memory: Path, content: bytes) -> None:
    expected = indices(ps.Flow(Counted()).filter(is_first_class).batch(7))
    path = next(memory.glob("*.npy"))
    whole = path.read_bytes()
    path.write_bytes(content)
    assert indices(ps.Flow(Counted()).filter(is_first_class).batch(7)) == expected
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_to_is_no_reason_to_fail(memory: Path, monkeypatch: Any) -> None:
    memory.parent.parent.mkdir(exist_ok=True)
    (memory.parent.parent / "file").write_text("in the way")
    monkeypatch.setenv("PENSTOCK_CACHE", str(memory.parent.parent / "file"))
    assert len(indices(ps.Flow(Counted(9)).filter(is_first_class).batch(7))) == 3


@pytest.mark.parametrize("answer", [1, None, "yes", np.int64(1), np.array([True])])
def test_an_answer_that_is_not_true_or_false_is_refused(answer: Any) -> None:
    with pytest.raises(ps.OptionError, match=r"filter: .* gave .* for sample 0 \(pictures/0.png\)"):
        indices(ps.Flow(Counted(4)).filter(lambda sample: answer).batch(2))


def test_an_answer_of_numpy_is_taken() -> None:
    assert indices(ps.Flow(Counted(4)).filter(lambda sample: np.bool_(sample["label"] == 1)).batch(2)) == [1]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_bad_sample_is_named_by_the_filter(workers: int) -> None:
    flow = ps.Flow(Counted(broken=(77, 99)), workers=workers).filter(is_first_class).batch(2)
    with pytest.raises(ps.HopError, match=r"sample 77 \(pictures/77.png\)"):
        len(flow)


def test_an_error_of_the_function_names_function_and_sample() -> None:
    def fails(sample: dict[str, Any]) -> bool:
        raise LookupError("no such thing")

    with pytest.raises(ps.HopError, match=r"sample 0 .*fails of filter: LookupError: no such thing"):
        len(ps.Flow(Counted(4)).filter(fails).batch(2))


def test_bad_samples_are_left_out_and_counted_where_substitutes_are_wanted(memory: Path) -> None:
    flow = ps.Flow(Counted(12, broken=(3, 4)), on_bad_sample="substitute").filter(is_first_class).batch(2)
    assert indices(flow) == [0, 6, 9]
    assert "left out 2 samples" in flow.running.planned.notes[0]
    assert not memory.exists()
    with pytest.raises(ps.DataError, match=r"max_bad=1"):
        len(ps.Flow(Counted(12, broken=(3, 4)), on_bad_sample="substitute", max_bad=1).filter(is_first_class).batch(2))


def test_a_filter_after_shuffle_is_refused() -> None:
    with pytest.raises(ps.OptionError, match="must come before shuffle"):
        len(ps.Flow(Counted(4)).shuffle().filter(is_first_class).batch(2))
