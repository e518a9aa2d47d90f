"""Makes `format("kraft")` known to a session, with tables."""

from __future__ import annotations

import atexit
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from kraftd.spark.session import register_source
from kraftd.spark.table_server import TableServer

_SERVERS: WeakKeyDictionary[SparkSession, TableServer] = WeakKeyDictionary()


def register(session: SparkSession) -> None:
    """What `kraftd.spark.register` does."""
    server = _SERVERS.get(session)
    if server is None:
        server = _SERVERS[session] = TableServer(session)
        atexit.register(server.close)
    register_source(session, server.address)
