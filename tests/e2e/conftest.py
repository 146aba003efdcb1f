import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAAP = pathlib.Path(os.environ.get("WAAP_BINARY", ROOT / "build/exporter/waap")).absolute()


@pytest.fixture(scope="session")
def waap_binary():
    return WAAP
