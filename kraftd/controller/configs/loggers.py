"""The log levels of a node, which an administrator reads and changes while it runs (KIP-412).

Kafka has a logger for each of its classes. kraftd has one for all lines, `root`. Facts: the
RuntimeLoggerManager and the ConfigHelper of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftd.configdef.text import parse_integer
from kraftd.controller.configs.resources import ConfigSource, Operation
from kraftd.controller.configs.validation import invalid_config, invalid_request
from kraftd.messages.describe_configs_response import DescribeConfigsResourceResult
from kraftd.messages.incremental_alter_configs_request import AlterableConfig

ROOT = "root"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


class LogLevels:
    """The level of `root`, one of LEVELS; `apply` gets each new one."""

    def __init__(self, root: str = "INFO", apply: Callable[[str], None] = lambda _level: None) -> None:
        self.root = root
        self._apply = apply

    def set_root(self, level: str) -> None:
        """Log from another of LEVELS on."""
        self.root = level
        self._apply(level)

    def rows(self) -> Iterable[DescribeConfigsResourceResult]:
        """The loggers as DescribeConfigs shows them."""
        yield DescribeConfigsResourceResult(ROOT, self.root, config_source=ConfigSource.BROKER_LOGGER)

    def change(self, configs: Iterable[AlterableConfig], *, validate_only: bool) -> None:
        """Change levels, all or none. Raises Refusal."""
        configs = list(configs)
        for config in configs:
            _check(config)
        if not validate_only:
            for config in configs:
                self.set_root(str(config.value))


def check_node_id(name: str, node_id: int) -> None:
    """Raise Refusal(INVALID_REQUEST) unless a resource is this node: no other knows of its loggers."""
    try:
        is_here = parse_integer(name, 32) == node_id
    except ValueError:
        is_here = False
    if not is_here:
        raise invalid_request(f"This is node {node_id}, not {name!r}.")


def _check(config: AlterableConfig) -> None:
    if config.config_operation not in (Operation.SET, Operation.DELETE):
        raise invalid_request("A log level can be set or deleted, nothing else.")
    if config.name != ROOT:
        raise invalid_config(f"There is no logger {config.name!r}; the only one is {ROOT}.")
    if config.config_operation == Operation.DELETE:
        raise invalid_request(f"The level of {ROOT} can be set, not deleted.")
    if config.value not in LEVELS:
        raise invalid_config(f"{config.value!r} is no log level; there are {', '.join(LEVELS)}.")
