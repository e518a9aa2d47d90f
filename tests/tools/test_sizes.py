"""Modules and functions stay small enough to be read as a whole."""

from __future__ import annotations

import ast
from pathlib import Path

MAX_MODULE_LINES, MAX_FUNCTION_LINES = 500, 70
PACKAGE = Path(__file__).parents[2] / "kraftd"
GENERATED = {PACKAGE / "messages", PACKAGE / "configdef"}
MODULES = [path for path in PACKAGE.rglob("*.py") if path.parent not in GENERATED]


def test_modules_have_few_lines() -> None:
    large = [path for path in MODULES if len(path.read_text().splitlines()) > MAX_MODULE_LINES]
    assert MODULES and not large


def test_functions_have_few_lines() -> None:
    large = [
        f"{path}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert not large
