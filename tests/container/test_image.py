"""The container image, built and run: its user, its writable paths, its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.cluster import random_uuid
from testkit.node import Broker, answers_api_versions
from testkit.process import HOST, free_port, wait_until
from tests.container.engine import Engine

pytestmark = pytest.mark.container

TAG = "localhost/kraftd:test"
DATA = "/var/lib/kraftd"


class Container:
    """A running kraftd on the host's network, its root read-only and every capability dropped."""

    def __init__(self, engine: Engine, home: Path, *arguments: str) -> None:
        self.engine, self.port = engine, free_port()
        self.cluster_id, self.name = random_uuid(), f"kraftd-{self.port}"
        self.properties = home / "controller.properties"
        self.properties.write_text(
            "process.roles=controller\nnode.id=1\n"
            f"listeners=CONTROLLER://{HOST}:{self.port}\ncontroller.listener.names=CONTROLLER\n"
            f"controller.quorum.bootstrap.servers={HOST}:{self.port}\nlog.dirs={DATA}/data\n"
        )
        self.properties.chmod(0o644)  # the image's user is another one
        engine.podman(
            "run", "--detach", "--name", self.name, "--network", "host", "--read-only", "--cap-drop", "ALL",
            "--security-opt", "no-new-privileges", "--volume", f"{self.name}:{DATA}",
            "--volume", f"{self.properties}:/etc/kraftd/controller.properties:ro",
            "--env", "KAFKA_PROCESS_ROLES=controller",
            "--env", f"CLUSTER_ID={self.cluster_id}", "--env", "KRAFTD_FORMAT=standalone",
            *arguments, TAG,
        )  # fmt: skip
        self.wait_ready()

    def __repr__(self) -> str:
        return f"<Container {self.name}>"

    def wait_ready(self) -> None:
        try:
            wait_until(
                lambda: answers_api_versions(self.port), f"{self.name} answers ApiVersions", timeout_s=30
            )
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.engine.logs(self.name)}") from None

    def inspect(self, field: str) -> str:
        return self.engine.podman("inspect", self.name, "--format", field)

    def execute(self, *command: str) -> str:
        return self.engine.podman("exec", self.name, *command)

    def healthy(self) -> bool:
        """Run the image's own HEALTHCHECK once: without systemd podman sets no timer for it."""
        self.engine.try_podman("healthcheck", "run", self.name)
        return self.inspect("{{.State.Health.Status}}") == "healthy"

    def remove(self) -> None:
        self.engine.try_podman("rm", "--force", "--time", "1", "--volumes", self.name)


@pytest.fixture(scope="module")
def container(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    container = Container(engine, tmp_path_factory.mktemp("container"))
    yield container
    container.remove()


def test_it_formats_its_volume_for_the_given_cluster_and_serves(container: Container) -> None:
    properties = container.execute("cat", f"{DATA}/data/meta.properties")
    assert f"cluster.id={container.cluster_id}" in properties
    described = container.execute("kraftd", "quorum", "describe", "--bootstrap", f"{HOST}:{container.port}")
    assert container.cluster_id in described


def test_it_runs_as_an_ordinary_user_on_a_read_only_root(container: Container) -> None:
    assert container.execute("id", "-u") == "10001"
    assert container.engine.try_podman("exec", container.name, "touch", "/opt/kraftd/x") != 0
    assert container.engine.try_podman("exec", container.name, "touch", f"{DATA}/x") == 0


@pytest.mark.kafka
def test_a_stock_broker_registers_with_it_and_is_unfenced(container: Container, tmp_path: Path) -> None:
    quorum = {"controller.quorum.bootstrap.servers": f"{HOST}:{container.port}"}
    broker = Broker(2, tmp_path, free_port(), quorum, {})
    broker.format(container.cluster_id)
    broker.start()
    try:
        broker.wait_ready()
    finally:
        broker.kill()


def test_nothing_of_the_build_is_left_in_the_image(container: Container) -> None:
    for path in ("/etc/pip.conf", "/run/ca.pem", "/src"):
        assert container.engine.try_podman("exec", container.name, "test", "-s", path) != 0, path


@pytest.mark.thorough
def test_the_health_check_passes_while_it_serves_and_fails_while_it_is_frozen(container: Container) -> None:
    wait_until(container.healthy, "healthy")
    container.engine.podman("kill", "--signal", "STOP", container.name)
    try:
        wait_until(lambda: not container.healthy(), "unhealthy after its retries")
    finally:
        container.engine.podman("kill", "--signal", "CONT", container.name)
    wait_until(container.healthy, "healthy again")


def test_sigterm_ends_it_with_exit_code_0_and_its_volume_keeps_the_data(container: Container) -> None:
    container.engine.podman("stop", "--time", "20", container.name)
    assert container.inspect("{{.State.ExitCode}}") == "0", container.engine.logs(container.name)
    container.engine.podman("start", container.name)
    container.wait_ready()
    described = container.execute("kraftd", "quorum", "describe", "--bootstrap", f"{HOST}:{container.port}")
    assert container.cluster_id in described


@pytest.mark.thorough
def test_it_comes_back_after_sigkill(container: Container) -> None:
    container.engine.podman("kill", "--signal", "KILL", container.name)
    assert container.engine.podman("wait", container.name) == "137"
    container.engine.podman("start", container.name)
    container.wait_ready()
