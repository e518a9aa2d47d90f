"""docker/compose.yaml, unchanged: three controllers of the image and a stock broker form a cluster.

No compose engine runs here: the test reads the file and starts each service with podman. Each runs on its own
host (a network namespace), where names resolve to hosts. The same Kafka replaces the broker's image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kraftd.cli.container import keys_of
from testkit.java import java_command, tools
from testkit.node import LOG_FLAGS
from testkit.process import Process, wait_until
from tests.container.engine import Engine
from tests.container.named_hosts import NamedHosts, named_hosts

pytestmark = [pytest.mark.container, pytest.mark.kafka]

ROOT = Path(__file__).resolve().parents[2]
TAG = "localhost/kraftd:test"
BROKER = "broker"


class Services:
    """The services of the file, each on its host."""

    def __init__(self, hosts: NamedHosts, home: Path) -> None:
        self.hosts, self.engine, self.home = hosts, hosts.engine, home
        self.services = services_of_file()
        self.broker: Process | None = None

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a service, with the defaults that compose inserts for `${NAME:-default}`."""
        variables = self.services[name]["environment"].items()
        return {key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value)) for key, value in variables}

    def start_controller(self, name: str) -> None:
        service = self.services[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        words = ["--security-opt", service["security_opt"][0]]
        words += [f"--volume={volume}" for volume in service["volumes"]]
        words += [f"--env={key}={value}" for key, value in self.environment(name).items()]
        self.hosts.run_image(name, *words, TAG)

    def healthy(self, name: str) -> bool:
        return self.engine.try_podman("exec", name, "kraftd", "container", "--check") == 0

    def quorum(self, name: str) -> str:
        command = ("kraftd", "quorum", "describe", "--bootstrap", f"{name}:9093")
        return self.engine.podman("exec", name, *command)

    def start_broker(self) -> Process:
        """Start Kafka itself with the service's variables, converted to keys as in its image."""
        environment = self.environment(BROKER)
        keys = [line.replace("/var/lib/kafka", str(self.home)) for line in keys_of(environment)]
        properties = self.home / "broker.properties"
        properties.write_text("\n".join(keys) + "\n")
        tools().run("storage", "format", "-t", environment["CLUSTER_ID"], "-c", properties).check()
        java = java_command("kafka.Kafka", str(properties), flags=LOG_FLAGS)
        self.broker = Process(
            BROKER, self.home, lambda: ["ip", "netns", "exec", self.hosts.namespace(BROKER), *java]
        )
        self.broker.start()
        return self.broker

    def close(self) -> None:
        if self.broker is not None:
            self.broker.kill()


def services_of_file() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
    return found


@pytest.fixture
def hosts(engine: Engine) -> Iterator[NamedHosts]:
    yield from named_hosts(engine, sorted(services_of_file()))


@pytest.fixture
def services(hosts: NamedHosts, tmp_path: Path) -> Iterator[Services]:
    services = Services(hosts, tmp_path)
    yield services
    services.close()


def test_three_controllers_form_a_quorum_that_a_stock_broker_joins(services: Services) -> None:
    controllers = [name for name in services.services if name != BROKER]
    assert len(controllers) == 3
    for name in controllers:
        services.start_controller(name)
    for name in controllers:
        wait_until(lambda name=name: services.healthy(name), f"{name} is healthy", 60, 0.2)
    assert services.services[BROKER]["depends_on"].keys() == set(controllers)
    services.start_broker().wait_for_log("Kafka Server started", 120)
    for name in controllers:
        assert re.search(r"CurrentVoters.*1.*2.*3", services.quorum(name), re.S)
    # A second start finds all files in place.
    services.engine.podman("restart", "--time", "10", controllers[0])
    wait_until(lambda: services.healthy(controllers[0]), "healthy after a restart", 60, 0.2)
