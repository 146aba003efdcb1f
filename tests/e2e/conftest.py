import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAAP = pathlib.Path(os.environ.get("WAAP_BINARY", ROOT / "build/exporter/waap")).absolute()


@pytest.fixture(scope="session")
def waap_binary():
    return WAAP


@pytest.fixture(scope="session")
def fake_binary():
    """The daemon with collectors that misbehave on request."""
    return WAAP.parent.parent / "tests/fakes/waap-fake"


@pytest.fixture(scope="session")
def source_root():
    return ROOT
