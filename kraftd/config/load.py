"""Reads a controller's ``.properties`` file and overrides into a DaemonConfig, or reports all
their faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraftd.config.broker_keys import BROKER_ROLE, OF_BROKERS
from kraftd.config.checks import check
from kraftd.config.daemon import ROWS, DaemonConfig
from kraftd.config.errors import ConfigError
from kraftd.config.findings import Findings
from kraftd.config.keys import (
    OF_LISTENERS,
    OWN,
    OWN_PREFIX,
    WITHOUT_EFFECT,
    is_source_of_resource_configs,
)
from kraftd.config.providers import resolve
from kraftd.config.settings import OVERRIDE, Setting
from kraftd.config.unknown import probably_meant
from kraftd.configdef import properties
from kraftd.configdef.definition import ConfigDef, ConfigKey, InvalidValue, Value, broker_def
from kraftd.configdef.node import NodeConfig, server_key, server_synonyms
from kraftd.input_file import read_input_file

BYTE_ORDER_MARK = b"\xef\xbb\xbf".decode("latin-1")  # of UTF-8, as Java reads it in such a file
MAX_FILE_BYTES = 16 << 20
_MARKED = "the file begins with a UTF-8 byte order mark, which Java reads as a part of its first line"
# Prefixes of the keys that Kafka passes to plugins, and of listeners' own keys.
OPEN_PREFIXES = ("listener.name.", "rsm.config.", "rlmm.config.", "config.providers.")


def load(path: str | Path, overrides: Sequence[str] = ()) -> DaemonConfig:
    """The configuration of a file, with overrides (``key=value``) applied.

    Raises ConfigError with every problem: its key, value, place and remedy.
    """
    problems: list[str] = []
    warnings: list[str] = []
    meaningless: list[str] = []
    unknown: list[str] = []
    settings = {setting.key: setting for setting in read(Path(path), warnings)}
    for override in overrides:
        key, equals, text = override.partition("=")
        if equals and key.strip():
            settings[key.strip()] = Setting(key.strip(), text.strip(), OVERRIDE)
        else:
            problems.append(f"{OVERRIDE} {override}: must be key=value, like {OVERRIDE} node.id=2")
    settings = resolve(settings, problems)
    meant = {classify(setting, problems, warnings, meaningless, unknown) for setting in settings.values()}
    roles = settings["process.roles"].text if "process.roles" in settings else ""
    if BROKER_ROLE in roles:
        meaningless = [key for key in meaningless if key not in OF_BROKERS]
    # One line each: a stock file has dozens of them.
    if meaningless:
        warnings.append(f"these keys have no effect on kraftd: {', '.join(sorted(meaningless))}")
    if unknown:
        text = "these are keys of neither Kafka nor kraftd, and have no effect"
        warnings.append(f"{text}: {', '.join(sorted(unknown))}")
    values = {**parse_all(OWN, settings, problems), **parse_all(broker_def(), settings, problems)}
    share_node_id(settings, values)
    for wanted in meant - settings.keys():
        values.pop(wanted or "", None)  # not its default: a misspelt key was meant to set it
    targets = parse_rows(values, settings, problems)
    problems += [
        missing(definition, Path(path).name)
        for definition in broker_def().values()
        if definition.required and settings.keys().isdisjoint((definition.name, marked(definition.name)))
    ]
    refused = (broker_def().keys() | OWN.keys()) - values.keys()
    node_config = NodeConfig({key: one.text for key, one in settings.items() if key not in refused})
    config = DaemonConfig(targets, node_config)
    return check(config, settings, Findings(settings, values, warnings, problems))


def read(path: Path, warnings: list[str]) -> list[Setting]:
    """The settings of a file. Raises ConfigError when it cannot be read."""
    try:
        text = read_input_file(path, MAX_FILE_BYTES).decode("latin-1")  # the format's own encoding
        entries = properties.parse(text)
    except FileNotFoundError:
        raise ConfigError([f"{path}: there is no such file; give the path of a .properties file"]) from None
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    except properties.PropertiesError as error:
        raise ConfigError([f"{path}, {error}"]) from None
    lines: dict[str, int] = {}
    for key, _, line in entries:
        if key in lines:
            warnings.append(
                f"{key} is set twice in {path.name}: line {line} counts, line {lines[key]} does not"
            )
        lines[key] = line
    return [Setting(key, value, f"{path.name}, line {line}") for key, value, line in entries]


def classify(
    setting: Setting, problems: list[str], warnings: list[str], meaningless: list[str], unknown: list[str]
) -> str | None:
    """Note a key that kraftd does not use. Refuse one that is probably a misspelling; return what it means.

    `meaningless` gets keys of Kafka without a meaning in kraftd, `unknown` all other unused keys.
    """
    key = setting.key
    plain_key = server_synonyms(key)[-1]  # of a listener's key
    if key in ROWS or plain_key in OF_LISTENERS or is_source_of_resource_configs(key):
        return None
    elif key.startswith(BYTE_ORDER_MARK):
        note_byte_order_mark(setting, problems, warnings)
        return key.removeprefix(BYTE_ORDER_MARK)
    elif key in WITHOUT_EFFECT:
        warnings.append(f"{key} has no effect on kraftd: {WITHOUT_EFFECT[key]} ({setting.where})")
    elif server_key(key) is not None or plain_key in ROWS:
        meaningless.append(key)
    elif meant := probably_meant(key, (*broker_def(), *OWN)):
        # The text of a misspelt key may be a secret: it is never shown.
        problems.append(f"{key}: there is no such key; did you mean {meant}? ({setting.where})")
        return meant
    elif key.startswith(OWN_PREFIX):
        problems.append(f"{key}: there is no such key; kraftd's own are {', '.join(OWN)} ({setting.where})")
    elif not key.startswith(OPEN_PREFIXES):
        unknown.append(key)
    return None


def marked(key: str) -> str:
    """A key as read after a byte order mark. The finding about the mark explains why the key is not set."""
    return BYTE_ORDER_MARK + key


def note_byte_order_mark(setting: Setting, problems: list[str], warnings: list[str]) -> None:
    """Refuse a first line that a UTF-8 byte order mark keeps from setting its key; warn of any other.

    Java's format is Latin-1: the mark becomes three letters before the first key or comment.
    """
    key = setting.key.removeprefix(BYTE_ORDER_MARK)
    if base_key(key) in ROWS or server_key(key) is not None:
        problems.append(hidden_by_byte_order_mark(setting))
    else:
        warnings.append(f"{_MARKED}; save the file without it ({setting.where})")


def hidden_by_byte_order_mark(setting: Setting) -> str:
    """The fault of a setting whose key begins with the mark."""
    key = setting.key.removeprefix(BYTE_ORDER_MARK)
    return f"{key}: {_MARKED}, so that {key} is not set; save the file without it ({setting.where})"


def base_key(key: str) -> str:
    """The base key of a key of one listener or mechanism."""
    known = server_key(key)
    return known.name if known is not None else key


def share_node_id(settings: dict[str, Setting], values: dict[str, Value]) -> None:
    """Let broker.id and node.id replace each other if only one is set."""
    for one, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if one in settings and other not in settings:
            settings[other] = Setting(other, settings[one].text, settings[one].where)
            if one in values:
                values[other] = values[one]
            else:
                values.pop(other, None)


def parse_all(definition: ConfigDef, settings: dict[str, Setting], problems: list[str]) -> dict[str, Value]:
    """Every value of a definition, defaults included; a refused one is noted and omitted."""
    values = dict(definition.defaults())
    for setting in settings.values():
        key = definition.get(setting.key)
        if key is not None:
            try:
                values[key.name] = key.parse(setting.text)
            except InvalidValue as error:
                problems.append(f"{setting.shown()}: {error.wanted} ({setting.where})")
                values.pop(key.name, None)
    return values


def parse_rows(
    values: dict[str, Value], settings: dict[str, Setting], problems: list[str]
) -> dict[str, object]:
    """The settings that the rows make of the values, by target; a refused one is noted and omitted."""
    targets = {}
    required = {key.name for key in broker_def().values() if key.required}
    for row in ROWS.values():
        if row.key in values and (row.key not in required or row.key in settings):
            try:
                targets[row.target] = row.parse(values[row.key])
            except ValueError as error:
                setting = settings[row.key]
                problems.append(f"{setting.shown()}: {error} ({setting.where})")
    return targets


def missing(key: ConfigKey, file_name: str) -> str:
    examples = {
        "process.roles": "process.roles=controller",
        "node.id": "node.id=1",
        "controller.listener.names": "controller.listener.names=CONTROLLER",
    }
    return f"{key.name} is not set; add a line like {examples[key.name]} to {file_name}"
