"""What every test may ask for."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

# How long examples take depends on what else the machine does, and says nothing about the code.
hypothesis.settings.register_profile("penstock", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("penstock")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files for trials; users do not have them, so their absence skips the test."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder with real data is not beside this repository")
    return SHARED_DATA
