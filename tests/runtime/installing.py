"""Packages with entry points, in a directory of the path like installed ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(directory: Path, module: str, code: str, group: str, entry_points: Mapping[str, str]) -> None:
    """Write a package of one module; what it has for entry points is given by their names."""
    (directory / f"{module}.py").write_text(code)
    info = directory / f"{module}-1.dist-info"
    info.mkdir()
    name = module.replace("_", "-")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = [f"[{group}]", *(f"{key} = {module}:{value}" for key, value in entry_points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
