"""Records incidents of real quorums as series for `promtool test rules`: `make incidents`.

Each incident has a quorum of three kraftd processes with Kafka's timeouts, scraped every STEP_S as Prometheus
does. The fault begins after FAULT_S. Only the series that an alert rule reads are kept. All incidents are
recorded at the same time, which takes eight minutes; names as arguments record only those.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import yaml
from prometheus_client.parser import text_string_to_metric_families

from bench.load import BenchBroker, Heart
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from testkit.client import Client
from testkit.process import HOST, free_port
from tests.faults.disks import SmallDisk
from tests.faults.quorum import VOTERS, FaultyQuorum

FOLDER = Path(__file__).parent / "incidents"
RULES = Path(__file__).resolve().parents[2] / "monitoring" / "alerts.yml"
NAME = re.compile(r"\b(?:kafka|kraftd)_\w+")
STEP_S = 5
FAULT_S = 60
JOB = "kraftd"
# Kafka's defaults: the fault tests have shorter ones.
DEFAULTS: dict[str, object] = {
    "controller.quorum.fetch.timeout.ms": 2000,
    "controller.quorum.election.timeout.ms": 1000,
    "controller.quorum.election.backoff.max.ms": 1000,
    "controller.quorum.request.timeout.ms": 2000,
    "broker.session.timeout.ms": 9000,
}

Series = dict[str, list[float | None]]  # None where the target did not answer, or lacked the sample


class Stage:
    """A quorum whose metrics are recorded, from `record` until `stop`."""

    def __init__(self, home: Path) -> None:
        self.quorum = FaultyQuorum(home, properties=DEFAULTS)
        self.ports = {node_id: free_port() for node_id in VOTERS}
        for node_id, controller in self.quorum.controllers.items():
            controller.properties["kraftd.metrics.listener"] = f"{HOST}:{self.ports[node_id]}"
            controller.write_properties()
        self.disks: dict[int, SmallDisk] = {}
        self.series: Series = {}
        self._names = set(NAME.findall(RULES.read_text()))
        self._began_s = 0.0
        self._ended = threading.Event()

    def wait_until(self, second: float) -> None:
        """Wait until that second of the record."""
        time.sleep(max(0.0, self._began_s + second - time.monotonic()))

    @contextmanager
    def recorded(self) -> Iterator[None]:
        self._began_s = time.monotonic()
        thread = threading.Thread(target=self._record, daemon=True)
        thread.start()
        yield
        self._ended.set()
        thread.join()

    def _record(self) -> None:
        step = 0
        while not self._ended.is_set():
            for node_id, port in self.ports.items():
                self._scrape(f"controller-{node_id}:9404", port, step)
            step += 1
            self.wait_until(step * STEP_S)
        for values in self.series.values():
            values += [None] * (step - len(values))

    def _scrape(self, instance: str, port: int, step: int) -> None:
        labels = {"job": JOB, "instance": instance}
        try:
            text = urlopen(f"http://{HOST}:{port}/metrics", timeout=2).read().decode()
        except OSError:
            self._note("up", labels, 0.0, step)
            return
        self._note("up", labels, 1.0, step)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in self._names:
                    self._note(sample.name, {**labels, **sample.labels}, sample.value, step)

    def _note(self, name: str, labels: dict[str, str], value: float, step: int) -> None:
        inner = ", ".join(f'{key}="{text}"' for key, text in sorted(labels.items()))
        values = self.series.setdefault(f"{name}{{{inner}}}", [])
        values += [None] * (step - len(values))
        values.append(value)

    def __repr__(self) -> str:
        return f"<Stage of {self.quorum!r}, {len(self.series)} series>"


# -- the incidents


def rolling_restart(stage: Stage) -> None:
    """Each controller is stopped, is away for ten seconds, and catches up: nothing is wrong."""
    second = float(FAULT_S)
    leader = stage.quorum.wait_for_leader()
    for node_id in (*stage.quorum.others(leader), leader):
        stage.wait_until(second)
        stage.quorum.controllers[node_id].stop()
        stage.wait_until(second + 10)
        stage.quorum.start_controllers(node_id)
        second += 45
    stage.wait_until(second + 30)


def one_down(stage: Stage) -> None:
    """The leader is killed; the other two go on."""
    _kill(stage, 1, 240)


def majority_down(stage: Stage) -> None:
    """The leader and another one are killed; the third cannot go on."""
    _kill(stage, 2, 270)


def all_down(stage: Stage) -> None:
    """All three are killed."""
    _kill(stage, 3, 270)


def voter_cut_off(stage: Stage) -> None:
    """A follower reaches no other voter; Prometheus reaches it."""
    follower = stage.quorum.others(stage.quorum.wait_for_leader())[0]
    stage.wait_until(FAULT_S)
    stage.quorum.proxy.part(follower, *stage.quorum.others(follower))
    stage.wait_until(300)
    stage.quorum.proxy.heal()


def leader_cut_off(stage: Stage) -> None:
    """The leader reaches no other voter for 40 s; another one leads, and the former truncates its log."""
    leader = stage.quorum.wait_for_leader()
    stage.wait_until(FAULT_S)
    stage.quorum.proxy.part(leader, *stage.quorum.others(leader))
    stage.wait_until(FAULT_S + 40)
    stage.quorum.proxy.heal()
    stage.wait_until(FAULT_S + 90)


def disk_full(stage: Stage) -> None:
    """The disk of a follower is full, on which the metadata log is."""
    _fill(stage, 0, 270)


def disk_low(stage: Stage) -> None:
    """The disk of a follower has 4 % left."""
    _fill(stage, 2 << 20, 180)


def node_refused(stage: Stage) -> None:
    """A broker of another cluster tries to register every five seconds."""
    stranger = BrokerRegistrationRequest(7, "another-cluster", uuid.uuid4().bytes)
    for second in range(FAULT_S, 210, 5):
        stage.wait_until(second)
        with suppress(OSError), stage.quorum.connect(stage.quorum.wait_for_leader()) as client:
            client.call(stranger, 4)


def brokers_lost(stage: Stage) -> None:
    """One of two brokers of a topic with min.insync.replicas=2 is gone, a minute later the other one."""
    leader = stage.quorum.controllers[stage.quorum.wait_for_leader()]
    brokers = [BenchBroker(one, leader.port, stage.quorum.cluster_id) for one in (1, 2)]
    for broker in brokers:
        broker.unfence()
    with Client(leader.host, leader.port) as client:
        topic = CreatableTopic("orders", 3, 2, configs=[CreatableTopicConfig("min.insync.replicas", "2")])
        client.call(CreateTopicsRequest([topic], 30_000), 7)
    with Heart(brokers[:1]):
        with Heart(brokers[1:]):
            stage.wait_until(FAULT_S)
        stage.wait_until(FAULT_S + 120)
    stage.wait_until(FAULT_S + 390)


def _kill(stage: Stage, count: int, until_s: float) -> None:
    leader = stage.quorum.wait_for_leader()
    stage.wait_until(FAULT_S)
    for node_id in [leader, *stage.quorum.others(leader)][:count]:
        stage.quorum.controllers[node_id].kill()
    stage.wait_until(until_s)


def _fill(stage: Stage, but_bytes: int, until_s: float) -> None:
    follower = stage.quorum.others(stage.quorum.wait_for_leader())[0]
    stage.wait_until(FAULT_S)
    with stage.disks[follower].full(but_bytes):
        stage.wait_until(until_s)


INCIDENTS: dict[str, Callable[[Stage], None]] = {
    one.__name__: one
    for one in (
        *(rolling_restart, one_down, majority_down, all_down, voter_cut_off, leader_cut_off),
        *(disk_full, disk_low, node_refused, brokers_lost),
    )
}
ON_SMALL_DISKS = ("disk_full", "disk_low")


# -- files


def compressed(values: Sequence[float | None]) -> str:
    """Values in promtool's notation: `1x3` is four of them, `2+1x3` is 2 3 4 5, `_` none, `stale` an end."""
    parts: list[str] = []
    at = 0
    while at < len(values):
        value = values[at]
        run = at
        if value is None:
            while run + 1 < len(values) and values[run + 1] is None:
                run += 1
            gone = at > 0
            count = run - at + 1 - gone
            parts += [*(["stale"] if gone else []), *([f"_x{count}"] if count else [])]
        else:
            step = _step(value, values[at + 1] if at + 1 < len(values) else None)
            expected = value
            while step is not None and run + 1 < len(values):
                expected += step
                if values[run + 1] != expected:
                    break
                run += 1
            sign = "" if not step else f"{step:+d}"
            parts.append(f"{_text(value)}{sign}x{run - at}" if run > at else _text(value))
        at = run + 1
    return " ".join(parts)


