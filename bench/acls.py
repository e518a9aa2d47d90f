"""100,000 ACLs in one process: the time to load them, and the cost of a decision."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from random import Random

from bench.figures import Figures
from bench.measure import Plan
from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.metadata.state import AclState
from kraftd.runtime.garbage import THRESHOLDS
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.security.principals import Principal
from testkit.java import AS_KAFKA_STARTS, classpath, compile_java, find_java, find_javac
from testkit.node import Kind

ACLS = 100_000
QUESTIONS = 20_000
LOADS = 5
RECORDS_PER_SLICE = 1_200  # as many records are loaded in one slice


def made_acls() -> list[AclState]:
    """ACLs of a thousand principals: half of them on literal names, half on prefixes."""
    random = Random(1)
    return [
        AclState(
            AclResourceType.TOPIC,
            f"team-{random.randrange(1_000_000)}-{number}",
            AclPatternType.PREFIXED if number % 2 else AclPatternType.LITERAL,
            f"User:u{number % 1000}",
            "*",
            AclOperation.READ,
            AclPermission.ALLOW,
        )
        for number in range(ACLS)
    ]


def made_questions(known: list[AclState]) -> list[tuple[str, str]]:
    """Pairs of principal and topic; about half of them are allowed."""
    random = Random(2)
    questions = []
    for acl in random.sample(known, QUESTIONS):
        name = acl.resource_name + (".x" if acl.pattern_type == AclPatternType.PREFIXED else "")
        questions.append((acl.principal if random.random() < 0.5 else "User:stranger", name))
    return questions


def acls(kind: Kind, _: Plan) -> Figures:
    """Let a side decide the questions; RuntimeError if it allows another number than it should."""
    known = made_acls()
    questions = made_questions(known)
    of_side = of_kraftd if kind == "kraftd" else of_kafka
    load_cpu_ms, decision_us, allowed, any_us = of_side(known, questions)
    expected = sum(principal != "User:stranger" for principal, _ in questions)
    if allowed != expected:
        raise RuntimeError(f"{allowed} questions were allowed, not {expected}")
    return {"acls_load_cpu_ms": load_cpu_ms, "acls_decision_us": decision_us, "acls_any_us": any_us}


def of_kraftd(known: list[AclState], questions: list[tuple[str, str]]) -> tuple[float, float, int, float]:
    """CPU milliseconds of a load, microseconds of a decision, the number of allowed questions, and the
    microseconds of a question about any topic.
    """
    gc.set_threshold(*THRESHOLDS)  # those of a daemon, within a callback
    loads = []
    for _ in range(LOADS):
        began = time.process_time()
        authorizer = StandardAuthorizer(AuthorizerSettings())
        authorizer.begin_load()
        for start in range(0, ACLS, RECORDS_PER_SLICE):
            authorizer.change((), known[start : start + RECORDS_PER_SLICE])
        authorizer.end_load()
        loads.append((time.process_time() - began) * 1000)
    prepared = [(Principal("User", principal.removeprefix("User:")), name) for principal, name in questions]
    began, allowed = time.process_time(), 0
    for principal, name in prepared:
        allowed += authorizer.allows(principal, "10.0.0.1", AclOperation.READ, AclResourceType.TOPIC, name)
    decision_us = (time.process_time() - began) / QUESTIONS * 1e6
    began = time.process_time()
    for principal, _ in prepared:
        authorizer.allows_on_any(principal, "10.0.0.1", AclOperation.READ, AclResourceType.TOPIC)
    any_us = (time.process_time() - began) / QUESTIONS * 1e6
    return statistics.median(loads), decision_us, allowed, any_us


def of_kafka(known: list[AclState], questions: list[tuple[str, str]]) -> tuple[float, float, int, float]:
    """The same of Kafka's StandardAuthorizer, whose only load is the first of its JVM."""
    javac = find_javac()
    if javac is None:
        raise RuntimeError("no javac beside the java in use")
    classes = compile_java(javac, Path(__file__).with_name("java") / "AclBench.java")
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        file = Path(home, "acls.txt")
        file.write_text(
            "".join(f"{acl.resource_name}\t{int(acl.pattern_type)}\t{acl.principal}\n" for acl in known)
            + "\n"
            + "".join(f"{principal}\t{name}\n" for principal, name in questions)
        )
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        path = os.pathsep.join([str(classes), classpath()])
        done = subprocess.run(
            [str(find_java()), *AS_KAFKA_STARTS, quiet, "-cp", path, "AclBench", str(file)],
            capture_output=True,
            text=True,
            check=True,
        )
    load_cpu_ms, decision_us, allowed, any_us = done.stdout.split()
    return float(load_cpu_ms), float(decision_us), int(allowed), float(any_us)
