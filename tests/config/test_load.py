"""A controller's file is read as Kafka reads it, and each error names its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.config import ConfigError, DaemonConfig, load
from kraftd.config.daemon import ROWS
from kraftd.config.keys import OF_LISTENERS, OWN, WITHOUT_EFFECT
from kraftd.config.reference import page_with_tables
from kraftd.config.settings import Setting
from kraftd.config.unknown import edit_distance, probably_meant
from kraftd.configdef.definition import broker_def, value_text
from kraftd.types import Endpoint
from tests.controller.config_oracle import BASE, ConfigOracle, texts_for

ROOT = Path(__file__).resolve().parent.parent.parent

Load = Callable[..., DaemonConfig]


@pytest.fixture
def load_lines(tmp_path: Path) -> Load:
    """Loads a file of the base keys and these lines, which come from line 6 on."""

    def loaded(*lines: str, without: str = "", overrides: tuple[str, ...] = ()) -> DaemonConfig:
        path = tmp_path / "controller.properties"
        base = [f"{key}={text}" for key, text in BASE.items() if key != without]
        path.write_text("\n".join([*base, *lines]) + "\n")
        return load(path, overrides)

    return loaded


def problems(load_lines: Load, *lines: str, **more: object) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_lines(*lines, **more)
    return list(refused.value.problems)


def test_a_plain_file_gives_kafkas_defaults(load_lines: Load) -> None:
    config = load_lines()
    assert config.node_id == 7
    assert config.listeners == (Endpoint("CONTROLLER", "", 9093),)
    assert config.quorum_bootstrap_servers == (("127.0.0.1", 9093),)
    assert (config.quorum_election_timeout_ms, config.quorum_fetch_timeout_ms) == (1000, 2000)
    assert config.broker_session_timeout_ms == 9000
    assert config.metadata_max_idle_interval_ms == 500
    assert config.metadata_log_dir == "/tmp/kafka-logs"
    assert config.warnings == ()


def test_the_repositorys_example_file_loads_without_warnings() -> None:
    config = load(ROOT / "config" / "controller.properties")
    assert config.advertised_listeners == (Endpoint("CONTROLLER", "127.0.0.1", 9093),)
    clients = (Endpoint("PLAINTEXT", "127.0.0.1", 9092), Endpoint("LOG", "127.0.0.1", 9094))
    assert config.client_listeners == clients
    assert config.listeners == config.advertised_listeners + config.client_listeners
    assert config.log_dirs == (f"{Path.cwd()}/./data",)
    assert config.warnings == ()


def test_directories_are_named_to_clients_as_by_kafka(load_lines: Load) -> None:
    """From the root, so that kafka-log-dirs and kafka-reassign-partitions know them."""
    config = load_lines(overrides=("log.dirs=/var//a b/, ./c,d/e", "metadata.log.dir=e/"))
    here = Path.cwd()
    assert config.log_dirs == ("/var/a b", f"{here}/./c", f"{here}/d/e")
    assert config.metadata_log_dir == f"{here}/e"


@pytest.mark.parametrize("lines", [("log.dirs=c,./c",), ("log.dirs=c,d", "metadata.log.dir=./d")])
def test_one_directory_has_one_name(load_lines: Load, lines: tuple[str, ...]) -> None:
    (problem,) = problems(load_lines, *lines)
    assert problem.endswith("are one directory; use one name for it (controller.properties, line 6)")


def test_an_override_wins_over_the_file(load_lines: Load) -> None:
    config = load_lines("num.partitions=3", overrides=("num.partitions=5", "log.dirs=/a, /b"))
    assert config.num_partitions == 5
    assert config.data_dirs == ("/a", "/b")


def test_keys_without_effect_are_one_warning(load_lines: Load) -> None:
    config = load_lines("num.network.threads=3", "log.retention.check.interval.ms=300000")
    assert config.warnings == (
        "these keys have no effect on kraftd: log.retention.check.interval.ms, num.network.threads",
    )


@pytest.mark.parametrize("key", sorted(ROWS.keys() - OF_LISTENERS))
def test_a_key_of_the_node_has_no_effect_for_one_listener(load_lines: Load, key: str) -> None:
    name = f"listener.name.controller.{key}"
    assert load_lines(f"{name}=1").warnings == (f"these keys have no effect on kraftd: {name}",)


def test_the_file_distributed_with_kafka_has_one_warning(load_lines: Load) -> None:
    """The warning names the keys of its config/controller.properties that kraftd does not use."""
    keys = (
        "num.network.threads=3",
        "num.io.threads=8",
        "socket.send.buffer.bytes=102400",
        "socket.receive.buffer.bytes=102400",
        "socket.request.max.bytes=104857600",
        "num.partitions=1",
        "num.recovery.threads.per.data.dir=1",
        "offsets.topic.replication.factor=1",
        "share.coordinator.state.topic.replication.factor=1",
        "share.coordinator.state.topic.min.isr=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "log.retention.hours=168",
        "log.segment.bytes=1073741824",
        "log.retention.check.interval.ms=300000",
    )
    (warning,) = load_lines(*keys).warnings
    assert warning.startswith("these keys have no effect on kraftd: ")


def test_a_voter_that_is_named_twice_is_refused(load_lines: Load) -> None:
    (problem,) = problems(load_lines, "controller.quorum.voters=7@a:9093,2@b:9093,7@c:9093")
    assert "node 7 is there twice" in problem


def test_a_voter_that_listens_on_another_port_is_a_warning(load_lines: Load) -> None:
    (warning,) = load_lines("controller.quorum.voters=7@127.0.0.1:9999,2@b:9093").warnings
    assert "has this node at 127.0.0.1:9999, and it listens on port" in warning
    assert load_lines("controller.quorum.voters=7@other-name:9093,2@b:9093").warnings == ()
    forwarded = ("controller.quorum.voters=7@a:9999,2@b:9093", "advertised.listeners=CONTROLLER://a:9999")
    assert load_lines(*forwarded).warnings == ()


@pytest.mark.parametrize(
    ("listens", "called", "warned"),
    [
        ("127.0.0.1", "10.0.0.5", True),
        ("localhost", "10.0.0.5", True),
        ("10.0.0.5", "localhost", True),
        ("[::1]", "[fd00::1]", True),
        ("::1", "127.0.0.1", True),
        ("10.0.0.5", "10.0.0.5", False),
        ("localhost", "[::1]", False),
        ("", "10.0.0.5", False),
        ("0.0.0.0", "10.0.0.5", False),
        ("[::]", "10.0.0.5", False),
        ("a-name", "10.0.0.5", False),
        ("10.0.0.5", "a-name", False),
    ],
)
def test_a_voter_that_listens_on_another_host_is_a_warning(
    load_lines: Load, listens: str, called: str, warned: bool
) -> None:
    lines = (f"controller.quorum.voters=7@{called}:9093,2@b:9093", f"listeners=CONTROLLER://{listens}:9093")
    warnings = load_lines(*lines, without="listeners").warnings
    assert len(warnings) == warned
    if warned:
        assert f"{called.strip('[]')}:9093, and it listens on {listens.strip('[]')} alone" in warnings[0]


def test_the_text_of_a_misspelt_key_is_never_shown(load_lines: Load) -> None:
    for line in ("ssl.keystore.pasword=s3cret", "kraftd.nonsense=s3cret"):
        (problem,) = problems(load_lines, line)
        assert "s3cret" not in problem
    assert "s3cret" not in repr(load_lines("plugin.thing=s3cret").warnings)


def test_a_key_that_topics_inherit_is_no_warning(load_lines: Load) -> None:
    assert load_lines("log.retention.hours=3", "min.insync.replicas=2").warnings == ()


def test_a_key_that_is_set_twice_is_reported(load_lines: Load) -> None:
    config = load_lines("num.partitions=3", "num.partitions=4")
    assert config.num_partitions == 4
    expected = "num.partitions is set twice in controller.properties: line 7 counts, line 6 does not"
    assert config.warnings == (expected,)


def test_an_unknown_key_is_a_warning_and_a_listeners_own_key_is_not(load_lines: Load) -> None:
    config = load_lines("my.plugin.setting=1", "listener.name.controller.my.thing=2")
    expected = "these are keys of neither Kafka nor kraftd, and have no effect: my.plugin.setting"
    assert config.warnings == (expected,)


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("metadata.log.dirs=/m", "metadata.log.dir"),
        ("controller.quorum.boostrap.servers=a:1", "controller.quorum.bootstrap.servers"),
        ("Num.Partitions=3", "num.partitions"),
        ("num.partitoins=3", "num.partitions"),
        ("kraftd.log.fromat=json", "kraftd.log.format"),
    ],
)
def test_a_misspelt_key_is_refused_with_a_suggestion(load_lines: Load, line: str, suggestion: str) -> None:
    key = line.partition("=")[0]
    assert problems(load_lines, line) == [
        f"{key}: there is no such key; did you mean {suggestion}? (controller.properties, line 6)"
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("num.partitions=three", "must be a whole number of 32 bits"),
        ("num.partitions=0", "must be at least 1"),
        ("broker.session.timeout.ms=9s", "must be a whole number of 32 bits"),
        ("delete.topic.enable=yes", "must be true or false"),
        ("compression.type=zip", "must be one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("controller.quorum.voters=7@", "must be id@host:port, like 1@controller1:9093"),
        ("metadata.log.segment.bytes=100", "must be at least 8388608"),
        ("log.retention.ms=0", "must be at least 1, or -1 for no limit"),
        ("log.cleaner.threads=0", "must be at least 1"),
    ],
)
def test_an_ill_typed_value_is_refused_with_the_accepted_values(
    load_lines: Load, line: str, expected: str
) -> None:
    [problem] = problems(load_lines, line)
    assert problem.endswith(f"{expected} (controller.properties, line 6)")


def test_all_problems_are_reported_at_once(load_lines: Load) -> None:
    assert len(problems(load_lines, "num.partitions=x", "delete.topic.enable=y", "num.partitoins=1")) == 3


@pytest.mark.parametrize("bad", ["num.partitions=x", "num.partitoins=1"])
def test_conflicting_values_are_reported_beside_unreadable_ones(load_lines: Load, bad: str) -> None:
    more = [
        "controller.quorum.voters=8@a:1,8@b:1",
        "broker.id=5",
        "log.retention.ms=0",
        "max.connections.per.ip=0",
        "kraftd.metrics.listener=:9093",
        "queued.max.request.bytes=10",
        "advertised.listeners=CONTROLLER://a:b",
        "group.consumer.heartbeat.interval.ms=45000",
        "log.cleaner.dedupe.buffer.size=5",
        "offsets.topic.compression.codec=5",
        "share.coordinator.state.topic.compression.codec=-1",
        "group.share.assignors=simple,simple2",
    ]
    together = problems(load_lines, *more)
    assert len(together) == 14  # voters and heartbeats have two each
    assert problems(load_lines, *more, bad)[1:] == together


def test_the_assignor_of_share_groups_may_be_named_by_its_class(load_lines: Load) -> None:
    known = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
    assert load_lines(f"group.share.assignors={known}")
    assert len(problems(load_lines, "group.share.assignors=com.example.Mine")) == 1


def test_a_rule_that_depends_on_an_unreadable_value_is_not_checked(load_lines: Load) -> None:
    """Its default is not checked either: misspelt bootstrap servers are not reported as missing, too."""
    for line in ("controller.quorum.boostrap.servers=a:1", "controller.quorum.bootstrap.servers=a"):
        (problem,) = problems(load_lines, line, without="controller.quorum.bootstrap.servers")
        assert problem.startswith(line.partition("=")[0])
    for line in ("group.consumer.session.timeout.ms=x", "listener.security.protocol.map=CONTROLLER"):
        assert len(problems(load_lines, line)) == 1


@pytest.mark.parametrize("key", ["process.roles", "node.id", "controller.listener.names"])
def test_a_missing_required_key_is_reported_with_an_example(load_lines: Load, key: str) -> None:
    [problem] = problems(load_lines, without=key)
    assert problem.startswith(f"{key} is not set; add a line like {key}=")


OWN_VOTER = f"controller.quorum.voters={BASE['node.id']}@a:1"
BROKER_PROTOCOLS = "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,IN:PLAINTEXT"


def test_a_file_of_both_roles_has_listeners_of_both(load_lines: Load) -> None:
    both = "listeners=PLAINTEXT://a:9092,IN://:9094,CONTROLLER://:9093"
    config = load_lines("process.roles=broker,controller", both, BROKER_PROTOCOLS, without="listeners")
    assert [repr(one) for one in config.broker_listeners] == ["PLAINTEXT://a:9092", "IN://:9094"]
    assert (config.is_controller, config.is_broker, config.inter_broker_listener) == (True, True, "PLAINTEXT")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("process.roles=broker,controller",), "the broker needs a listener of its own"),
        (
            ("process.roles=broker", "listeners=CONTROLLER://:9093"),
            "a broker alone has no listener",
        ),
        (("process.roles=broker", "listeners=IN://:9094"), "the broker has no listener named PLAINTEXT"),
        (
            (
                "process.roles=broker",
                "listeners=PLAINTEXT://:9092",
                f"controller.quorum.voters={BASE['node.id']}@a:1",
            ),
            "is a voter's, and a broker alone needs another",
        ),
    ],
)
def test_listeners_and_voters_that_do_not_fit_the_roles_are_refused(
    load_lines: Load, lines: tuple[str, ...], problem: str
) -> None:
    without = "listeners" if any(line.startswith("listeners") for line in lines) else None
    found = problems(load_lines, *lines, BROKER_PROTOCOLS, **({"without": without} if without else {}))
    assert any(problem in one for one in found), found


def test_a_listener_without_a_protocol_is_refused_with_a_suggestion(load_lines: Load) -> None:
    assert problems(load_lines, "listeners=CONTROLER://:9093", without="listeners") == [
        "listeners=CONTROLER://:9093: no listener named CONTROLER in listener.security.protocol.map; "
        "did you mean CONTROLLER? (controller.properties, line 5)"
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["listeners=CONTROLLER://:9093,PLAINTEXT://:9092"], "PLAINTEXT is no controller listener"),
        (["kraftd.client.listener.names=CLIENT"], "there is no listener named CLIENT in"),
        (["kraftd.client.listener.names=CONTROLLER"], "CONTROLLER is a controller listener, and ordinary"),
        (["kraftd.client.broker.listener.name=X"], "it does nothing without kraftd.client.listener.names"),
        (["controller.listener.names=OTHER"], "name it there or in controller.listener.names"),
        (["controller.listener.names=CONTROLLER,B"], "there is no listener named B"),
        (["listener.security.protocol.map=CONTROLLER:SSL"], "CONTROLLER is TLS and needs a key store"),
        (["listener.security.protocol.map=CONTROLLER"], "must be NAME:PROTOCOL"),
        (["listeners=CONTROLLER://:x"], "must be NAME://host:port"),
        (["advertised.listeners=CONTROLLER://0.0.0.0:9093"], "no node can connect to 0.0.0.0"),
        (["controller.quorum.bootstrap.servers="], "neither controller.quorum.bootstrap.servers nor"),
        (["controller.quorum.voters=8@a:1"], "node.id=7 is not among the voters"),
        (["controller.quorum.voters=7@0.0.0.0:9093"], "no node can connect to node 7 at 0.0.0.0"),
        (["metadata.log.segment.ms=0"], "must be at least 1"),
        (["broker.id=8"], "broker.id=8 says otherwise"),
        (["queued.max.request.bytes=10"], "must hold one request of socket.request.max.bytes"),
        (["max.connections.per.ip=0"], "no client could connect"),
        (["early.start.listeners=X"], "there is no listener named X"),
        (["authorizer.class.name=a.B"], "kraftd runs no Java classes"),
    ],
)
def test_conflicting_or_invalid_values_are_refused(load_lines: Load, lines: list[str], message: str) -> None:
    assert any(message in problem for problem in problems(load_lines, *lines))


def test_a_problem_found_twice_is_reported_once(load_lines: Load) -> None:
    (problem,) = problems(
        load_lines,
        "listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.controller.protocol=PLAIN",
        "listener.name.controller.plain.sasl.jaas.config=nonsense",
    )
    assert "the JAAS entry must end with a semicolon" in problem


def test_a_secret_is_not_shown(load_lines: Load) -> None:
    messages = problems(
        load_lines, "ssl.keystore.passwort=hunter2", "ssl.keystore.password=hunter2", "num.partitions=x"
    )
    assert len(messages) == 2 and "hunter2" not in repr(messages)


@pytest.mark.parametrize(
    "key",
    [
        "ssl.keystore.password",
        "listener.name.controller.ssl.key.password",
        "listener.name.controller.plain.sasl.jaas.config",
        "delegation.token.secret.key",
        "kraftd.metrics.password",
        "a.plugins.secret",
        "a.plugins.Passphrase",
    ],
)
def test_the_value_of_a_key_that_may_hold_a_secret_is_hidden(key: str) -> None:
    setting = Setting(key, "hunter2", "controller.properties, line 6")
    assert repr(setting) == f"{key}=[hidden] (controller.properties, line 6)"
    assert Setting("num.partitions", "3", "here").shown() == "num.partitions=3"
    assert Setting("num.partitions", "3", "here", hidden=True).shown() == "num.partitions=[hidden]"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load(tmp_path / "none.properties")


@pytest.mark.parametrize("override", ["", "=1", "num.partitions"])
def test_an_override_without_key_and_value_is_refused(load_lines: Load, override: str) -> None:
    assert "must be key=value" in problems(load_lines, overrides=(override,))[0]


def test_the_log_start_waits_seven_days_by_default__kip630(load_lines: Load) -> None:
    assert load_lines().metadata_start_offset_lag_max_ms == 7 * 24 * 3_600_000
    assert load_lines("metadata.start.offset.lag.time.max.ms=5").metadata_start_offset_lag_max_ms == 5


def test_the_share_of_changes_has_the_name_of_its_kip__kip630(load_lines: Load) -> None:
    assert load_lines().metadata_snapshot_min_changed_ratio == 0
    config = load_lines("metadata.snapshot.min.changed_records.ratio=0.5")
    assert config.metadata_snapshot_min_changed_ratio == 0.5
    assert "must be at most 1" in problems(load_lines, "metadata.snapshot.min.changed_records.ratio=1.5")[0]


def test_every_row_has_a_key_of_kafka_or_a_definition_of_its_own() -> None:
    assert {key for key, row in ROWS.items() if row.definition is None} <= set(broker_def())
    assert not set(OWN) & set(broker_def())


def test_the_docs_page_has_the_tables_made_from_the_rows() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert page_with_tables(page) == page, "run python -m kraftd.config.reference docs/configuration.md"


def test_the_docs_page_lists_the_keys_without_effect() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    for key, why in WITHOUT_EFFECT.items():
        assert f"| `{key}` | {why} |" in page


def test_connection_limits_are_overridden_by_host(load_lines: Load) -> None:
    config = load_lines("max.connections.per.ip=0", "max.connections.per.ip.overrides=127.0.0.1:5, h:1")
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 5, "h": 1}
    assert problems(load_lines, "max.connections.per.ip.overrides=h") == [
        "max.connections.per.ip.overrides=h: h must be host:number (controller.properties, line 6)"
    ]


@settings(max_examples=200, deadline=None)
@given(st.text("abc.", max_size=9), st.text("abc.", max_size=9))
def test_the_edit_distance_is_symmetric(left: str, right: str) -> None:
    assert edit_distance(left, right, 3) == edit_distance(right, left, 3)
    assert (edit_distance(left, right, 3) == 0) == (left == right)


def test_two_swapped_letters_are_one_edit() -> None:
    assert edit_distance("partitoins", "partitions", 2) == 1
    assert probably_meant("node.di", ["node.id", "log.dir"]) == "node.id"
    assert probably_meant("completely.different", ["node.id", "log.dir"]) is None


@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [
        ("log.retention.hrs", "log.retention.hours"),
        ("broker.session.timeout", "broker.session.timeout.ms"),
        ("broker.session.timeout.millis", "broker.session.timeout.ms"),
        ("broker.session.timeout.sec", "broker.session.timeout.ms"),
        ("metadata.log.segment.ms.days", None),
        ("log.retention.days", None),  # hours, minutes and ms are there
        ("metadata.max.retention", None),
        ("broker.session", None),
    ],
)
def test_a_key_with_a_wrong_or_missing_unit_gets_a_suggestion(typed: str, suggestion: str | None) -> None:
    assert probably_meant(typed, broker_def()) == suggestion


@pytest.fixture(scope="module")
def oracle() -> Iterator[ConfigOracle]:
    running = ConfigOracle()
    yield running
    running.close()


LISTENERS = st.lists(
    st.sampled_from(
        [
            "CONTROLLER://:9093",
            "CONTROLLER://0.0.0.0:9093",
            "controller://localhost:0",
            "CONTROLLER2://127.0.0.1:9094",
            "CONTROLLER2://[::1]:9093",
            "PLAINTEXT://:9092",
            "nonsense",
            "CONTROLLER://a:b",
        ]
    ),
    max_size=2,
).map(",".join)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "listeners": LISTENERS,
        "advertised.listeners": LISTENERS,
        "controller.listener.names": st.sampled_from(
            ["CONTROLLER", "CONTROLLER2", "CONTROLLER,CONTROLLER2", "controller"]
        ),
        "listener.security.protocol.map": st.sampled_from(
            ["CONTROLLER:PLAINTEXT,CONTROLLER2:PLAINTEXT", "controller : plaintext", "CONTROLLER:X", ""]
        ),
        "controller.quorum.voters": st.sampled_from(
            ["7@a:1", "7@a:1,8@b:2", "8@b:2", "7@0.0.0.0:1", "", "7"]
        ),
        "controller.quorum.bootstrap.servers": st.sampled_from(["a:1", "", "a", "[::1]:5,b:6"]),
        "broker.id": st.sampled_from(["7", "8"]),
        "log.dirs": st.sampled_from(["/a", "/a,/b", "", ",", "/a,/a"]),
        "metadata.log.dir": st.just("/m"),
        "log.roll.ms": st.sampled_from(["0", "1"]),
        "log.retention.minutes": st.sampled_from(["0", "-1", "5"]),
        "log.cleaner.dedupe.buffer.size": st.sampled_from(["1048576", "1048577", "2097152"]),
        "group.consumer.heartbeat.interval.ms": st.sampled_from(["1", "5000", "15001", "45000"]),
        "group.share.max.share.sessions": st.sampled_from(["100", "200", "2000"]),
        "queued.max.request.bytes": st.sampled_from(["-1", "0", "5", "104857600"]),
        "inter.broker.listener.name": st.sampled_from(["CONTROLLER", "PLAINTEXT", "X"]),
        "early.start.listeners": st.sampled_from(["CONTROLLER", "X", ""]),
        "max.connections.per.ip": st.sampled_from(["0", "5"]),
    },
)
# Kafka's configuration accepts these. Its start refuses some; kraftd refuses others on purpose, or for now.
OURS_ALONE = ("kraftd serves only", "is no port", "no node can connect to node")


@pytest.mark.kafka
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=FILES)
def test_a_file_is_accepted_if_kafka_accepts_it_and_means_the_same(
    oracle: ConfigOracle, load_lines: Load, lines: dict[str, str]
) -> None:
    theirs = oracle.ask("server", static={**BASE, **lines})
    try:
        ours = load_lines(*(f"{key}={text}" for key, text in lines.items()))
    except ConfigError as error:
        if not any(alone in str(error) for alone in OURS_ALONE):
            assert "thrown" in theirs, error
        return
    assert "thrown" not in theirs, theirs
    announced = [f"{end.listener}://{end.host}:{end.port}" for end in ours.advertised_listeners]
    assert announced == theirs["announced"]
    assert ours.metadata_log_dir == theirs["metadata"]
    for name, value in ours.node_config.typed.items():
        if broker_def()[name].type != "class":
            assert value_text(value) == theirs["values"].get(name, value_text(value)), name
    for name, value in ours.node_config.topic_defaults.items():
        assert value_text(value) == theirs["topic"][name], name


@pytest.mark.kafka
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_key_accepts_the_texts_that_kafka_accepts(oracle: ConfigOracle, data: st.DataObject) -> None:
    keys = sorted(key for key in broker_def() if key not in BASE and broker_def()[key].type != "class")
    key = broker_def()[data.draw(st.sampled_from(keys))]
    text = data.draw(texts_for(key))
    theirs = oracle.ask("server", static={**BASE, key.name: text}).get("thrown", "")
    try:
        key.parse(text)
    except ValueError as error:
        assert theirs, (key.name, text, error)
    else:
        # Conflicts with other keys have their own tests.
        assert f"for configuration {key.name}" not in theirs, (key.name, text, theirs)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9404", "127.0.0.1", 9404),
        (":9404", "", 9404),
        ("[::1]:9404", "::1", 9404),
        ("http://controller-1.example:0/", "controller-1.example", 0),
    ],
)
def test_the_metrics_listener_is_a_host_and_a_port(load_lines: Load, text: str, host: str, port: int) -> None:
    found = load_lines(f"kraftd.metrics.listener={text}").metrics_listener
    assert found is not None
    assert (found.host, found.port) == (host, port)


def test_a_metrics_listener_over_tls_needs_its_own_or_the_nodes_key_store(load_lines: Load) -> None:
    (problem,) = problems(load_lines, "kraftd.metrics.listener=https://:9404")
    assert "METRICS is TLS and needs a key store" in problem
    for prefix in ("", "listener.name.metrics."):
        lines = f"{prefix}ssl.keystore.type=PEM\n{prefix}ssl.keystore.location=node.pem"
        found = load_lines(f"kraftd.metrics.listener=https://:9404\n{lines}").security.listeners["METRICS"]
        assert found.tls is not None and found.tls.keystore.location == "node.pem"


def test_a_metrics_password_without_a_user_is_refused_without_tls_warned_of(load_lines: Load) -> None:
    (problem,) = problems(load_lines, "kraftd.metrics.listener=:9404\nkraftd.metrics.password=x")
    assert problem.startswith("kraftd.metrics.user")
    text = "kraftd.metrics.listener=:9404\nkraftd.metrics.user=u\nkraftd.metrics.password=hidden"
    (warning,) = [one for one in load_lines(text).warnings if "kraftd.metrics" in one]
    assert "plaintext" in warning and "hidden" not in warning


def test_metrics_are_served_only_at_a_configured_listener(load_lines: Load) -> None:
    assert load_lines().metrics_listener is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9404", "must be host:port, like 127.0.0.1:9404, or :9404 for every interface"),
        ("METRICS://:9404", "must be host:port"),
        ("localhost:70000", "70000 is no port; ports are from 0 to 65535"),
        (":9093", "several listeners have port 9093"),
    ],
)
def test_an_invalid_metrics_listener_is_refused_with_a_remedy(load_lines: Load, text: str, why: str) -> None:
    (problem,) = problems(load_lines, f"kraftd.metrics.listener={text}")
    assert problem.startswith(f"kraftd.metrics.listener={text}: ")
    assert why in problem
    assert problem.endswith("(controller.properties, line 6)")


MARK = b"\xef\xbb\xbf"


def marked_file(tmp_path: Path, *lines: str, mark: bytes = MARK) -> Path:
    path = tmp_path / "controller.properties"
    path.write_bytes(mark + "\n".join([*lines, *(f"{key}={text}" for key, text in BASE.items())]).encode())
    return path


@pytest.mark.parametrize("first", ["num.partitions=3", "process.roles=controller", "kraftd.log.level = info"])
def test_a_byte_order_mark_before_a_key_is_reported_once(tmp_path: Path, first: str) -> None:
    key = first.partition("=")[0].strip()
    path = marked_file(tmp_path, first)
    if key in BASE:
        path.write_bytes(path.read_bytes().replace(b"\n" + key.encode() + b"=", b"\nmy.key="))
    with pytest.raises(ConfigError) as refused:
        load(path)
    (problem,) = refused.value.problems
    assert problem.startswith(f"{key}: the file begins with a UTF-8 byte order mark")
    assert problem.endswith("save the file without it (controller.properties, line 1)")


def test_a_byte_order_mark_before_a_comment_is_a_warning(tmp_path: Path) -> None:
    (warning,) = load(marked_file(tmp_path, "# my controller")).warnings
    assert warning.startswith("the file begins with a UTF-8 byte order mark")
    assert load(marked_file(tmp_path, "# my controller", mark=b"")).warnings == ()
