"""Reads a controller's ``.properties`` file and overrides into a DaemonConfig, or says all that is wrong
with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraftd.config.checks import check
from kraftd.config.daemon import DaemonConfig
from kraftd.config.errors import ConfigError
from kraftd.config.keys import OWN, OWN_PREFIX, UNSUPPORTED, USED, is_source_of_resource_configs
from kraftd.config.settings import OVERRIDE, Setting
from kraftd.config.unknown import probably_meant
from kraftd.configdef import properties
from kraftd.configdef.definition import ConfigDef, ConfigKey, InvalidValue, Value, broker_def
from kraftd.configdef.node import NodeConfig, server_key

# Prefixes under which Kafka hands keys on to plugins, and listeners' own keys.
OPEN_PREFIXES = ("listener.name.", "rsm.config.", "rlmm.config.", "config.providers.")


def load(path: str | Path, overrides: Sequence[str] = ()) -> DaemonConfig:
    """The configuration of a file, each override (``key=value``) put over it.

    Raises ConfigError with every problem found: it names the key, its value, where it stands and what
    would do.
    """
    problems: list[str] = []
    warnings: list[str] = []
    settings = {setting.key: setting for setting in read(Path(path), warnings)}
    for override in overrides:
        key, equals, text = override.partition("=")
        if equals and key.strip():
            settings[key.strip()] = Setting(key.strip(), text.strip(), OVERRIDE)
        else:
            problems.append(f"{OVERRIDE} {override}: must be key=value, like {OVERRIDE} node.id=2")
    for setting in settings.values():
        classify(setting, problems, warnings)
    own = parse_all(OWN, settings, problems)
    values = parse_all(broker_def(), settings, problems)
    share_node_id(settings, values)
    problems += [
        missing(definition, Path(path).name)
        for definition in broker_def().values()
        if definition.required and definition.name not in settings
    ]
    if problems:
        raise ConfigError(problems)
    node_config = NodeConfig({setting.key: setting.text for setting in settings.values()})
    return check(values, own, settings, node_config, warnings)


def read(path: Path, warnings: list[str]) -> list[Setting]:
    """The settings of a file. Raises ConfigError when it cannot be read."""
    try:
        text = path.read_bytes().decode("latin-1")  # the format's own encoding
        entries = properties.parse(text)
    except FileNotFoundError:
        raise ConfigError(
            [f"{path}: there is no such file; give the path of a controller's .properties file"]
        ) from None
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


def classify(setting: Setting, problems: list[str], warnings: list[str]) -> None:
    """Note a key that kraftd has no use for, and refuse one that was probably meant to be another."""
    key = setting.key
    if key in UNSUPPORTED and setting.text.strip():
        problems.append(f"{setting.shown()}: {UNSUPPORTED[key]} ({setting.where})")
    elif key in USED or is_source_of_resource_configs(key):
        return
    elif server_key(key) is not None:
        warnings.append(f"{key} has no effect on kraftd ({setting.where})")
    elif meant := probably_meant(key, (*broker_def(), *OWN)):
        problems.append(f"{setting.shown()}: there is no key {key}; did you mean {meant}? ({setting.where})")
    elif key.startswith(OWN_PREFIX):
        problems.append(
            f"{setting.shown()}: there is no key {key}; kraftd's own are {', '.join(OWN)} ({setting.where})"
        )
    elif not key.startswith(OPEN_PREFIXES):
        warnings.append(f"{key} is a key of neither Kafka nor kraftd, and has no effect ({setting.where})")


def share_node_id(settings: dict[str, Setting], values: dict[str, Value]) -> None:
    """broker.id and node.id stand for each other where only one is set."""
    for one, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if one in settings and other not in settings:
            settings[other] = Setting(other, settings[one].text, settings[one].where)
            values[other] = values.get(one)


def parse_all(definition: ConfigDef, settings: dict[str, Setting], problems: list[str]) -> dict[str, Value]:
    """Every value of a definition, defaults included; what is refused is noted and left out."""
    values = dict(definition.defaults())
    for setting in settings.values():
        key = definition.get(setting.key)
        if key is not None:
            try:
                values[key.name] = key.parse(setting.text)
            except InvalidValue as error:
                problems.append(f"{setting.shown()}: {error.wanted} ({setting.where})")
    return values


def missing(key: ConfigKey, file_name: str) -> str:
    examples = {
        "process.roles": "process.roles=controller",
        "node.id": "node.id=1",
        "controller.listener.names": "controller.listener.names=CONTROLLER",
    }
    return f"{key.name} is not set; add a line like {examples[key.name]} to {file_name}"
