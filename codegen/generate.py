"""``python -m codegen.generate``: ``schemas/`` into ``kraftd/messages/``.

With ``--check`` it writes nothing; the exit code is 1 if the committed modules do not fit the schemas.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen.emit_message import module_text
from codegen.emit_registry import registry_text
from codegen.extract import SCHEMAS
from codegen.model import load

MESSAGES = Path(__file__).resolve().parent.parent / "kraftd" / "messages"
PACKAGE_TEXT = '''"""Kafka's messages: one module each, with its Structs and its field table.

Generated from ``schemas/`` by ``python -m codegen.generate``; do not edit.  Nothing is imported
here: a module is loaded when its message is first needed.
"""
'''


def generate(schemas: Path) -> dict[str, str]:
    """File name in ``kraftd/messages/`` -> text. Messages without a valid version have no file."""
    messages = [message for message in load(schemas) if message.valid is not None]
    files = {f"{message.module}.py": module_text(message) for message in messages}
    files["registry.py"] = registry_text(messages)
    files["__init__.py"] = PACKAGE_TEXT
    return files


def differences(files: dict[str, str], directory: Path) -> list[str]:
    """Names of the files in a directory that are missing, superfluous or different."""
    present = {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.py")}
    return sorted(name for name in files.keys() | present.keys() if files.get(name) != present.get(name))


def write(files: dict[str, str], directory: Path) -> None:
    """Make the modules of a directory exactly these."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in differences(files, directory):
        if name in files:
            (directory / name).write_text(files[name], encoding="utf-8")
        else:
            (directory / name).unlink()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether the output is current")
    options = parser.parse_args(arguments)
    files = generate(SCHEMAS)
    changed = differences(files, MESSAGES)
    if options.check:
        for name in changed:
            print(f"kraftd/messages/{name}: not what schemas/ says; run make codegen")
        return 1 if changed else 0
    write(files, MESSAGES)
    print(f"{len(files)} modules in kraftd/messages/, {len(changed)} of them changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
