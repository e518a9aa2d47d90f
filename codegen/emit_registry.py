"""The registry: which module holds the message of an API key, a record's key, a control type."""

from __future__ import annotations

from codegen.emit_message import text
from codegen.model import LAST_VERSION, Message

# The names in Kafka's ControlRecordType; no schema holds these numbers.
CONTROL_RECORDS = {
    0: "EndTxnMarker",
    1: "EndTxnMarker",
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}

COORDINATORS = ("group", "transaction", "share")

HEAD = '''"""Which message belongs to which key.  Generated from schemas/; do not edit."""

from __future__ import annotations

# API key -> (name, request module, request class, response module, response class,
#             first version, last version, first flexible version, listeners, latest version unstable)
'''


def registry_text(messages: list[Message]) -> str:
    """The text of ``kraftd/messages/registry.py``."""
    lines = [
        HEAD + "APIS: dict[int, tuple[str, str, str, str, str, int, int, int, tuple[str, ...], bool]] = {"
    ]
    requests = {message.key: message for message in messages if message.type == "request"}
    responses = {message.key: message for message in messages if message.type == "response"}
    for key, request in sorted(requests.items(), key=lambda item: item[0] or 0):
        response = responses[key]
        assert request.valid is not None
        if request.valid != response.valid:
            raise ValueError(f"{request.name} and {response.name} have different versions")
        flexible = LAST_VERSION if request.flexible is None else request.flexible[0]
        cells = (
            request.name.removesuffix("Request"),
            request.module,
            request.name,
            response.module,
            response.name,
            *request.valid,
            flexible,
        )
        listeners = "(" + "".join(f"{text(name)}, " for name in request.listeners).strip() + ")"
        row = ", ".join(text(cell) for cell in cells)
        lines.append(f"    {key}: ({row}, {listeners}, {request.latest_unstable}),")
    lines += ["}", "", "# record key -> (module, class, first version, last version)"]
    records = {message.key or 0: message for message in messages if message.type == "metadata"}
    lines += record_table("METADATA_RECORDS", records)
    by_name = {message.name: message for message in messages}
    lines += ["", "# control record type -> (module, class, first version, last version)"]
    lines += record_table("CONTROL_RECORDS", {key: by_name[name] for key, name in CONTROL_RECORDS.items()})
    for coordinator in COORDINATORS:
        lines += ["", f"# record key of the {coordinator} coordinator -> (module and class of its key,"]
        lines += ["#     module, class, first version and last version of its value)"]
        lines += coordinator_table(coordinator, messages)
    lines += ["", "# every message: class -> module"]
    lines += ["MODULES: dict[str, str] = {"]
    lines += [f"    {text(message.name)}: {text(message.module)}," for message in messages]
    return "\n".join([*lines, "}"]) + "\n"


def record_table(name: str, messages: dict[int, Message]) -> list[str]:
    """A table of records by number."""
    lines = [f"{name}: dict[int, tuple[str, str, int, int]] = {{"]
    for key, message in sorted(messages.items()):
        assert message.valid is not None
        cells = (message.module, message.name, *message.valid)
        lines.append(f"    {key}: ({', '.join(text(cell) for cell in cells)}),")
    return [*lines, "}"]


def coordinator_table(coordinator: str, messages: list[Message]) -> list[str]:
    """The records of a coordinator by number: keys have version 0 only."""
    own = [message for message in messages if message.coordinator == coordinator]
    values = {message.key: message for message in own if message.type == "coordinator-value"}
    lines = [
        f"{coordinator.upper()}_RECORDS: dict[int, tuple[str, str, str, str, int, int]] = {{",
    ]
    for key in sorted((m for m in own if m.type == "coordinator-key"), key=lambda m: m.key or 0):
        value = values.pop(key.key)
        assert value.valid is not None
        if key.valid != (0, 0):
            raise ValueError(f"{key.name} has versions {key.valid}")
        cells = (key.module, key.name, value.module, value.name, *value.valid)
        lines.append(f"    {key.key}: ({', '.join(text(cell) for cell in cells)}),")
    if values:
        raise ValueError(f"values without a key: {[value.name for value in values.values()]}")
    return [*lines, "}"]
