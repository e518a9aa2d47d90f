"""``python -m tools.prose [DIRECTORY]``: the rules of CONTRIBUTING.md for prose that a program can check.

Comments, docstrings and pages name the actor, so they have none of INDEFINITE and ALL_OR_NONE, and no WHO as
a subject. They use the field's terms, so none of TERMS. A sentence has at most MAX_WORDS words. The name of a
test has at most MAX_NAME characters, none of INDEFINITE and none of TERMS_OF_A_NAME. The docstring of a
boolean begins with "Return whether". Code, quoted words and columns of a docstring are left out, and tables
but for single words. Ends with 1 and a line for each finding.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import deque
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("kraftd", "codegen", "tests", "testkit", "bench", "tools")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md", "docs")
GENERATED = ("kraftd/messages/", "docs/configuration.md", "docs/conformance.md")
MAX_WORDS = 25
MAX_NAME = 80
INDEFINITE = "whoever|whomever|somebody|someone|so manieth"
ALL_OR_NONE = "anybody|anyone|everybody|everyone|nobody"
WORDS = re.compile(rf"(?<![\"`.\w])({INDEFINITE}|{ALL_OR_NONE})(?![\"`\w])", re.I)
WHO = re.compile(r"(?:\A|[.:;(|]\s+|\b(?:of|by|as|than|only)\s+)who\b(?![^.|]*\?)", re.I)
TERMS = re.compile(r"\b((?:is|are|was|were|be|been|being) told|heard? of|hears of|in turns)\b", re.I)
WORDS_OF_A_NAME = re.compile(rf"_({INDEFINITE})(_|$)")
TERMS_OF_A_NAME = re.compile(r"_((?:is|are|was|were|be)_told|tells?|says?|hears?|knows?_of|in_turns)(?:_|$)")

QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|^ {4,}.*", re.M)
SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n\s*\n")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +", re.M)
CODE = re.compile(r"`[^`]*`|\|.*|^ {4,}.*|^[-*#>|].*|^.*\S {3,}\S.*", re.M)

Finding = tuple[str, int, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.Module | ast.ClassDef | Function


def definitions_in(source: str) -> list[Definition]:
    """The module, its classes and functions; expressions, which are most of a tree, have none of them."""
    found: list[Definition] = []
    todo: deque[ast.AST] = deque([ast.parse(source)])
    while todo:
        node = todo.popleft()
        if isinstance(node, Definition):
            found.append(node)
        inner = (ast.stmt, ast.excepthandler, ast.match_case)
        todo.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, inner))
    return found


def docstrings(definitions: list[Definition]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring."""
    for node in definitions:
        text = ast.get_docstring(node)
        if text:
            yield getattr(node, "lineno", 1), text


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each block of comments."""
    block: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            line, column = token.start
            ends_code = token.line[:column].strip() != ""
            if block and (ends_code or (line - 1, column) != block[-1][:2]):
                yield block[0][0], "\n".join(text for _, _, text in block)
                block.clear()
            block.append((line, column, token.string.lstrip("# ")))
    if block:
        yield block[0][0], "\n".join(text for _, _, text in block)


def booleans(definitions: list[Definition]) -> Iterator[tuple[int, str]]:
    """Yield the line of each docstring of a boolean function that begins with a bare "Whether"."""
    for node in definitions:
        if not isinstance(node, Function):
            continue
        is_boolean = isinstance(node.returns, ast.Name) and node.returns.id == "bool"
        if is_boolean and (ast.get_docstring(node) or "").startswith("Whether "):
            yield node.lineno, f"begin with 'Return whether': {node.name}"


def names_of_tests(definitions: list[Definition]) -> Iterator[tuple[int, str]]:
    """Yield the line of each test whose name breaks a rule, and the rule."""
    for node in definitions:
        if isinstance(node, Function) and node.name.startswith("test_"):
            if len(node.name) > MAX_NAME:
                yield node.lineno, f"{len(node.name)} characters: {node.name}"
            if word := WORDS_OF_A_NAME.search(node.name):
                yield node.lineno, f"{word[1]!r}: name the actor: {node.name}"
            if term := TERMS_OF_A_NAME.search(node.name):
                yield node.lineno, f"{term[1]!r}: is reported, is notified, names, in slices: {node.name}"


def findings_in(name: str, line: int, text: str) -> Iterator[Finding]:
    for found in WORDS.finditer(text):
        yield name, line, f"{found[0]!r}: name the actor"
    prose = QUOTED.sub("", text)
    for found in WHO.finditer(prose):
        yield name, line, f"{found[0].strip()!r}: name the actor"
    for found in TERMS.finditer(prose):
        yield name, line, f"{found[0]!r}: is notified, gets an answer, in several callbacks"
    for sentence in SENTENCE.split(CODE.sub("", ITEM.sub("\n", text))):
        words = len(sentence.split())
        if words > MAX_WORDS:
            yield name, line, f"a sentence of {words} words: {' '.join(sentence.split()[:8])} …"


def findings(root: Path = ROOT) -> list[Finding]:
    found: list[Finding] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = str(path.relative_to(root))
            if name.startswith(GENERATED):
                continue
            source = path.read_text()
            definitions = definitions_in(source)
            for line, text in chain(docstrings(definitions), comments(source)):
                found += findings_in(name, line, text)
            found += [(name, line, text) for line, text in booleans(definitions)]
            if folder == "tests":
                found += [(name, line, text) for line, text in names_of_tests(definitions)]
    for page in PAGES:
        start = root / page
        for path in sorted(start.rglob("*.md")) if start.is_dir() else [start]:
            name = str(path.relative_to(root))
            if path.exists() and not name.startswith(GENERATED):
                for number, paragraph in paragraphs(path.read_text()):
                    found += findings_in(name, number, paragraph)
    return found


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each paragraph outside of fenced code."""
    line = 1
    fenced = False
    for block in re.split(r"(\n\s*\n)", text):
        fences = block.count("```")
        if not fenced and not fences and block.strip():
            yield line, block
        fenced ^= fences % 2 == 1
        line += block.count("\n")


def main(arguments: list[str]) -> int:
    """Print the findings; return the exit code."""
    found = findings(Path(arguments[0]) if arguments else ROOT)
    for name, line, text in found:
        print(f"{name}:{line}: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
