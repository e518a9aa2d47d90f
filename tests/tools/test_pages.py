"""The pages agree with the project: links, anchors, paths, names of invariants, the diagram of imports."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)", re.M)
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
PATH = re.compile(
    r"`([\w.{},*-]+(?:/[\w.{},*-]+)*\.(?:py|md|txt|java|toml|yaml|lock)|(?:kraftd|tests|docs)/[^`\s]*)`"
)
# Names that stand for any file of their kind.
PATTERNS = {
    "kraftd/controller/<subject>/",
    "kraftd/controller_node/apis/api_NN_name.py",
    "kraftd/metadata_topic_node/apis/api_NN_name.py",
    "tests/scripts/name.txt",
}
INVARIANT = re.compile(r"(?<![\w.:-])([SCDLT]\d{1,2})(?![\w.:])")
FOLDERS = ("kraftd", "tests", "testkit", "bench", "tools", "docs", "codegen")
OF_ITS_OWN = ("kraftd/messages/",)  # generated, with Kafka's terms
PROTOCOL_PACKAGES = {
    "messages",
    "ground",
    "named_tuple",
    "types",
    "configdef",
    "acl",
    "histogram",
    "recent",
    "input_file",
    "control_characters",
}  # drawn with `wire`


@cache
def tracked() -> tuple[str, ...]:
    """The files of the project, including those not yet committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return tuple(
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    )


def pages() -> list[str]:
    return [name for name in tracked() if name.endswith(".md") and (ROOT / name).is_file()]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, derived from their words."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", page.read_text())):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = anchor = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{name}-{number}"
        found.add(anchor)
    return found


@pytest.mark.parametrize("name", pages())
def test_links_of_a_page_lead_to_files_and_headings_that_exist(name: str) -> None:
    page = ROOT / name
    broken = []
    for link in LINK.findall(page.read_text()):
        if link.startswith(("http:", "https:")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("name", [name for name in pages() if name != "CHANGELOG.md"])
def test_files_that_a_page_names_exist(name: str) -> None:
    named = set(PATH.findall((ROOT / name).read_text())) - PATTERNS
    assert not [path for path in sorted(named) for one in variants(path) if not is_there(one)]


def variants(path: str) -> Iterator[str]:
    """`a/{b,c}.py` is two paths."""
    found = re.search(r"\{([^}]*)\}", path)
    for word in found[1].split(",") if found else [""]:
        yield path.replace(found[0], word) if found else path


def is_there(path: str) -> bool:
    """Return whether a file or folder has that name, or a path that ends with it."""
    pattern = re.escape(path.strip("/")).replace(r"\*", "[^/]*").replace("NN", r"\d\d")
    return any(re.search(rf"(^|/){pattern}(/|$)", name) for name in tracked())


def test_every_invariant_that_is_named_anywhere_is_defined() -> None:
    defined = set(re.findall(r"^\| ([SCDLT]\d+) \|", (ROOT / "docs/invariants.md").read_text(), re.M))
    unknown = [
        f"{name}: {invariant}"
        for name in tracked()
        if name.endswith((".py", ".md")) and name.split("/")[0] in FOLDERS and not name.startswith(OF_ITS_OWN)
        if (ROOT / name).is_file()
        for invariant in INVARIANT.findall((ROOT / name).read_text())
        if invariant not in defined
    ]
    assert not unknown


def test_the_diagram_of_imports_shows_every_import_between_packages() -> None:
    reachable = reachable_in_the_diagram()
    hidden = {
        f"{package} imports {other} ({name})"
        for name, package, other in imports()
        if drawn_as(package) != drawn_as(other) and drawn_as(other) not in reachable[drawn_as(package)]
    }
    assert not hidden


def reachable_in_the_diagram() -> dict[str, set[str]]:
    """For each package of the diagram, the packages that its arrows reach, directly or not."""
    diagram = (ROOT / "docs/ARCHITECTURE.md").read_text().partition("flowchart TD\n")[2].partition("```")[0]
    arrows: dict[str, set[str]] = {}
    for line in re.sub(r'\["[^"]*"\]', "", diagram).splitlines():
        groups = [re.findall(r"\w+", group) for group in line.split("-->")]
        for group in groups:
            for one in group:
                arrows.setdefault(one, set())
        for group, following in pairwise(groups):
            for one in group:
                arrows[one].update(following)

    def closure(one: str) -> set[str]:
        return arrows[one].union(*(closure(other) for other in arrows[one]))

    return {one: closure(one) for one in arrows}


def drawn_as(package: str) -> str:
    return "wire" if package in PROTOCOL_PACKAGES else package


def imports() -> Iterator[tuple[str, str, str]]:
    """File, its package and the imported package, within the product."""
    for name in tracked():
        parts = name.removesuffix(".py").split("/")
        if parts[0] != "kraftd" or not name.endswith(".py") or len(parts) < 3 or not (ROOT / name).is_file():
            continue
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            modules: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                modules = (
                    [node.module] if "." in node.module else [f"{node.module}.{a.name}" for a in node.names]
                )
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            for module in modules:
                if module.startswith("kraftd."):
                    yield name, parts[1], module.split(".")[1]


def test_the_product_its_tools_and_its_benchmarks_import_no_tests() -> None:
    source = re.compile(r"^\s*(?:from|import) tests\b", re.M)
    folders = ("kraftd", "codegen", "testkit", "bench", "tools")
    files = (name for name in tracked() if name.endswith(".py") and name.split("/")[0] in folders)
    assert not [
        name for name in files if (ROOT / name).is_file() and source.search((ROOT / name).read_text())
    ]


def test_every_test_that_the_page_of_kips_names_exists() -> None:
    page = (ROOT / "docs/kips.md").read_text()
    named = set(re.findall(r"`(test_\w+|\w+\.txt)`", page))
    tests = [name for name in tracked() if name.startswith("tests/") and (ROOT / name).is_file()]
    defined = {name.rpartition("/")[2] for name in tests if name.endswith(".txt")}
    for name in tests:
        if name.endswith(".py"):
            defined |= set(re.findall(r"^ *(?:async )?def (test_\w+)", (ROOT / name).read_text(), re.M))
    assert len(named) > 60 and named <= defined, sorted(named - defined)
