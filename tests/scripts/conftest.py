"""`--record` writes the golden output of the scenario scripts anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the output of the scenario scripts anew")
