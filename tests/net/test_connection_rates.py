"""New connections a second are limited as in Kafka: in all, by listener and by address."""

from __future__ import annotations

from kraftd.net.connection_rates import ConnectionRates, address_quota


def test_a_listeners_quota_and_that_of_all_both_hold() -> None:
    rates = ConnectionRates(100, {"A": 1})
    waits = [rates.accept("A", 0) for _ in range(12)]
    assert waits == [0] * 10 + [1_000, 1_000]
    assert not rates.accept("B", 0)


def test_dynamic_configs_override_the_quotas_of_the_file_the_nodes_own_first() -> None:
    own: dict[str, str] = {}
    every: dict[str, str] = {}
    rates = ConnectionRates(1, {"B": 2}, dynamic=lambda: (own, every))

    def allowed(listener: str, now_ms: int) -> int:
        return next(count for count in range(1_000) if rates.accept(listener, now_ms))

    assert allowed("A", 0) == 10
    every["max.connection.creation.rate"] = "5"
    assert allowed("A", 60_000) == 50
    own["max.connection.creation.rate"] = "3"
    assert allowed("A", 120_000) == 30
    assert allowed("B", 180_000) == 20  # of its own in the file
    own["listener.name.b.max.connection.creation.rate"] = "1"
    assert allowed("B", 240_000) == 10
    own.clear()
    every.clear()
    assert allowed("A", 300_000) == 10


def test_the_listener_among_brokers_has_the_quota_of_all_for_itself() -> None:
    changed: dict[str, str] = {}
    rates = ConnectionRates(2, dynamic=lambda: (changed,), among_brokers="B")

    def allowed(listener: str, now_ms: int) -> int:
        return next(count for count in range(1_000) if rates.accept(listener, now_ms))

    assert [allowed("A", 0), allowed("Z", 0), allowed("B", 0)] == [20, 0, 20]
    changed["max.connection.creation.rate"] = "3"
    assert [allowed("B", 60_000), allowed("A", 60_000)] == [30, 30]
    changed["listener.name.b.max.connection.creation.rate"] = "5"
    assert [allowed("B", 120_000), allowed("A", 120_000)] == [50, 30]


def test_a_connection_over_its_addresss_quota_gives_that_among_brokers_back() -> None:
    rates = ConnectionRates(1, of_address={"10.0.0.1": 0.5}.get, among_brokers="B")
    for _ in range(30):
        assert not rates.accept("B", 0)
        rates.accept_from("10.0.0.1", "B", 0)


def test_strangers_use_none_of_the_quota_of_known_hosts() -> None:
    rates = ConnectionRates(1)
    while not rates.accept("A", 0):
        pass
    assert [bool(rates.accept("A", 0, known=True)) for _ in range(11)] == [False] * 10 + [True]


def test_a_connection_over_the_quota_of_its_address_is_counted_nowhere() -> None:
    rates = ConnectionRates(2, of_address={"10.0.0.1": 1.0}.get)
    for _ in range(10):
        assert not rates.accept("A", 0) and not rates.accept_from("10.0.0.1", "A", 0)
    for _ in range(50):
        assert not rates.accept("A", 0) and rates.accept_from("10.0.0.1", "A", 0) == 1_000
    assert not rates.accept("A", 0) and not rates.accept_from("10.0.0.2", "A", 0)  # the tenth of 20 counted
    rates.sweep(60_000)
    assert repr(rates) == "<ConnectionRates 2 a second, {}, 0 addresses>"


def test_the_quota_of_an_address_is_its_own_or_the_default() -> None:
    quotas = {
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 7.0},
        (("ip", "::1"),): {"connection_creation_rate": 8.0},
        (("ip", None),): {"connection_creation_rate": 9.0},
        (("user", "10.0.0.3"),): {"request_percentage": 1.0},
    }
    assert [address_quota(quotas, host) for host in ("10.0.0.1", "::1", "10.0.0.3")] == [7.0, 8.0, 9.0]
    assert address_quota({}, "10.0.0.1") is None


def test_samples_are_as_long_and_as_many_as_in_the_file() -> None:
    rates = ConnectionRates(1, of_address={"10.0.0.1": 1.0}.get, window_ms=2_000, sample_count=4)
    assert [rates.accept("A", 0) for _ in range(8)] == [0] * 6 + [1_000, 2_000]
    assert [rates.accept_from("10.0.0.1", "A", 0) for _ in range(7)] == [0] * 6 + [1_000]
