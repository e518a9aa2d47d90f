"""Decisions compared with Kafka's StandardAuthorizer class (java/AuthorizerOracle.java).

`KRAFTD_AUTHORIZER_CASES` sets the number of sets of ACLs; 25,000 of them give a million questions.
"""

from __future__ import annotations

import os

import pytest

from kraftd.acl import AclOperation
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings, parse_super_users
from tests.security.oracle import ask_java
from tests.security.random_acls import Case

pytestmark = pytest.mark.kafka

CASES = int(os.environ.get("KRAFTD_AUTHORIZER_CASES", "500"))
QUESTIONS = 40
ACLS = 60
CASES_PER_RUN = 5_000
ORACLE = "org.apache.kafka.metadata.authorizer.AuthorizerOracle"


def test_random_decisions_equal_those_of_kafkas_standard_authorizer() -> None:
    for first in range(0, CASES, CASES_PER_RUN):
        seeds = range(first, min(CASES, first + CASES_PER_RUN))
        cases = [Case(seed, ACLS, QUESTIONS) for seed in seeds]
        letters = ask_java(ORACLE, (line for case in cases for line in case.lines()), 900).strip()
        at = 0
        for seed, case in zip(seeds, cases, strict=True):
            ours = decisions(case)
            theirs = letters[at : at + len(ours)]
            at += len(ours)
            assert ours == theirs, f"case {seed}"
        assert at == len(letters)
        assert {"A", "D"} == set(letters)


def decisions(case: Case) -> str:
    """kraftd's answers as the letters that the oracle prints."""
    settings = AuthorizerSettings(
        super_users=parse_super_users(case.super_users), allow_if_no_acl=case.allow_if_no_acl
    )
    authorizer = StandardAuthorizer(settings)
    middle = len(case.acls) // 2
    authorizer.begin_load()
    authorizer.change([], case.acls[:middle])
    authorizer.end_load()
    authorizer.change([], case.acls[middle:])
    authorizer.change([case.acls[at] for at in case.removed], [])
    answers = []
    for principal, host, operation, type, name in case.questions:
        answers.append(authorizer.allows(principal, host, operation, type, name))
        if operation > AclOperation.ALL:
            answers.append(authorizer.allows_on_any(principal, host, operation, type))
    return "".join("A" if answer else "D" for answer in answers)


def test_before_acls_are_loaded_only_super_users_are_decided() -> None:
    lines = ["new\tUser:root\ttrue", "ask\tUser:root\t127.0.0.1\t7\t4\tkafka-cluster"]
    lines.append("ask\tUser:alice\t127.0.0.1\t7\t4\tkafka-cluster")
    assert ask_java(ORACLE, lines).strip() == "AN"


def test_kafkas_search_fails_for_names_that_begin_before_the_wildcard() -> None:
    lines = ["new\t\tfalse", "loaded", "acl\t2\t##z\t3\tUser:alice\t*\t3\t3"]
    lines.append("ask\tUser:alice\t127.0.0.1\t3\t2\t##a")
    assert ask_java(ORACLE, lines).strip() == "X"
