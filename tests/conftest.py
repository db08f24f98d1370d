"""What every test may ask for."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from trained_runs import read_only, shared_folder, train_crowns, train_mice, train_recipe, train_shapes

if TYPE_CHECKING:
    import penstock as ps

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
# Networks of tests are small. Threads of torch wait for each other by spinning: on a busy machine two of them make a
# training take minutes instead of seconds. Programs that tests start inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long examples take depends on what else the machine does, and says nothing about the code.
hypothesis.settings.register_profile("penstock", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("penstock")

# A shell that starts tests in the background ignores Ctrl-C for them, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files for trials; users do not have them, so their absence skips the test."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder with real data is not beside this repository")
    return SHARED_DATA


@pytest.fixture(scope="session", autouse=True)
def cache_of_this_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Nothing that flows remember leaves this run, and nothing that others remembered comes into it."""
    folder = tmp_path_factory.mktemp("penstock-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_CACHE", str(folder))
        yield folder


# Trained Runs: made once, read by many tests. A test that writes into a Run takes a copy of it.


@pytest.fixture(scope="session")
def shapes_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ps.Run]:
    """A Run on classification."""
    yield from _shared_run(tmp_path_factory, "shapes", train_shapes)


@pytest.fixture(scope="session")
def crowns_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ps.Run]:
    """A Run on detection that finds crowns in `scene_making.Scenes`."""
    yield from _shared_run(tmp_path_factory, "crowns", train_crowns)


@pytest.fixture(scope="session")
def mice_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ps.Run]:
    """A Run on behaviour; mice.pack, videos and labels are beside its folder."""
    yield from _shared_run(tmp_path_factory, "mice", train_mice)


@pytest.fixture(scope="session")
def recipe_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with shapes.yaml, shapes, shapes.pack and runs/shapes, as `penstock train shapes.yaml` left it."""
    _skip_without_training()
    with read_only(shared_folder(tmp_path_factory, WORKER), "recipe", train_recipe) as folder:
        yield folder


def _shared_run(factory: pytest.TempPathFactory, name: str, train: Callable[[Path], None]) -> Iterator[ps.Run]:
    _skip_without_training()
    import penstock as ps

    with read_only(shared_folder(factory, WORKER), name, train) as folder:
        yield ps.Run(folder / "run")


def _skip_without_training() -> None:
    for library in ("torch", "torchvision", "lightning"):
        pytest.importorskip(library)
