"""``python -m tools.circles [PACKAGE_DIRECTORY]``: finds circles of imports, including imports for types.

Import-linter checks layers between packages; two modules of one package may still need each other. Neither
can then be read, tested or replaced without the other, even if types alone need it. Imports inside functions
count, too. So do modules that are loaded by name, as those of the tables of routes: a text that names a
module, with the package or without, where a loader is used. Ends with 1 and a line for each circle.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

LOADERS = {"import_module", "handler_of", "routes_of"}  # what loads modules by name

Graph = Mapping[str, set[str]]


def import_graph(directory: Path) -> dict[str, set[str]]:
    """The modules of the package in `directory` that each of them imports, anywhere in its text."""
    files = {module_name(path, directory): path for path in directory.rglob("*.py")}
    return {
        name: {target for target in needed(ast.parse(path.read_text()), name, files) if target != name}
        for name, path in files.items()
    }


def module_name(path: Path, directory: Path) -> str:
    """``kraftd.raft.core`` for its file; a package for its ``__init__.py``."""
    parts = path.relative_to(directory.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def needed(tree: ast.AST, importer: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a module imports, or loads by name."""
    for written in imported(tree, importer, is_package=modules[importer].stem == "__init__"):
        if (target := nearest(written, modules)) is not None:
            yield target
    if not any(isinstance(node, ast.Name) and node.id in LOADERS for node in ast.walk(tree)):
        return
    root = importer.partition(".")[0]
    for text in texts(tree):
        name = text.rpartition(" ")[2].partition(":")[0]  # "decide a.b:function" names a.b
        if "." in name:
            yield from {name, f"{root}.{name}"} & modules.keys()


def texts(tree: ast.AST) -> Iterator[str]:
    """All texts in a module; of formatted ones those of texts, or of names of the module's own texts."""
    known = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [getattr(part, "value", None) for part in node.values]
            yield "".join(
                part if isinstance(part, str) else known.get(getattr(part, "id", ""), "?") for part in parts
            )


def imported(tree: ast.AST, importer: str, *, is_package: bool) -> Iterator[str]:
    """The names that a module imports; ``from a import b`` gives ``a.b``, a module or a name in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = importer.split(".")
                parents = parents[: len(parents) - node.level + is_package]
                base = ".".join([*parents, base] if base else parents)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def nearest(name: str, modules: Mapping[str, object]) -> str | None:
    """The module that a written name is or is in; None for one of another package."""
    while name:
        if name in modules:
            return name
        name = name.rpartition(".")[0]
    return None


def circles(graph: Graph) -> list[list[str]]:
    """Sets of modules that need each other, directly or not (strongly connected components, Tarjan)."""
    found: list[list[str]] = []
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in order:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], order[target])
        if lowest[name] == order[name]:
            at = stack.index(name)
            members = stack[at:]
            del stack[at:]
            if len(members) > 1:
                found.append(sorted(members))

    sys.setrecursionlimit(10_000)
    for name in sorted(graph):
        if name not in order:
            visit(name)
    return sorted(found)


def main(arguments: list[str]) -> int:
    """Print the findings; return the exit code."""
    directory = Path(arguments[0] if arguments else "kraftd")
    found = circles(import_graph(directory))
    for members in found:
        print(f"a circle of imports: {', '.join(members)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
