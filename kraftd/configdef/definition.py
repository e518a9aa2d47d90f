"""ConfigDef: what a config's text means, and whether Kafka would take it.

Values are bool, int, float, str, list[str] or None. Rules and types are Kafka's; the texts of errors are
ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from kraftd.configdef import facts
from kraftd.configdef.addresses import parse_bootstrap_server, parse_voter
from kraftd.configdef.rules import is_share_auto_offset_reset, is_throttled_replicas
from kraftd.configdef.text import double_text, parse_double, parse_integer, parse_list, trim
from kraftd.named_tuple import NamedTuple

Value = bool | int | float | str | list[str] | None

INTEGER_BITS = {"short": 16, "int": 32, "long": 64}
TYPE_WORDS = {
    "boolean": "true or false",
    "short": "a whole number of 16 bits",
    "int": "a whole number of 32 bits",
    "long": "a whole number of 64 bits",
    "double": "a number",
    "list": "a list with commas between its items",
}

# The number of a type in DescribeConfigs answers (KIP-569).
TYPE_IDS = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


class InvalidValue(ValueError):
    """An invalid value: the key, its text and the valid values."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {wanted}")
        self.name = name
        self.value = value
        self.wanted = wanted


class ConfigKey(NamedTuple):
    """One key of a definition. `default` is text, None for null; a required key has none."""

    name: str
    type: str
    default: str | None
    rule: facts.Rule | None
    flag: str

    @property
    def required(self) -> bool:
        return self.flag == "required"

    @property
    def internal(self) -> bool:
        return self.flag == "internal"

    @property
    def sensitive(self) -> bool:
        return self.type == "password"

    def parse(self, text: str | None) -> Value:
        """The value of a text, checked. Raises InvalidValue."""
        value = None if text is None else parse_value(self.name, text, self.type)
        if self.rule is not None:
            value = RULES[str(self.rule[0])](self, value)
        return value

    def parse_stored(self, text: str) -> Value:
        """The value of a text that a controller of any release has accepted.

        A number or a list that is not valid any more counts as it is, anything else as the default.
        """
        try:
            return self.parse(text)
        except InvalidValue:
            pass
        try:
            value = parse_value(self.name, text, self.type)
        except InvalidValue:
            return self.default_value()
        return value if isinstance(value, int | float | list) else self.default_value()

    def default_value(self) -> Value:
        """The value when the key is not set, which Kafka checks as well. Raises InvalidValue."""
        return self.parse(self.default)

    def wanted(self) -> str:
        """The key's valid values, in words."""
        words = TYPE_WORDS.get(self.type, "text")
        return f"{words}, {rule_words(self.rule)}" if self.rule and rule_words(self.rule) else words


class ConfigDef(Mapping[str, ConfigKey]):
    """A definition: its keys by name, in Kafka's order."""

    def __init__(self, rows: tuple[facts.Row, ...]) -> None:
        self._keys = {row[0]: ConfigKey(*row) for row in rows}
        self._defaults: dict[str, Value] | None = None

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<ConfigDef of {len(self._keys)} keys>"

    def defaults(self) -> dict[str, Value]:
        """The values of all keys that need not be set; shared, not to be changed."""
        if self._defaults is None:
            self._defaults = {
                key.name: key.default_value() for key in self._keys.values() if not key.required
            }
        return self._defaults


def parse_value(name: str, text: str, kind: str) -> Value:
    """A text as a value of a type, without checking a rule. Raises InvalidValue."""
    trimmed = trim(text)
    try:
        if kind in INTEGER_BITS:
            return parse_integer(trimmed, INTEGER_BITS[kind])
        if kind == "boolean":
            if trimmed.upper() not in ("TRUE", "FALSE"):
                raise ValueError("neither true nor false")
            return trimmed.upper() == "TRUE"
        if kind == "double":
            return parse_double(trimmed)
    except ValueError:
        raise InvalidValue(name, text, f"must be {TYPE_WORDS[kind]}") from None
    return parse_list(trimmed) if kind == "list" else trimmed


