"""Requests of a broker and its clients to a controller, for tests that need topics in a real quorum."""

from __future__ import annotations

import asyncio

from kraftd.client.connection import Connection
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.broker_registration_response import BrokerRegistrationResponse
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreateTopicsResponse
from kraftd.metadata.features import supported_features
from kraftd.wire.error_code import ErrorCode


def register_broker(port: int, cluster_id: str) -> None:
    """Register broker 100 at the leader and unfence it."""
    request = BrokerRegistrationRequest(
        broker_id=100,
        cluster_id=cluster_id,
        incarnation_id=bytes(15) + b"\7",
        listeners=[Listener("PLAINTEXT", "127.0.0.1", 9092)],
        features=[Feature(name, *levels) for name, levels in supported_features().items()],
        log_dirs=(bytes(14) + b"\1\1",),
    )

    async def ask() -> None:
        async with await Connection.open("127.0.0.1", port, 10) as connection:
            registered = await connection.ask(request, BrokerRegistrationResponse)
            while registered.error_code == ErrorCode.NOT_CONTROLLER:  # until it leads
                await asyncio.sleep(0.02)
                registered = await connection.ask(request, BrokerRegistrationResponse)
            assert registered.error_code == ErrorCode.NONE
            epoch = registered.broker_epoch
            alive = BrokerHeartbeatRequest(100, epoch, epoch + 1, want_fence=False)
            answer = await connection.ask(alive, BrokerHeartbeatResponse)
            assert (answer.error_code, answer.is_fenced) == (ErrorCode.NONE, False)

    asyncio.run(ask())


def create_topics(port: int, *names: str) -> None:
    """Create topics at the leader; on return it has acknowledged them."""
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in names], 30_000)

    async def ask() -> CreateTopicsResponse:
        async with await Connection.open("127.0.0.1", port, 10) as connection:
            return await connection.ask(request, CreateTopicsResponse)

    answer = asyncio.run(ask())
    assert [one.error_code for one in answer.topics] == [ErrorCode.NONE] * len(names), answer
