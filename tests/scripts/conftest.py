"""`--record` writes the golden output of the scenario scripts."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the golden output of the scenario scripts")
