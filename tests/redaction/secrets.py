"""Random records with secrets, and whether a reader's output has any of them."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from random import Random

from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.security.sasl.delegation_tokens import token_hmac
from kraftd.wire.message import Message

HMAC_KEY = b"the key of all tokens' HMACs"
SENSITIVE = (
    (4, "", "ssl.keystore.password"),
    (4, "1", "listener.name.clients.ssl.key.password"),
    (4, "1", "listener.name.clients.scram-sha-512.sasl.jaas.config"),
    (4, "2", "plugin.of.ours.token"),
    (2, "orders", "no.key.of.kafkas"),
    (16, "s", "unknown"),
    (32, "g", "unknown"),
    (99, "x", "retention.ms"),
)
PUBLIC = (
    (2, "orders", "retention.ms", "500"),
    (4, "", "log.cleaner.threads", "2"),
    (4, "1", "listener.name.clients.ssl.keystore.location", "/etc/kraftd/node.pem"),
    (32, "g", "consumer.session.timeout.ms", "50000"),
)


def records_with_secrets(random: Random, count: int) -> tuple[list[Message], set[bytes]]:
    """Records of all kinds, and their secrets: what no reader may see."""
    records: list[Message] = []
    secrets: set[bytes] = set()

    def secret(size: int) -> bytes:
        secrets.add(found := random.randbytes(size))
        return found

    for number in range(count):
        match random.randrange(5):
            case 0:
                keys = secret(16), secret(32), secret(32)
                records.append(UserScramCredentialRecord(f"user{number}", random.randint(1, 2), *keys, 4096))
            case 1:
                resource_type, owner, key = random.choice(SENSITIVE)
                text = secret(random.randint(9, 40)).hex()
                secrets.add(text.encode())
                records.append(ConfigRecord(resource_type, owner, key, text))
            case 2:
                records.append(ConfigRecord(*random.choice(PUBLIC)))
            case 3:
                token_id = f"token{number}"
                secrets.add(token_hmac(HMAC_KEY, token_id))
                times = 1, 3, 2
                records.append(DelegationTokenRecord("User:a", "User:a", ("User:b",), *times, token_id))
            case _:
                records.append(TopicRecord(f"topic{number}", number.to_bytes(16)))
    return records, secrets


def shown_secrets(output: bytes, secrets: Iterable[bytes]) -> list[bytes]:
    """The secrets that an output holds: raw, in hex or in base64, as a whole or the first eight bytes."""
    return [
        secret
        for secret in secrets
        for part in (secret, secret[:8])
        for form in (part, part.hex().encode(), base64.b64encode(part)[:10])
        if form in output
    ]
