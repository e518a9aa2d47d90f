"""Which quota of a key a client has: the most specific one of its user and its client id, as in Kafka."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.controller.quotas.entities import CLIENT_ID, USER
from kraftd.metadata.state import QuotaEntity

Quotas = Mapping[QuotaEntity, Mapping[str, float]]
Limited = tuple[str | None, str | None]  # user and client id that share a quota, None if it is not per that


def limit_of(quotas: Quotas, key: str, user: str, client_id: str) -> tuple[Limited, float] | None:
    """The sharers of a client's quota, and its value, by Kafka's order of precedence; None without one.

    No quota of a client id is one of clients without an id, not even a default.
    """
    client_names = (client_id, None) if client_id else ()
    for user_name in (user, None):
        for client_name in client_names:
            limit = quotas.get(((CLIENT_ID, client_name), (USER, user_name)), {}).get(key)
            if limit is not None:
                return (user, client_id), limit
        limit = quotas.get(((USER, user_name),), {}).get(key)
        if limit is not None:
            return (user, None), limit
    for client_name in client_names:
        limit = quotas.get(((CLIENT_ID, client_name),), {}).get(key)
        if limit is not None:
            return (None, client_id), limit
    return None
