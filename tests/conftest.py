"""What every test may ask for."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

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
