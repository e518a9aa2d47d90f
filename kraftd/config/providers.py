"""Replaces variables in a file, ``${provider:path:key}``, as Kafka's config providers do.

The providers of Kafka are here under their class names: files of properties, directories of secrets,
environment variables. A value with a variable is never shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from kraftd.config.settings import Setting
from kraftd.configdef import properties
from kraftd.input_file import read_input_file

_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE = "org.apache.kafka.common.config.provider."
PREFIX = "config.providers."
MAX_FILE_BYTES = 16 * 1024 * 1024

# The value of a path and a key. Raises ValueError.
Provider = Callable[[str, str], str]


def resolve(settings: Mapping[str, Setting], problems: list[str]) -> dict[str, Setting]:
    """The same settings with every variable of a configured provider replaced; problems are noted."""
    names = [name.strip() for name in _text(settings, "config.providers").split(",") if name.strip()]
    providers: dict[str, Provider] = {}
    for name in names:
        try:
            providers[name] = _provider(name, settings)
        except ValueError as error:
            problems.append(f"{PREFIX}{name}.class: {error}")
    resolved = {}
    for key, setting in settings.items():
        resolved[key] = setting
        if key.startswith("config.providers") or "${" not in setting.text:
            continue
        try:
            text = _VARIABLE.sub(lambda found: _replaced(found, providers), setting.text)
        except ValueError as error:
            problems.append(f"{setting.shown()}: {error} ({setting.where})")
        else:
            if text != setting.text:
                resolved[key] = Setting(key, text, setting.where, hidden=True)
    return resolved


def _replaced(found: re.Match[str], providers: Mapping[str, Provider]) -> str:
    provider = providers.get(found[1])
    if provider is None:
        return found[0]  # unchanged, as in Kafka: it may mean something else
    return provider(found[2] or "", found[3])


def _text(settings: Mapping[str, Setting], key: str) -> str:
    return settings[key].text if key in settings else ""


def _provider(name: str, settings: Mapping[str, Setting]) -> Provider:
    class_name = _text(settings, f"{PREFIX}{name}.class").strip()
    parameters = f"{PREFIX}{name}.param."
    allowed = [
        Path(path.strip()).resolve()
        for path in _text(settings, f"{parameters}allowed.paths").split(",")
        if path.strip()
    ]

    def permitted(path: str) -> Path:
        found = Path(path)
        if allowed and not any(found.resolve().is_relative_to(one) for one in allowed):
            raise ValueError(f"{path} is not among {parameters}allowed.paths")
        return found

    if class_name == f"{_PACKAGE}FileConfigProvider":
        return lambda path, key: _of_file(permitted(path), key)
    if class_name == f"{_PACKAGE}DirectoryConfigProvider":
        return lambda path, key: _of_directory(permitted(path), key)
    if class_name == f"{_PACKAGE}EnvVarConfigProvider":
        return _environment(_text(settings, f"{parameters}allowlist.pattern") or ".*")
    known = ", ".join(f"{_PACKAGE}{kind}ConfigProvider" for kind in ("File", "Directory", "EnvVar"))
    raise ValueError(f"{class_name or 'it is not set'}: kraftd has {known}")


def _of_file(path: Path, key: str) -> str:
    try:
        entries = properties.parse(_read(path))
    except properties.PropertiesError as error:
        raise ValueError(f"{path}, {error}") from None
    for name, value, _ in reversed(entries):
        if name == key:
            return value
    raise ValueError(f"{path} has no key {key}")


def _of_directory(path: Path, key: str) -> str:
    if Path(key).name != key or not (path / key).is_file():
        raise ValueError(f"{path} has no file {key}")
    return _read(path / key)


def _environment(pattern: str) -> Provider:
    try:
        allowed = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"allowlist.pattern: {error}") from None

    def value(path: str, key: str) -> str:
        if path:
            raise ValueError(f"environment variables have no path, as in {path}")
        if allowed.fullmatch(key) is None or key not in os.environ:
            raise ValueError(f"there is no environment variable {key}, or allowlist.pattern leaves it out")
        return os.environ[key]

    return value


def _read(path: Path) -> str:
    try:
        return read_input_file(path, MAX_FILE_BYTES).decode()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None
