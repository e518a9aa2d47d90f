"""A stock node and kraftd's, which get the same requests of transactional producers.

The producer ids of the stock node are those of both: kraftd's are translated in requests and answers.
"""

from __future__ import annotations

import re
import time
from typing import Any

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.list_transactions_response import ListTransactionsResponse
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.node import CombinedNode, Kind
from testkit.process import HOST, wait_until
from tests.kafka.broker.views import view
from tests.kafka.transactions.requests import GROUPS, IDS, PARTITIONS, with_producer_ids

KINDS: tuple[Kind, ...] = ("apache", "kraftd")
FEATURE = "transaction.version"
PREPARED = ("PrepareCommit", "PrepareAbort")
SETTLED_S, GIVEN_UP_S = 0.5, 10.0
_PRODUCER_IN_BATCH = 8  # its place in a batch's view


class TransactionPair:
    """Both nodes. `producer_ids`: kraftd's by the stock node's."""

    def __init__(self, nodes: dict[Kind, CombinedNode]) -> None:
        self.ports = {kind: nodes[kind].client_port for kind in KINDS}
        self.clients = {kind: Client(HOST, port) for kind, port in self.ports.items()}
        self.producer_ids: dict[int, int] = {}
        self.prefix = ""  # of the transactional ids of the present run
        self._stuck: set[str] = set()

    def __repr__(self) -> str:
        return f"<TransactionPair, {len(self.producer_ids)} producers>"

    def close(self) -> None:
        for client in self.clients.values():
            client.close()

    def begin(self) -> None:
        """The coordinators of all ids and groups, and producer ids."""
        for client in self.clients.values():

            def coordinates(client: Client = client) -> bool:
                found = [
                    row
                    for kind, names in enumerate((GROUPS, IDS))
                    for row in client.call(FindCoordinatorRequest("", kind, names), 4).coordinators
                ]
                made = [
                    client.call(InitProducerIdRequest(id, 60_000), 4)
                    for id in (None, *(f"first-{one}" for one in range(20)))
                ]
                return not any(one.error_code for one in [*found, *made])

            wait_until(coordinates, "its coordinators serve", 60)

    def set_version(self, level: int) -> None:
        """Finalize a level of transaction.version at both."""
        for client in self.clients.values():
            for upgrade_type in (1, 2):  # up, else down without loss
                update = FeatureUpdateKey(FEATURE, level, upgrade_type=upgrade_type)
                answer = client.call(UpdateFeaturesRequest(30_000, [update]), 1)
                if not answer.error_code and not any(one.error_code for one in answer.results):
                    break
            else:
                raise AssertionError(answer)
        time.sleep(0.5)  # the brokers apply it after the answer

    def create_topic(self, name: str) -> None:
        """Create a topic at both, and wait until it is led."""
        wanted = [ListOffsetsTopic(name, [ListOffsetsPartition(at, -1, -1) for at in range(PARTITIONS)])]
        for kind in KINDS:
            self._call(kind, CreateTopicsRequest([CreatableTopic(name, PARTITIONS, 1)], 30_000), 7)

            def is_led(kind: Kind = kind) -> bool:
                rows = self._call(kind, ListOffsetsRequest(-1, 0, wanted), 7).topics[0].partitions
                return not any(row.error_code for row in rows)

            wait_until(is_led, "the topic is led", 30)

    def ask(self, request: Message, version: int) -> tuple[Any, Any]:
        """The answers of both in comparable form."""
        key = api_key(request)
        theirs = self._call("apache", request, version)
        ours = self._call("kraftd", with_producer_ids(request, self.producer_ids), version)
        if isinstance(theirs, str) or isinstance(ours, str):
            return theirs, ours
        self._learn(theirs, ours)
        for answer in (theirs, ours):
            if isinstance(answer, ListTransactionsResponse):  # those of other runs end by their timeouts
                rows = [
                    one for one in answer.transaction_states if one.transactional_id.startswith(self.prefix)
                ]
                answer.transaction_states = sorted(rows, key=lambda one: one.transactional_id)
        back = {own: shared for shared, own in self.producer_ids.items()}
        return _flat(view(theirs, version, key), {}), _flat(view(ours, version, key), back)

    def _call(self, kind: Kind, request: Message, version: int) -> Any:
        """The answer, or "closed"."""
        try:
            return self.clients[kind].call(request, version)
        except ConnectionError:
            self.clients[kind].close()
            self.clients[kind] = Client(HOST, self.ports[kind])
            return "closed"

    def _learn(self, theirs: Any, ours: Any) -> None:
        """Pair the producer ids that both have drawn."""
        shared = getattr(theirs, "producer_id", -1)
        own = getattr(ours, "producer_id", -1)
        if shared >= 0 and own >= 0:
            self.producer_ids.setdefault(shared, own)

    def settle(self) -> None:
        """Wait until all that is decided has its markers.

        A marker that an operator wrote may fence those of the coordinator: its transaction then stays decided
        at both, and is remembered.
        """
        end_s = time.monotonic() + SETTLED_S
        theirs, ours = self._decided("apache"), self._decided("kraftd")
        while (theirs or ours) and (time.monotonic() < end_s or theirs != ours):
            if time.monotonic() > end_s + GIVEN_UP_S:
                raise AssertionError(f"decided at Kafka: {theirs}, at kraftd: {ours}")
            time.sleep(0.003)
            theirs, ours = self._decided("apache"), self._decided("kraftd")
        self._stuck |= theirs

    def _decided(self, kind: Kind) -> set[str]:
        """The transactional ids whose markers are not all written."""
        answer = self._call(kind, ListTransactionsRequest(PREPARED), 0)
        return {one.transactional_id for one in answer.transaction_states} - self._stuck


def _flat(value: Any, ids: dict[int, int]) -> Any:
    """A view with the shared producer ids, without texts and topic ids."""
    if isinstance(value, dict):
        aborted = value.get("abortedTransactions")
        if aborted:  # Kafka also lists some that begin behind the records
            end = value["lastStableOffset"]
            value = {**value, "abortedTransactions": [one for one in aborted if one["firstOffset"] < end]}
        return {
            name: ids.get(one, one) if name == "producerId" else _flat(one, ids)
            for name, one in value.items()
            if name not in ("topicId", "transactionStartTimeMs", "lastTimestamp")
        }
    if isinstance(value, list | tuple):
        if len(value) > _PRODUCER_IN_BATCH and isinstance(value[-1], str):
            return [ids.get(one, one) if at == _PRODUCER_IN_BATCH else one for at, one in enumerate(value)]
        return [_flat(one, ids) for one in value]
    return value


def error_codes(shown: Any) -> set[int]:
    """The error codes in the view of an answer."""
    return set(map(int, re.findall(r"rrorCode': (-?\d+)", repr(shown))))
