"""Records and configs as readers see them: without secrets, and hidden where nothing is known of them."""

from __future__ import annotations

import pytest

from kraftd.messages import registry
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.messages.vote_request import VoteRequest
from kraftd.redaction.configs import REDACTED, is_sensitive, public_configs, shown
from kraftd.redaction.records import HARMLESS, hidden_fields, redacted
from tests.redaction.secrets import PUBLIC, SENSITIVE


@pytest.mark.parametrize(("resource_type", "_owner", "name"), SENSITIVE)
def test_passwords_and_unknown_keys_are_hidden(resource_type: int, _owner: str, name: str) -> None:
    assert shown(resource_type, name, "s3cret") == REDACTED
    assert shown(resource_type, name, "s3cret", show_secrets=True) == "s3cret"
    assert shown(resource_type, name, None) is None
    assert (resource_type, name) not in public_configs()


@pytest.mark.parametrize(("resource_type", "_owner", "name", "value"), PUBLIC)
def test_other_keys_that_kafka_knows_are_shown(
    resource_type: int, _owner: str, name: str, value: str
) -> None:
    assert shown(resource_type, name, value) == value


def test_no_public_config_is_a_password() -> None:
    assert len(public_configs()) > 200
    assert not any(is_sensitive(kind, name) for kind, name in public_configs())
    assert not any("password" in name or "jaas" in name for _, name in public_configs())


def test_every_type_of_record_is_known_to_have_secrets_or_none() -> None:
    """A new type fails here: list it as harmless, or say what to hide. Until then all of it is hidden."""
    types = {row[1] for row in registry.METADATA_RECORDS.values()}
    assert types - HARMLESS == {"ConfigRecord", "UserScramCredentialRecord"}
    assert types >= HARMLESS


def test_a_credential_keeps_name_mechanism_and_iterations() -> None:
    record = UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4096, ((7, b"later"),))
    assert redacted(record) == UserScramCredentialRecord("alice", 1, b"", b"", b"", 4096)


def test_a_sensitive_config_keeps_its_key() -> None:
    record = ConfigRecord(4, "1", "ssl.key.password", "s3cret", ((7, b"later"),))
    assert redacted(record) == ConfigRecord(4, "1", "ssl.key.password", REDACTED)


def test_records_without_secrets_are_the_same_objects() -> None:
    removal = ConfigRecord(4, "1", "ssl.key.password", None)
    for record in (removal, ConfigRecord(2, "t", "retention.ms", "5"), PartitionRecord()):
        assert redacted(record) is record
        assert hidden_fields(record) == ()


def test_a_type_that_is_not_listed_is_hidden_as_a_whole() -> None:
    unlisted = VoteRequest("cluster")
    assert set(hidden_fields(unlisted)) >= {"cluster_id", "topics"}
    assert redacted(unlisted) == NoOpRecord()
