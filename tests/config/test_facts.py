"""The committed facts of Kafka's config definitions agree with its classes and contain no prose."""

from __future__ import annotations

import json

import pytest

from codegen.configs.extract import CONFIG_SCHEMAS, extract, render
from codegen.configs.generate import TARGET, generate
from kraftd.configdef.definition import (
    ConfigDef,
    broker_def,
    broker_quota_def,
    client_metrics_def,
    group_def,
    topic_def,
)
from testkit.fetch import kafka_libs
from testkit.java import find_javac

DEFINITIONS = [broker_def(), broker_quota_def(), topic_def(), group_def(), client_metrics_def()]


def test_the_generated_module_agrees_with_the_schemas() -> None:
    assert TARGET.read_text() == generate(CONFIG_SCHEMAS)


@pytest.mark.kafka
def test_the_schemas_agree_with_kafkas_classes() -> None:
    if find_javac() is None:
        pytest.skip("no javac beside the java in use")
    extracted = render(extract(kafka_libs()))
    assert {name: (CONFIG_SCHEMAS / name).read_text() for name in extracted} == extracted


@pytest.mark.parametrize("definition", DEFINITIONS, ids=repr)
def test_every_default_is_a_valid_value_of_its_key(definition: ConfigDef) -> None:
    for key in definition.values():
        if not key.required:
            key.default_value()


def test_the_schemas_contain_no_prose() -> None:
    words = [
        len(str(value).split())
        for path in CONFIG_SCHEMAS.glob("*.json")
        if path.name != "relations.json"
        for row in json.loads(path.read_text())
        for value in row.values()
        if isinstance(value, str)
    ]
    assert max(words) < 4
