"""A cluster with a history, and the findings of the pipeline on Spark.

``make spark-demo``. Needs Java 17+, and Maven the first time. The tables, the report and the log lie in
``./spark-demo`` afterwards, which each run replaces; ``--page FILE`` also writes the questions with their SQL
and answers.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType
from pyspark.sql import SparkSession

from kraftd.spark.session import start_session
from testkit.cluster import SESSION_TIMEOUT_MS, Cluster

HOME = Path("spark-demo")
TABLES, THEN = HOME / "tables", HOME / "tables-then"
MOST_ROWS = 12


@dataclass(frozen=True)
class Question:
    """A question in words, and the SQL that answers it; some ask the tables as of the moment."""

    text: str
    sql: str
    then: bool = False


QUESTIONS = (
    Question(
        "Which configs of topic orders changed, when, and to which values?",
        """SELECT offset, timestamp AS at, action, detail
FROM audit WHERE resource = 'TOPIC orders' AND action LIKE '%config' ORDER BY offset""",
    ),
    Question(
        "Which partitions were under-replicated, and for how long?",
        """SELECT topic_name, partition_id, brokers AS lacking, sum(duration_ms) AS duration_ms
FROM partition_intervals WHERE kind = 'under_replicated' GROUP BY 1, 2, 3 ORDER BY 1, 2""",
    ),
    Question(
        "How did leadership move during the incident?",
        """SELECT offset, topic_name, partition_id, old_leader, new_leader, cause
FROM leader_moves ORDER BY offset""",
    ),
    Question(
        "Which brokers were fenced at that moment?",
        "SELECT broker_id, fenced, in_controlled_shutdown FROM brokers ORDER BY broker_id",
        then=True,
    ),
    Question(
        "What was the state of the partitions at that moment?",
        """SELECT topic_name, partition_id, leader, isr, replicas
FROM partitions ORDER BY topic_name, partition_id""",
        then=True,
    ),
    Question(
        "What did administrators do, in order?",
        "SELECT offset, action, resource, detail FROM audit WHERE action != 'set feature' ORDER BY offset",
    ),
    Question(
        "How often was each broker registered and fenced?",
        """SELECT broker_id, count(*) AS registrations, sum(fenced_count) AS fenced
FROM broker_sessions GROUP BY 1 ORDER BY 1""",
    ),
)


def make_history(home: Path) -> tuple[Path, str]:
    """Create, change and delete topics; kill a broker and start it again.

    Returns a copy of the log, and a moment at which the broker was down.
    """
    settings = {
        "broker.session.timeout.ms": SESSION_TIMEOUT_MS,
        "metadata.log.max.snapshot.interval.ms": 10_000,
    }
    with Cluster(home, "kraftd", controller_properties=settings) as cluster:
        cluster.start_controller()
        cluster.start_brokers(1, 2)
        topics = [NewTopic(name, 3, 2) for name in ("orders", "payments", "scratch")]
        for future in cluster.admin.create_topics(topics).values():
            future.result()
        for value in ("86400000", "3600000"):
            change = ConfigResource(ResourceType.TOPIC, "orders", {"retention.ms": value})
            for future in cluster.admin.alter_configs([change]).values():
                future.result()
        for future in cluster.admin.delete_topics(["scratch"]).values():
            future.result()
        cluster.brokers[2].kill()
        cluster.wait_for_live_brokers(1)
        cluster.wait_until(lambda: len(cluster.partition("payments", 2).isrs) == 1, "the ISR has shrunk")
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        time.sleep(1)
        cluster.heal()
        cluster.wait_until(
            lambda: all(
                len(partition.isrs) == 2
                for topic in ("orders", "payments")
                for partition in cluster.partitions(topic).values()
            ),
            "the ISRs are whole again",
        )
        cluster.tool("leader-election", "--election-type", "preferred", "--all-topic-partitions")
        log = cluster.controller.data / "__cluster_metadata-0"
        cluster.wait_until(lambda: len(list(log.glob("*.checkpoint"))) > 1, "a checkpoint was written")
        copy = HOME / "log"
        shutil.copytree(cluster.controller.data, copy)
    return copy, moment


def run(*arguments: object) -> str:
    """Print and run a command of kraftd-spark; return its output."""
    words = [str(argument) for argument in arguments]
    print("\n$ kraftd-spark", " ".join(words), flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "kraftd.spark.main", *words], stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout


def answer(session: SparkSession, question: Question) -> str:
    """The answer as a table of Markdown."""
    for path in (THEN if question.then else TABLES).iterdir():
        if path.is_dir() and not path.name.startswith("."):
            session.read.parquet(str(path)).createOrReplaceTempView(path.name)
    rows = session.sql(question.sql)
    found = rows.limit(MOST_ROWS + 1).collect()
    lines = ["| " + " | ".join(rows.columns) + " |", "|" + "---|" * len(rows.columns)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in found[:MOST_ROWS]]
    more = ["", "(and more)"] if len(found) > MOST_ROWS else []
    return "\n".join([*lines, *more])


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    return "" if value is None else str(value)


def make_page(answers: dict[Question, str], moment: str, checks: str) -> str:
    """The questions with their SQL and answers, and the output of validation."""
    parts = [
        "# Questions to the log about an incident",
        "`python -m tools.spark_demo --page FILE` wrote this page; it does what `make spark-demo` does.\n"
        "An administrator creates topics on a kraftd controller with two Apache Kafka brokers, changes\n"
        "some and deletes one. Broker 2 is killed and comes back. Preferred leaders are elected. Then\n"
        "SQL queries the tables of the log. [tables.md](tables.md) has their columns,\n"
        "[spark.md](spark.md) the commands.",
        "    kraftd-spark tables --input log --output tables\n"
        f"    kraftd-spark tables --input log --output tables-then --as-of {moment} \\\n"
        "        --tables brokers,partitions",
    ]
    for question, table in answers.items():
        sql = "\n".join(f"    {line}" for line in question.sql.splitlines())
        parts += [f"## {question.text}", sql, table]
    shown = "\n".join(f"    {line}" for line in checks.replace(f"{HOME.resolve()}/", "").splitlines())
    parts += [
        "## Does the checkpoint equal the log?",
        "    kraftd-spark validate --input log",
        shown,
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the whole demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="where the questions and answers are written, as Markdown")
    options = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    print("a kraftd controller and two Apache Kafka brokers make a history ...", flush=True)
    log, moment = make_history((HOME / "cluster").resolve())
    run("tables", "--input", log, "--output", TABLES)
    run("tables", "--input", log, "--output", THEN, "--as-of", moment, "--tables", "brokers,partitions")
    checks = run("validate", "--input", log)
    run("report", "--input", log, "--output", HOME / "report.html")
    session = start_session(None)
    answers = {question: answer(session, question) for question in QUESTIONS}
    session.stop()
    for question, table in answers.items():
        print(f"\n{question.text}\n\n{question.sql}\n\n{table}")
    if options.page is not None:
        options.page.write_text(make_page(answers, moment, checks), encoding="utf-8")
    print(f"\nall tables: {TABLES}; the report: {HOME / 'report.html'}")


if __name__ == "__main__":
    main()