def _step(value: float, following: float | None) -> int | None:
    """The difference of two values for a run, if it is 0 or if both are whole numbers."""
    if following is None:
        return None
    if value == following:
        return 0
    return int(following - value) if value.is_integer() and following.is_integer() else None


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def write(name: str, series: Series) -> None:
    found = [{"series": key, "values": compressed(values)} for key, values in sorted(series.items())]
    text = yaml.safe_dump(found, width=1_000_000, sort_keys=False)
    about = f"# {INCIDENTS[name].__doc__}\n# Recorded by make incidents, every {STEP_S} s."
    (FOLDER / f"{name}.yml").write_text(f"{about}\n{text}")


def record(name: str, home: Path) -> None:
    with ExitStack() as stack:
        stage = Stage(home / name)
        stack.enter_context(stage.quorum)
        if name in ON_SMALL_DISKS:
            for node_id, controller in stage.quorum.controllers.items():
                disk = stack.enter_context(SmallDisk(controller.home / "disk"))
                stage.disks[node_id] = disk
                stage.quorum.keep_data_in(node_id, disk.path / "data")
        stage.quorum.start_controllers()
        stage.quorum.wait_for_voters(*VOTERS)
        with stage.recorded():
            INCIDENTS[name](stage)
        write(name, stage.series)
    print(f"{name}: {len(stage.series)} series", flush=True)


def main(names: Sequence[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="incidents") as home, ThreadPoolExecutor(len(INCIDENTS)) as pool:
        for done in [pool.submit(record, name, Path(home)) for name in names or INCIDENTS]:
            done.result()


if __name__ == "__main__":
    main(sys.argv[1:])
