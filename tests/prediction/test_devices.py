"""Several devices: a copy of the network on each, and answers in order."""

from __future__ import annotations

import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.prediction.devices import Placed, dealt, devices_of, placed  # noqa: E402
from shape_making import Shapes  # noqa: E402


def test_devices_are_given_as_one_as_a_list_or_with_commas() -> None:
    cpu = torch.device("cpu")
    assert devices_of("cpu") == devices_of(cpu) == devices_of(["cpu"]) == (cpu,)
    assert devices_of("cuda:0, cuda:1") == devices_of(("cuda:0", "cuda:1"))
    for wrong in ("abacus", [], 3.5):
        with pytest.raises(ps.OptionError, match="device"):
            devices_of(wrong)


def test_work_is_dealt_to_all_copies_and_comes_back_in_order() -> None:
    copies = placed(torch.nn.Linear(2, 2), devices_of(["cpu", "cpu"]))
    assert copies[0].network is not copies[1].network
    both_work = threading.Barrier(2)  # passed only when two pieces of work are under way at once
    used: list[Any] = []

    def work(one: Placed, item: int) -> int:
        both_work.wait(timeout=600)
        used.append(one.network)
        return item

    assert list(dealt(copies, work, iter(range(20)))) == list(range(20))
    assert {id(network) for network in used} == {id(one.network) for one in copies}


def test_an_error_on_one_device_comes_out() -> None:
    copies = placed(torch.nn.Linear(2, 2), devices_of(["cpu", "cpu"]))

    def work(one: Placed, item: int) -> int:
        if item == 3:
            raise RuntimeError("out of memory")
        return item

    with pytest.raises(RuntimeError, match="out of memory"):
        list(dealt(copies, work, range(9)))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("penstock-device")]


def test_two_devices_answer_as_one_does(run: ps.Run) -> None:
    one, two = ps.predict(run, Shapes(21), device="cpu"), ps.predict(run, Shapes(21), device=["cpu", "cpu"])
    assert one.equals(two)  # type: ignore[union-attr,arg-type]
