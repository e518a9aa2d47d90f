"""A message's module: its Structs and its field table."""

from __future__ import annotations

from codegen.model import INTEGERS, LAST_VERSION, Field, Message, Range, Struct

ANNOTATIONS = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes | memoryview",
    "uuid": "bytes",
}

KINDS = {
    "request": "a request",
    "response": "a response",
    "header": "a header",
    "metadata": "a metadata record",
    "coordinator-key": "the key of a {} coordinator's record",
    "coordinator-value": "the value of a {} coordinator's record",
}


def module_text(message: Message) -> str:
    """The text of ``kraftd/messages/<message>.py``."""
    lines = [
        f'"""{describe(message)}',
        "",
        f"Generated from schemas/{message.name}.json; do not edit.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
    ]
    if any(default_text(field) == factory(field) for s in message.structs.values() for field in s.fields):
        lines += ["from msgspec import field", ""]
    lines += ["from kraftd.wire.message import Message, Table", ""]
    for struct in children_first(message):
        lines += class_lines(message, struct)
    lines += table_lines(message)
    return "\n".join(lines) + "\n"


def describe(message: Message) -> str:
    """One sentence: kind, key and versions of the message."""
    kind = KINDS.get(message.type, "data").format(message.coordinator)
    key = "" if message.key is None else f" of key {message.key}"
    assert message.valid is not None
    flexible = "" if message.flexible is None else f", flexible {span(message.flexible)}"
    return f"{message.name}: {kind}{key}, versions {span(message.valid)}{flexible}."


def span(versions: Range) -> str:
    """``4-18``, ``0`` or ``12+``."""
    first, last = versions
    if last == LAST_VERSION:
        return f"{first}+"
    return str(first) if first == last else f"{first}-{last}"


def children_first(message: Message) -> list[Struct]:
    """The structs of a message, each after the structs of its fields."""
    done: dict[str, Struct] = {}

    def visit(struct: Struct) -> None:
        for field in struct.fields:
            inner = message.structs.get(field.type)
            if inner is not None and inner.name not in done:
                visit(inner)
        done[struct.name] = struct

    visit(message.root)
    return list(done.values())


def class_lines(message: Message, struct: Struct) -> list[str]:
    """One Struct class."""
    lines = ["", f"class {struct.name}(Message):"]
    lines += [
        f"    {field.attribute}: {annotation(field)} = {default_text(field)}" for field in struct.fields
    ]
    if message.flexible is not None:
        lines.append("    unknown_tags: tuple[tuple[int, bytes], ...] = ()")
    if len(lines) == 2:
        lines.append("    pass")
    return [*lines, ""]


def annotation(field: Field) -> str:
    """The type of an attribute."""
    kind = "int" if field.type in INTEGERS else ANNOTATIONS.get(field.type, field.type)
    if field.array:
        kind = f"tuple[{kind}, ...]" if is_primitive(field) else f"list[{kind}]"
    return f"{kind} | None" if field.nullable is not None or field.default is None else kind


def is_primitive(field: Field) -> bool:
    return field.type in INTEGERS or field.type in ANNOTATIONS


def factory(field: Field) -> str:
    return f"field(default_factory={field.type})"


def default_text(field: Field) -> str:
    """The default of an attribute, as Python."""
    if field.default is None:
        return "None"
    if field.array:
        return "()" if is_primitive(field) else "[]"
    if not is_primitive(field):
        return factory(field)
    if field.type == "bool":
        return str(bool(field.default))
    if field.type == "float64":
        return repr(float(field.default))
    return {"uuid": "bytes(16)", "bytes": 'b""'}.get(field.type) or text(field.default)


def text(value: object) -> str:
    """A plain value as Python, strings in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def table_lines(message: Message) -> list[str]:
    """The field table, in the layout of ``kraftd.wire.message.Table``."""
    lines = [
        "",
        "SCHEMA: Table = (",
        f"    {text(message.name)}, {message.key}, {text(message.type)},",
        f"    {message.valid}, {message.flexible},",
        "    (",
    ]
    for struct in message.structs.values():
        lines.append(f"        ({text(struct.name)}, (")
        lines += [f"            {row(field)}," for field in struct.fields]
        lines.append("        )),")
    return [*lines, "    ),", ")"]


def row(field: Field) -> str:
    """One field of the table."""
    flexible = (field.flexible or (0, -1)) if field.flexible_overridden else None
    cells = (
        field.attribute,
        field.name,
        field.type,
        int(field.array),
        field.versions,
        field.nullable,
        field.tagged,
        field.tag,
        flexible,
        int(field.ignorable),
        field.default,
    )
    return "(" + ", ".join(text(cell) for cell in cells) + ")"
