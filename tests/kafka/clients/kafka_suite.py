"""Apache Kafka's own tests of clients, tools and requests, at clusters of kraftd. ``make kafka-suite``.

It is not among the tests of ``make test``, since it takes an hour. KAFKA_SUITE is a regular expression for
the names of test classes, KAFKA_SUITE_METHOD one for their tests. KAFKA_SUITE_SHAPE is the cluster where a
test allows both: `separate` controllers and brokers, or `combined` nodes. A test that reaches into a broker's
objects is skipped, with what it asked for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from testkit.fetch import streams_libs, suite_libs
from testkit.java import classpath, compile_java, find_java, find_javac

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(7200)]

HERE = Path(__file__).parent / "kafka_suite"
PROJECT = Path(__file__).parents[3]
CLIENTS, TOOLS = "org.apache.kafka.clients.", "org.apache.kafka.tools."
CLASSES = (
    "kafka.api.GroupCoordinatorIntegrationTest",
    "kafka.server.ApiVersionsRequestTest",
    "kafka.server.ConsumerGroupDescribeRequestTest",
    "kafka.server.ConsumerGroupHeartbeatRequestTest",
    "kafka.server.ConsumerProtocolMigrationTest",
    "kafka.server.DeleteGroupsRequestTest",
    "kafka.server.DescribeGroupsRequestTest",
    "kafka.server.DescribeQuorumRequestTest",
    "kafka.server.HeartbeatRequestTest",
    "kafka.server.JoinGroupRequestTest",
    "kafka.server.LeaveGroupRequestTest",
    "kafka.server.ListGroupsRequestTest",
    "kafka.server.OffsetCommitRequestTest",
    "kafka.server.OffsetDeleteRequestTest",
    "kafka.server.OffsetFetchRequestTest",
    "kafka.server.SaslApiVersionsRequestTest",
    "kafka.server.ShareFetchAcknowledgeRequestTest",
    "kafka.server.ShareGroupDescribeRequestTest",
    "kafka.server.ShareGroupHeartbeatRequestTest",
    "kafka.server.SyncGroupRequestTest",
    "kafka.server.TxnOffsetCommitRequestTest",
    "kafka.server.WriteTxnMarkersRequestTest",
    "org.apache.kafka.api.EndToEndClusterIdTest",
    "org.apache.kafka.server.BootstrapControllersIntegrationTest",
    "org.apache.kafka.server.EligibleLeaderReplicasIntegrationTest",
    "org.apache.kafka.server.MetadataRequestTest",
    "org.apache.kafka.server.UncleanLeaderElectionTest",
    "org.apache.kafka.server.quota.ClientQuotasRequestTest",
    CLIENTS + "ClientRebootstrapTest",
    CLIENTS + "MetadataVersionIntegrationTest",
    CLIENTS + "TransactionsExpirationTest",
    CLIENTS + "TransactionsWithMaxInFlightOneTest",
    CLIENTS + "admin.AdminFenceProducersTest",
    CLIENTS + "admin.AutoTopicCreationTest",
    CLIENTS + "admin.ConcurrentListOffsetsRequestTest",
    CLIENTS + "admin.DeleteTopicTest",
    CLIENTS + "admin.DescribeAuthorizedOperationsTest",
    CLIENTS + "admin.DescribeFeaturesTest",
    CLIENTS + "admin.DescribeProducersWithBrokerIdTest",
    CLIENTS + "admin.DynamicGroupConfigIntegrationTest",
    CLIENTS + "admin.ListOffsetsIntegrationTest",
    CLIENTS + "admin.RackAwareAutoTopicCreationTest",
    CLIENTS + "admin.StaticBrokerConfigTest",
    CLIENTS + "consumer.ConsumerBounceTest",
    CLIENTS + "consumer.ConsumerIntegrationTest",
    CLIENTS + "consumer.ConsumerTopicCreationTest",
    CLIENTS + "consumer.PlaintextConsumerAssignTest",
    CLIENTS + "consumer.PlaintextConsumerCallbackTest",
    CLIENTS + "consumer.PlaintextConsumerCloseTest",
    CLIENTS + "consumer.PlaintextConsumerCommitTest",
    CLIENTS + "consumer.PlaintextConsumerFetchTest",
    CLIENTS + "consumer.PlaintextConsumerPollTest",
    CLIENTS + "consumer.PlaintextConsumerSubscriptionTest",
    CLIENTS + "consumer.PlaintextConsumerTest",
    CLIENTS + "consumer.SaslPlainPlaintextConsumerTest",
    CLIENTS + "consumer.ShareConsumerRackAwareTest",
    CLIENTS + "consumer.ShareConsumerTest",
    CLIENTS + "producer.ProducerCompressionTest",
    CLIENTS + "producer.ProducerFailureHandlingTest",
    CLIENTS + "producer.ProducerIdExpirationTest",
    CLIENTS + "producer.ProducerIntegrationTest",
    CLIENTS + "producer.ProducerSendWhileDeletionTest",
    CLIENTS + "security.GroupAuthorizerIntegrationTest",
    TOOLS + "AclCommandTest",
    TOOLS + "BrokerApiVersionsCommandTest",
    TOOLS + "ClusterToolTest",
    TOOLS + "ConfigCommandIntegrationTest",
    TOOLS + "DeleteRecordsCommandTest",
    TOOLS + "FeatureCommandTest",
    TOOLS + "GetOffsetShellTest",
    TOOLS + "GroupsCommandTest",
    TOOLS + "LeaderElectionCommandTest",
    TOOLS + "LogDirsCommandTest",
    TOOLS + "MetadataQuorumCommandTest",
    TOOLS + "TopicCommandTest",
    TOOLS + "UserScramCredentialsCommandTest",
    TOOLS + "consumer.ConsoleConsumerTest",
    TOOLS + "consumer.group.DeleteConsumerGroupsTest",
    TOOLS + "consumer.group.DeleteOffsetsConsumerGroupCommandIntegrationTest",
    TOOLS + "consumer.group.DescribeConsumerGroupTest",
    TOOLS + "consumer.group.ListConsumerGroupTest",
    TOOLS + "consumer.group.ResetConsumerGroupOffsetTest",
    TOOLS + "reassign.ReassignPartitionsCommandTest",
)
HASHED = "Kafka lists members and groups in the order of its hash tables"
IN_PROCESS = "it reads the metrics of a broker in its own process"
METADATA_TOPIC = "kraftd lists `__cluster_metadata` among the topics"
TIERED = "its class for tiered storage is in no published jar"
NO_STREAMS = "kraftd has no streams groups"
UNRELEASED = "it expects Kafka's next metadata.version, which kraftd has not"
JAVA_CLASS = "its brokers are to run a Java class"
CLOSES_SOONER = "kraftd answers a waiting fetch when its consumer closes the fetch session"
LOGGERS = "kraftd has no logger but root"
OTHER_TEXT = "it compares the text of an error"
SETTINGS = "it reads a broker's settings in its own process"
EXCUSED = {
    "testAllTopicsRequest": METADATA_TOPIC,
    "testAlterStreamsGroupHeartbeatInterval": OTHER_TEXT,
    "testAlterStreamsGroupNumOfStandbyReplicas": OTHER_TEXT,
    "testAlterStreamsGroupSessionTimeout": OTHER_TEXT,
    "testApiVersionsRequest": UNRELEASED,
    "testApiVersionsRequestBeforeSaslHandshakeRequest": NO_STREAMS,
    "testApiVersionsRequestIncludesUnreleasedApis": UNRELEASED,
    "testApiVersionsRequestThroughControllerListener": UNRELEASED,
    "testApiVersionsRequestValidationV0": NO_STREAMS,
    "testApiVersionsRequestWithUnsupportedVersion": NO_STREAMS,
    "testAsyncConsumerCloseWithDefaultTakesAtLeastFetchMaxWaitMs": CLOSES_SOONER,
    "testAsyncConsumerListTopics": METADATA_TOPIC,
    "testBrokerApiVersionsCommandOutput": NO_STREAMS,
    "testBrokerLoggerConfigUpdate": LOGGERS,
    "testClassicConsumerCloseWithDefaultTakesAtLeastFetchMaxWaitMs": CLOSES_SOONER,
    "testClassicConsumerListTopics": METADATA_TOPIC,
    "testConsumerGroupDescribeWithNewGroupCoordinator": HASHED,
    "testCoordinatorFailoverAfterCompactingPartitionWithUpgradedSimpleStreamsGroup": NO_STREAMS,
    "testCoordinatorFailoverAfterCompactingPartitionWithUpgradedStreamsGroup": NO_STREAMS,
    "testCoordinatorFailoverAfterCompactingPartitionWithUpgradedStreamsGroupAndTombstoneRemoved": NO_STREAMS,
    "testDefaultIsLatestVersion": UNRELEASED,
    "testDescribeFeatures": UNRELEASED,
    "testDescribeFeaturesByControllers": UNRELEASED,
    "testDescribeWithKRaft": UNRELEASED,
    "testDescribeWithKRaftAndBootstrapControllers": UNRELEASED,
    "testDescribeWithUnstableApiVersions": UNRELEASED,
    "testDisallowReplicationFactorChange": OTHER_TEXT,
    "testDowngradeMetadataVersionWithKRaft": OTHER_TEXT,
    "testDowngradeWithReleaseVersion": OTHER_TEXT,
    "testEndToEndWithClassicProtocol": IN_PROCESS,
    "testEndToEndWithConsumerProtocol": IN_PROCESS,
    "testExitWithNonZeroStatusOnUpdatingUnallowedConfig": OTHER_TEXT,
    "testGetOffsetsByEarliestLocalSpec": TIERED,
    "testGetOffsetsByEarliestTieredSpec": TIERED,
    "testGetOffsetsByLatestTieredSpec": TIERED,
    "testGroupCommand": NO_STREAMS,
    "testIsInternal": METADATA_TOPIC,
    "testListGroupsWithNewConsumerGroupProtocol": HASHED,
    "testNoFilterOptions": METADATA_TOPIC,
    "testPartitionsArg": METADATA_TOPIC,
    "testPutBrokersInBootstrapControllersConfig": OTHER_TEXT,
    "testRackAwareAssignment": JAVA_CLASS,
    "testRenewAcknowledgementInvalidStateRecord": IN_PROCESS,
    "testRenewAcknowledgementNoResultInPoll": IN_PROCESS,
    "testRenewAcknowledgementOnCommitSync": IN_PROCESS,
    "testRenewAcknowledgementOnPoll": IN_PROCESS,
    "testShareConsumerWithRackAwareAssignor": JAVA_CLASS,
    "testTopicPartitionsArgWithInternalIncluded": METADATA_TOPIC,
    "testUnstableApiVersions": UNRELEASED,
    "testUpdateBrokerConfigNotAffectedByInvalidConfig": SETTINGS,
    "testUpdateFeatures": OTHER_TEXT,
    "testUpdateFeaturesByControllers": OTHER_TEXT,
    "testUpgradeWithReleaseVersion": OTHER_TEXT,
}
"""Tests that may fail, and why. docs/divergence.md has the differences."""
INSIDE = "asks for the inside of a node: .*"
"""What a skip says (`Inside.java`). A test that tries again until a limit of time fails, with it as cause."""


class Outcome(NamedTuple):
    """The tests of a class by how they ended; a failure and a skip with their reason."""

    passed: list[str]
    failed: dict[str, str]
    skipped: dict[str, str]


def run(name: str, home: Path) -> Outcome:
    """Run Kafka's test class of this name; its clusters' directories and its log are below `home`."""
    javac = find_javac()
    assert javac is not None, "needs a JDK"
    jars = [*sorted(suite_libs().glob("*.jar")), *streams_libs().glob("kafka-streams-*.jar")]
    first, *others = sorted(HERE.glob("*.java"))
    classes = compile_java(javac, first, *others, beside=jars)
    clusters = home / "clusters"
    clusters.mkdir()
    properties = {
        "kraftd.shape": os.environ.get("KAFKA_SUITE_SHAPE", "separate"),
        "kraftd.python": sys.executable,
        "kraftd.home": PROJECT,
        "kraftd.tmp": clusters,
        "org.slf4j.simpleLogger.defaultLogLevel": "error",
    }
    command = [
        str(find_java()),
        *(f"-D{key}={value}" for key, value in properties.items()),
        "-cp",
        os.pathsep.join([str(classes), *map(str, jars), classpath()]),
        "org.junit.platform.console.ConsoleLauncher",
        "execute",
        "--disable-banner",
        "--disable-ansi-colors",
        "--details=testfeed",
        "--include-classname=.*",
        f"--include-methodname=.*(?:{os.environ.get('KAFKA_SUITE_METHOD', '')}).*",
        "--config=junit.jupiter.extensions.autodetection.enabled=true",
        "--config=junit.jupiter.execution.timeout.default=5m",
        f"--reports-dir={home}",
        f"--select-class={name}",
    ]
    with open(home / "suite.log", "w") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    return outcome(home / "TEST-junit-jupiter.xml")


def outcome(report: Path) -> Outcome:
    """What JUnit's report says."""
    found = Outcome([], {}, {})
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        text = case.findtext("system-out") or ""
        shown = re.search(r"display-name: (.*)", text)
        name = shown[1] if shown else str(case.get("name"))
        failure = case.find("failure")
        if failure is None:
            failure = case.find("error")
        skip = case.find("skipped")
        inside = None if failure is None else re.search(INSIDE, failure.text or "")
        if inside is not None:
            found.skipped[name] = inside[0]
        elif failure is not None:
            found.failed[name] = (failure.get("message") or failure.text or "").split("\n")[0][:300]
        elif skip is not None:
            found.skipped[name] = (skip.text or "").split("\n")[0][:200]
        else:
            found.passed.append(name)
    return found


CHOSEN = [name for name in CLASSES if re.search(os.environ.get("KAFKA_SUITE", ""), name)]


@pytest.mark.parametrize("name", CHOSEN, ids=lambda name: name.rpartition(".")[2])
def test_kafkas_own_tests_pass(name: str, tmp_path: Path) -> None:
    found = run(name, tmp_path)
    skipped = {test: why for test, why in found.skipped.items() if not why.endswith("the other shape")}
    excused = {test for test in found.failed if test.split()[0].rstrip("()") in EXCUSED}
    print(
        f"{name}: {len(found.passed)} passed, {len(found.failed)} failed, {len(skipped)} skipped", flush=True
    )
    for test, why in (*skipped.items(), *found.failed.items()):
        print(f"    {test}: {why}", flush=True)
    assert found.passed or found.failed or skipped
    assert not set(found.failed) - excused, f"{tmp_path / 'suite.log'} has what was logged"