def value_text(value: Value) -> str | None:
    """A value as Kafka shows it (ConfigDef.convertToString)."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    return ",".join(value) if isinstance(value, list) else str(value)


# Rules: each takes the key and the parsed value, and returns the value or raises InvalidValue.


def check_range(key: ConfigKey, value: Value) -> Value:
    low, high = key.rule[1:] if key.rule else (None, None)
    if not isinstance(value, int | float):
        raise InvalidValue(key.name, value, "must not be null")
    # Kafka compares as doubles; a NaN passes, there and here.
    if isinstance(low, int | float) and float(value) < float(low):
        raise InvalidValue(key.name, value_text(value), f"must be at least {low}")
    if isinstance(high, int | float) and float(value) > float(high):
        raise InvalidValue(key.name, value_text(value), f"must be at most {high}")
    return value


def check_range_or(key: ConfigKey, value: Value) -> Value:
    low, high, other = key.rule[1:] if key.rule else (0, 0, 0)
    if not isinstance(value, int):
        raise InvalidValue(key.name, value, "must not be null")
    if value != other and not int(str(low)) <= value <= int(str(high)):
        raise InvalidValue(key.name, value, f"must be from {low} to {high}, or {other}")
    return value


def check_in(key: ConfigKey, value: Value) -> Value:
    if value not in valid_values(key):
        raise InvalidValue(key.name, value, f"must be one of {', '.join(valid_values(key))}")
    return value


def check_in_any_case(key: ConfigKey, value: Value) -> Value:
    if not isinstance(value, str) or value.upper() not in valid_values(key):
        raise InvalidValue(key.name, value, f"must be one of {', '.join(valid_values(key))}, in any case")
    return value


def check_list(key: ConfigKey, value: Value) -> Value:
    _, valid, may_be_empty, may_be_null = key.rule if key.rule else ("", (), True, True)
    if value is None and may_be_null:
        return None
    if not isinstance(value, list):
        raise InvalidValue(key.name, value, "must not be null")
    if not value and not may_be_empty:
        raise InvalidValue(key.name, "(empty)", "must have at least one item")
    if "" in value:
        raise InvalidValue(key.name, ",".join(value), "must have no empty item")
    if valid and not set(value) <= set(valid_values(key)):
        raise InvalidValue(
            key.name, ",".join(value), f"each item must be one of {', '.join(valid_values(key))}"
        )
    return list(dict.fromkeys(value))  # an item named twice counts once


def check_non_empty(key: ConfigKey, value: Value) -> Value:
    if value == "":
        raise InvalidValue(key.name, "(empty)", "must not be empty")
    return value


def check_non_null(key: ConfigKey, value: Value) -> Value:
    if value is None:
        raise InvalidValue(key.name, value, "must not be null")
    return value


def check_throttled_replicas(key: ConfigKey, value: Value) -> Value:
    if not isinstance(value, list) or not is_throttled_replicas(value):
        wanted = "must be * or a list of partition:broker pairs, like 0:1,1:2"
        raise InvalidValue(key.name, value_text(value), wanted)
    return value


def check_share_auto_offset_reset(key: ConfigKey, value: Value) -> Value:
    if not isinstance(value, str) or not is_share_auto_offset_reset(value):
        wanted = "must be earliest, latest or by_duration: and an ISO 8601 duration, like by_duration:P1DT2H"
        raise InvalidValue(key.name, value, wanted)
    return value


def check_voters(key: ConfigKey, value: Value) -> Value:
    for entry in value if isinstance(value, list) else ():
        try:
            parse_voter(entry)
        except ValueError as error:
            raise InvalidValue(key.name, entry, str(error)) from None
    return value


def check_bootstrap_servers(key: ConfigKey, value: Value) -> Value:
    for entry in value if isinstance(value, list) else ():
        try:
            parse_bootstrap_server(entry)
        except ValueError as error:
            raise InvalidValue(key.name, entry, str(error)) from None
    return value


RULES: dict[str, Callable[[ConfigKey, Value], Value]] = {
    "range": check_range,
    "range_or": check_range_or,
    "in": check_in,
    "in_any_case": check_in_any_case,
    "list": check_list,
    "non_empty": check_non_empty,
    "non_null": check_non_null,
    "throttled_replicas": check_throttled_replicas,
    "share_auto_offset_reset": check_share_auto_offset_reset,
    "voters": check_voters,
    "bootstrap_servers": check_bootstrap_servers,
}


def valid_values(key: ConfigKey) -> tuple[str, ...]:
    values = key.rule[1] if key.rule else ()
    return values if isinstance(values, tuple) else ()


def rule_words(rule: facts.Rule) -> str:
    """A rule in words, for messages and documentation; "" where the type says it all."""
    kind = rule[0]
    if kind == "range":
        low, high = rule[1:]
        if high is None:
            return f"at least {low}"
        return f"at most {high}" if low is None else f"from {low} to {high}"
    if kind == "range_or":
        return f"from {rule[1]} to {rule[2]}, or {rule[3]}"
    if kind in ("in", "in_any_case", "list") and isinstance(rule[1], tuple) and rule[1]:
        return f"of {', '.join(rule[1])}"
    return "not empty" if kind == "non_empty" or (kind == "list" and not rule[2]) else ""


@cache
def broker_def() -> ConfigDef:
    """The server's keys, of brokers and controllers alike."""
    return ConfigDef(facts.BROKER)


@cache
def broker_quota_def() -> ConfigDef:
    """Keys of a broker that exist only as dynamic configs."""
    return ConfigDef(facts.BROKER_QUOTA)


@cache
def topic_def() -> ConfigDef:
    return ConfigDef(facts.TOPIC)


@cache
def group_def() -> ConfigDef:
    return ConfigDef(facts.GROUP)


@cache
def client_metrics_def() -> ConfigDef:
    return ConfigDef(facts.CLIENT_METRICS)
