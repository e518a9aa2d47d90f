"""quorum-state, meta.properties, bootstrap.checkpoint, voters, SCRAM, directories and locks."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.log.disk import RealDisk
from kraftd.log.errors import CorruptStorage, DirectoryLocked, DirectoryProblem, ReadOnlyStorage, StorageError
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash, everything_survives
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.quorum_state_data import QuorumStateData, Voter
from kraftd.metadata_dir.directory import MetadataDirectory, open_directory
from kraftd.metadata_dir.files.bootstrap import encode_bootstrap, read_bootstrap, write_bootstrap
from kraftd.metadata_dir.files.meta_properties import (
    MetaProperties,
    check_meta_properties,
    decode_identity,
    decode_meta_properties,
    encode_meta_properties,
    read_meta_properties,
)
from kraftd.metadata_dir.files.quorum_state import (
    QuorumStateFile,
    check_static_voters,
    decode_quorum_state,
    encode_quorum_state,
)
from kraftd.metadata_dir.formatting.format import DirectoryKind, FormatPlan, Formatting, format_directories
from kraftd.metadata_dir.formatting.scram import parse_scram
from kraftd.metadata_dir.formatting.voters import InitialVoter, parse_voters
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.showing.dump import dump
from kraftd.types import DIRECTORY_LOST, ZERO_UUID, parse_uuid
from kraftd.wire.record_frame import VersionedRecord

UUID = parse_uuid("J8aAPcfLQt2bqs1JT_rMgQ")
OTHER = parse_uuid("hU1znZ7uSBqQzCNcN5L0sQ")
CLUSTER = "xJit4XNAR_aVPxgVAz4Qsg"
BOOTSTRAP = (
    VersionedRecord(FeatureLevelRecord("metadata.version", 30), 0),
    VersionedRecord(FeatureLevelRecord("group.version", 1), 0),
)


def plan(**changes: object) -> FormatPlan:
    fields: dict[str, object] = {
        "node_id": 1,
        "cluster_id": CLUSTER,
        "directories": ("/data",),
        "metadata_directory": "/data",
        "controller_listener": "CONTROLLER",
        "records": BOOTSTRAP,
        "kraft_version": 1,
        "initial_voters": (InitialVoter(1, "localhost", 9093, UUID),),
    }
    return FormatPlan(**(fields | changes))  # type: ignore[arg-type]


def formatted(disk: MemoryDisk, **changes: object) -> None:
    format_directories(disk, plan(**changes), new_uuid=lambda: OTHER, now_ms=1_000_000)


# --- quorum-state -------------------------------------------------------------------------------------


def test_quorum_state_is_written_as_kafka_writes_it() -> None:
    state = QuorumStateData(leader_id=100, leader_epoch=9)
    assert encode_quorum_state(state, 1) == (
        b'{"leaderId":100,"leaderEpoch":9,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    state = QuorumStateData(
        leader_id=1, leader_epoch=2, voted_id=-1, current_voters=[Voter(voter_id=1), Voter(voter_id=2)]
    )
    assert encode_quorum_state(state, 0) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )


@given(
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**31 - 1),
    st.binary(min_size=16, max_size=16),
)
def test_quorum_state_survives_a_round_trip(leader: int, epoch: int, voted: int, directory: bytes) -> None:
    state = QuorumStateData(
        leader_id=leader, leader_epoch=epoch, voted_id=voted, voted_directory_id=directory
    )
    assert decode_quorum_state(encode_quorum_state(state, 1)) == state
    state = QuorumStateData(leader_id=leader, leader_epoch=epoch, voted_id=voted, current_voters=None)
    assert decode_quorum_state(encode_quorum_state(state, 0)) == state


@given(st.binary(max_size=200))
def test_an_invalid_quorum_state_raises_only_value_errors(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_quorum_state(data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("[]", "no"),
        ('{"data_version":2}', "data_version is 2"),
        ('{"leaderEpoch":1}', "data_version is missing"),
        ('{"data_version":1,"leaderId":1,"leaderEpoch":true,"votedId":1}', "leaderEpoch is no integer"),
        ('{"data_version":1,"leaderId":1,"leaderEpoch":1,"votedId":1}', "votedDirectoryId is missing"),
        ('{"data_version":1,"leaderId":1,"leaderEpoch":2147483648,"votedId":1}', "leaderEpoch is 2147483648"),
    ],
)
def test_a_damaged_quorum_state_is_refused_with_the_reason_and_the_remedy(text: str, reason: str) -> None:
    disk = MemoryDisk()
    disk.open("/data/quorum-state", create=True).write(0, text.encode())
    with pytest.raises(DirectoryProblem, match=f"{reason}.*voting twice"):
        QuorumStateFile(disk, "/data").read()


def test_a_vote_survives_a_crash_at_every_operation_or_was_never_sent() -> None:
    for crash_at in range(1, 9):
        disk = MemoryDisk()
        file = QuorumStateFile(disk, "/data")
        assert file.read() is None
        file.write(QuorumStateData(leader_epoch=1, voted_id=1), 1)
        disk.crash_at = disk.operations + crash_at
        written = False
        try:
            file.write(QuorumStateData(leader_epoch=2, voted_id=3), 1)
            written = True
        except SimulatedCrash:
            pass
        for choose in (everything_survives, lambda outcomes: 0):
            found = QuorumStateFile(disk.after_crash(choose), "/data").read()
            assert found is not None
            assert found.leader_epoch == 2 if written else found.leader_epoch in (1, 2)


# --- meta.properties ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("former", "configured", "refused"),
    [
        ((1, 2, 3), (1,), True),
        ((1, 2, 3), (1, 4, 5), True),
        ((1, 2, 3), (1, 2), False),  # any majority of the old voters has one of these
        ((1, 2), (1,), False),
        ((1,), (1, 2, 3), False),
        ((1, 2, 3), (2, 3), False),  # this node does not vote any more
        ((), (1,), False),  # a dynamic quorum, or none yet
        (None, (1,), False),
    ],
)
def test_static_voters_do_not_lose_a_majority_by_their_file_alone(
    former: tuple[int, ...] | None, configured: tuple[int, ...], refused: bool
) -> None:
    state = (
        None if former is None else QuorumStateData(current_voters=[Voter(voter_id=one) for one in former])
    )
    try:
        check_static_voters("quorum-state", state, 1, configured)
    except DirectoryProblem as error:
        assert refused and "run kraftd quorum recover" in str(error)
    else:
        assert not refused


def test_meta_properties_are_laid_out_as_java_does() -> None:
    properties = MetaProperties(1, CLUSTER, 100, OTHER)
    data = encode_meta_properties(properties, 1795233650000)
    text = data.decode()
    assert text.splitlines()[0] == "#"
    assert text.splitlines()[2:] == [
        "node.id=100",
        "directory.id=hU1znZ7uSBqQzCNcN5L0sQ",
        "version=1",
        f"cluster.id={CLUSTER}",
    ]
    assert decode_meta_properties(data) == properties
    assert decode_meta_properties(b"broker.id=5\n") == MetaProperties(0, None, 5, None)


@given(st.text(st.characters(max_codepoint=0xD7FF), max_size=30))
def test_any_cluster_id_is_read_back_here_and_by_java(cluster_id: str) -> None:
    data = encode_meta_properties(MetaProperties(1, cluster_id, 2, None), 0)
    assert decode_meta_properties(data).cluster_id == cluster_id
    assert javaproperties.loads(data.decode("ascii"))["cluster.id"] == cluster_id


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\ncluster.id=a\n", "node.id is missing"),
        ("version=1\ncluster.id=a\nnode.id=x\n", "node.id=x is no number"),
        ("version=1\ncluster.id=a\nnode.id=1_0\n", "node.id=1_0 is no number"),
        ("version=1\ncluster.id=a\nnode.id=1 \n", "node.id=1  is no number"),
        ("version=1\ncluster.id=a\nnode.id=4294967297\n", "node.id=4294967297 is no number of 32 bits"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=hU1znZ7uSBqQzCNcN5L0s+\n", "where other texts"),
        ("version=1.0\ncluster.id=a\nnode.id=1\n", r"version=1\.0 is no number"),
        ("\ufeffcluster.id=a\nversion=1\nnode.id=1\n", r"cluster.id is missing \(.*byte order mark"),
        ("version=7\n", "version=7 is unknown"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=zz\n", "directory.id: 'zz' is not a uuid"),
    ],
)
def test_invalid_meta_properties_are_refused_with_the_key(text: str, reason: str) -> None:
    disk = MemoryDisk()
    disk.open("/data/meta.properties", create=True).write(0, text.encode())
    with pytest.raises(DirectoryProblem, match=reason):
        read_meta_properties(disk, "/data")


def test_meta_properties_are_read_as_java_reads_them() -> None:
    read = decode_meta_properties(b"version= 1 \ncluster.id=a\ncluster.id=\xe4\nnode.id=+7\n")
    assert read == MetaProperties(1, "\xe4", 7, None)  # Latin-1, the last of two


@pytest.mark.parametrize("text", ["", "node.id=1\ncluster.id=a\n", "version=0\nbroker.id=1\n", "vers"])
def test_an_identity_has_cluster_id_and_node_id(text: str) -> None:
    with pytest.raises(ValueError, match=r"(node|cluster)\.id is missing \(without version=1"):
        decode_identity(text.encode())
    disk = MemoryDisk()
    disk.open("/data/meta.properties", create=True).write(0, text.encode())
    ((row),) = dump(disk, "/data/meta.properties")
    assert row["kind"] == "damage" and "is missing" in row["reason"]


def test_directories_of_another_cluster_or_node_and_copies_are_refused() -> None:
    own = MetaProperties(1, CLUSTER, 1, UUID)
    check_meta_properties({"/a": own, "/b": own._replace(directory_id=OTHER)}, node_id=1)
    with pytest.raises(DirectoryProblem, match="belongs to cluster"):
        check_meta_properties({"/a": own}, cluster_id="another")
    with pytest.raises(DirectoryProblem, match=r"belongs to node 1, this is node 2.*node\.id=1"):
        check_meta_properties({"/a": own}, node_id=2)
    with pytest.raises(DirectoryProblem, match="is also that of /a"):
        check_meta_properties({"/a": own, "/b": own})
    with pytest.raises(DirectoryProblem, match="reserved"):
        check_meta_properties({"/a": own._replace(directory_id=DIRECTORY_LOST)})


# --- directories --------------------------------------------------------------------------------------


def test_a_formatted_directory_opens_for_its_node_only() -> None:
    disk = MemoryDisk()
    formatted(disk)
    directory = open_directory(disk, "/data", 1, new_directory_id=lambda: OTHER, now_ms=0)
    assert (directory.cluster_id, directory.node_id, directory.directory_id) == (CLUSTER, 1, UUID)
    with pytest.raises(DirectoryLocked):
        open_directory(disk, "/data", 1, new_directory_id=lambda: OTHER, now_ms=0)
    directory.close()
    with pytest.raises(DirectoryProblem, match="belongs to node 1, this is node 3"):
        open_directory(disk, "/data", 3, new_directory_id=lambda: OTHER, now_ms=0)


def test_a_directory_without_a_directory_id_gets_one() -> None:
    disk = MemoryDisk()
    disk.open("/data/meta.properties", create=True).write(
        0, f"version=1\ncluster.id={CLUSTER}\nnode.id=4\n".encode()
    )
    ids = iter([ZERO_UUID, DIRECTORY_LOST, UUID])
    directory = open_directory(disk, "/data", 4, new_directory_id=lambda: next(ids), now_ms=0)
    assert directory.directory_id == UUID
    assert read_meta_properties(disk, "/data") == MetaProperties(1, CLUSTER, 4, UUID)


def test_another_log_directory_that_cannot_be_read_stops_no_start(tmp_path: Path) -> None:
    """As in Kafka: only the directory of the metadata log must be there."""
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    ids = iter([OTHER, bytes(15) + b"\x09"])
    format_directories(
        RealDisk(),
        plan(directories=tuple(paths), metadata_directory=paths[0]),
        new_uuid=lambda: next(ids),
        now_ms=0,
    )

    def opened() -> MetadataDirectory:
        directory = open_directory(
            RealDisk(), paths[0], 1, other_directories=paths, new_directory_id=lambda: OTHER, now_ms=0
        )
        directory.close()
        return directory

    whole = opened()
    assert set(whole.directory_ids) == set(paths) and not whole.unreadable
    (tmp_path / "b" / "meta.properties").write_text("version=7\n")
    os.rename(tmp_path / "c" / "meta.properties", tmp_path / "kept")
    (tmp_path / "c" / "meta.properties").mkdir()
    directory = opened()
    assert directory.directory_ids == {paths[0]: whole.directory_ids[paths[0]]}
    assert sorted(directory.unreadable) == paths[1:]
    assert "version=7 is unknown" in str(directory.unreadable[paths[1]])
    (tmp_path / "c" / "meta.properties").rmdir()
    with pytest.raises(DirectoryProblem, match="c is half formatted"):
        opened()
    os.rename(tmp_path / "kept", tmp_path / "c" / "meta.properties")
    (tmp_path / "a" / "meta.properties").write_text("version=7\n")
    with pytest.raises(DirectoryProblem, match="version=7 is unknown"):
        opened()


def test_a_directory_from_before_kip858_that_cannot_be_written_has_no_id() -> None:
    disk = MemoryDisk()
    for path in ("/data", "/more"):
        disk.open(f"{path}/meta.properties", create=True).write(
            0, f"version=1\ncluster.id={CLUSTER}\nnode.id=4\n".encode()
        )

    def fault(operation: str, path: str) -> None:
        if path.startswith("/more"):
            raise ReadOnlyStorage(f"cannot {operation} {path}: it is read-only. Mount it for writing")

    disk.fault = fault
    directory = open_directory(
        disk, "/data", 4, other_directories=("/more",), new_directory_id=lambda: UUID, now_ms=0
    )
    assert (directory.directory_ids, list(directory.unreadable)) == ({"/data": UUID}, ["/more"])


def test_unusable_directories_are_refused_with_a_remedy() -> None:
    disk = MemoryDisk()

    def problem() -> str:
        with pytest.raises(DirectoryProblem) as caught:
            open_directory(disk, "/data", 1, new_directory_id=lambda: OTHER, now_ms=0)
        return str(caught.value)

    assert "Run kraftd format first" in problem()
    write_bootstrap(disk, "/data", BOOTSTRAP, 0)
    assert "half formatted" in problem()
    disk.open("/data/__cluster_metadata-0/00000000000000000000.log", create=True).write(0, b"x")
    assert "Restore that file" in problem()
    disk.open("/data/meta.properties", create=True)
    assert "has no node id. Restore that file" in problem()
    disk.remove("/data/meta.properties")
    with pytest.raises(DirectoryProblem, match="old log under a new identity"):
        formatted(disk)


def test_the_lock_excludes_other_processes(tmp_path: Path) -> None:
    disk = RealDisk()
    lock = disk.lock(f"{tmp_path}/.lock")
    with pytest.raises(DirectoryLocked, match="Stop that one first"):
        disk.lock(f"{tmp_path}/.lock")
    script = (
        "from kraftd.log.disk import RealDisk\n"
        "from kraftd.log.errors import DirectoryLocked\n"
        "import sys\n"
        "try:\n    RealDisk().lock(sys.argv[1])\n"
        "except DirectoryLocked:\n    sys.exit(7)\n"
    )
    command = [sys.executable, "-c", script, f"{tmp_path}/.lock"]
    assert subprocess.run(command, check=False).returncode == 7
    lock.release()
    assert subprocess.run(command, check=False).returncode == 0


def test_relative_paths_begin_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    format_directories(
        RealDisk(),
        plan(directories=("data",), metadata_directory="data"),
        new_uuid=lambda: OTHER,
        now_ms=0,
    )
    directory = open_directory(RealDisk(), "data", 1, new_directory_id=lambda: OTHER, now_ms=0)
    log = open_log(RealDisk(), directory.partition_path).log
    log.close()
    directory.close()
    assert (tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000.log").exists()


def test_real_files_raise_the_errors_of_this_package(tmp_path: Path) -> None:
    disk = RealDisk()
    with pytest.raises(FileNotFoundError):
        disk.open(f"{tmp_path}/none")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StorageError, match="is a file, a directory is needed"):
        disk.make_directory(f"{tmp_path}/file")
    file = disk.open(f"{tmp_path}/new", create=True)
    file.write(3, b"abc")
    file.sync()
    assert (file.size_bytes(), file.read(0, 100), file.read(4, 1)) == (6, b"\0\0\0abc", b"b")
    file.truncate(4)
    file.close()
    assert disk.read_bytes(f"{tmp_path}/new") == b"\0\0\0a"
    if os.path.exists("/dev/full"):
        with pytest.raises(StorageError, match="No space left"):
            disk.open("/dev/full").write(0, b"x")


# --- bootstrap.checkpoint, format, voters, SCRAM --------------------------------------------------------


def test_bootstrap_records_are_read_back_and_damage_is_refused() -> None:
    disk = MemoryDisk()
    assert read_bootstrap(disk, "/data") is None
    write_bootstrap(disk, "/data", BOOTSTRAP, 5)
    assert read_bootstrap(disk, "/data") == list(BOOTSTRAP)
    whole = encode_bootstrap(BOOTSTRAP, 5)
    for position in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        file = disk.open("/data/bootstrap.checkpoint")
        file.write(0, bytes(damaged))
        try:
            assert read_bootstrap(disk, "/data") == list(BOOTSTRAP)  # offsets and epochs are not covered
        except CorruptStorage as error:
            assert "Take the file from another controller" in str(error)


def test_a_bootstrap_without_metadata_version_is_refused() -> None:
    disk = MemoryDisk()
    write_bootstrap(disk, "/data", BOOTSTRAP[1:], 5)
    with pytest.raises(DirectoryProblem, match=r"holds no metadata\.version"):
        read_bootstrap(disk, "/data")


def test_format_writes_meta_properties_last_so_a_crash_leaves_it_unformatted() -> None:
    disk = MemoryDisk()
    formatted(disk)
    total = disk.operations
    for crash_at in range(1, total + 1):
        disk = MemoryDisk()
        disk.crash_at = crash_at
        with pytest.raises(SimulatedCrash):
            formatted(disk)
        disk = disk.after_crash(everything_survives)
        if read_meta_properties(disk, "/data") is None:
            formatted(disk)
        directory = open_directory(disk, "/data", 1, new_directory_id=lambda: OTHER, now_ms=0)
        assert directory.directory_id == UUID
        assert read_bootstrap(disk, "/data") == list(BOOTSTRAP)
        assert disk.exists("/data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")


def test_formatting_twice_is_refused_unless_formatted_ones_are_ignored() -> None:
    disk = MemoryDisk()
    formatted(disk)
    with pytest.raises(DirectoryProblem, match="already formatted"):
        formatted(disk)
    formatted(disk, ignore_formatted=True)
    with pytest.raises(DirectoryProblem, match="belongs to cluster"):
        formatted(disk, ignore_formatted=True, cluster_id="another")
    done = format_directories(
        disk, plan(directories=("/data", "/more"), ignore_formatted=True), new_uuid=lambda: OTHER, now_ms=0
    )
    assert done == ([("/more", DirectoryKind.DATA, OTHER)], {})


def test_a_directory_that_cannot_be_read_is_left_out_of_formatting(tmp_path: Path) -> None:
    bad, good, afile = (str(tmp_path / name) for name in ("bad", "good", "file"))
    os.mkdir(bad)
    (tmp_path / "bad" / "meta.properties").write_text("version=7\n")
    (tmp_path / "file").touch()

    def done(*directories: str) -> Formatting:
        one = plan(directories=directories, metadata_directory=directories[0])
        return format_directories(RealDisk(), one, new_uuid=lambda: OTHER, now_ms=1_000_000)

    done_once = done(good, bad, afile)
    assert [one.path for one in done_once.formatted] == [good]
    assert list(done_once.unreadable) == [bad, afile] and "version=7" in str(done_once.unreadable[bad])
    with pytest.raises(DirectoryProblem, match="version=7"):
        done(bad, afile)


def test_the_kind_of_a_directory_depends_on_the_voters() -> None:
    assert plan().kind("/data") is DirectoryKind.DYNAMIC_METADATA_VOTER
    assert plan(node_id=5).kind("/data") is DirectoryKind.DYNAMIC_METADATA
    assert plan(initial_voters=None).kind("/data") is DirectoryKind.STATIC_METADATA
    assert plan().kind("/other") is DirectoryKind.DATA


def test_initial_voters_are_parsed_with_brackets_around_ipv6() -> None:
    text = "1@[::1]:9094:hU1znZ7uSBqQzCNcN5L0sQ,0@example.com:9093:J8aAPcfLQt2bqs1JT_rMgQ"
    assert parse_voters(text) == [
        InitialVoter(0, "example.com", 9093, UUID),
        InitialVoter(1, "::1", 9094, OTHER),
    ]
    assert ",".join(str(voter) for voter in reversed(parse_voters(text))) == text


@pytest.mark.parametrize(
    "text",
    ["", "1", "@h:1:J8aAPcfLQt2bqs1JT_rMgQ", "1@h", "1@h:2", "x@h:2:J8aAPcfLQt2bqs1JT_rMgQ",
    "1@h:99999:J8aAPcfLQt2bqs1JT_rMgQ",
     "-1@h:2:J8aAPcfLQt2bqs1JT_rMgQ", "1@h:2:zz", "1@[::1:2:J8aAPcfLQt2bqs1JT_rMgQ",
     "1@h:2:J8aAPcfLQt2bqs1JT_rMgQ,1@h:3:hU1znZ7uSBqQzCNcN5L0sQ"],
)  # fmt: skip
def test_malformed_voters_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".{10,}"):
        parse_voters(text)


def test_a_scram_credential_is_derived_as_in_rfc_5802() -> None:
    salt = base64.b64encode(b"salty").decode()
    record = parse_scram(f'SCRAM-SHA-256=[name=alice,iterations=8192,salt="{salt}",password=secret]', bytes)
    assert (record.name, record.mechanism, record.iterations, record.salt) == ("alice", 1, 8192, b"salty")
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", b"salty", 8192)
    again = parse_scram(
        f"SCRAM-SHA-256=[name=alice,iterations=8192,salt={salt},saltedpassword={base64.b64encode(salted).decode()}]",
        bytes,
    )
    assert again == record
    assert parse_scram("SCRAM-SHA-512=[name=bob,password=x]", lambda: b"new").salt == b"new"


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("alice", "is expected"),
        ("PLAIN=[name=a,password=b]", "no SCRAM mechanism"),
        ("SCRAM-SHA-256=name=a", "brackets"),
        ("SCRAM-SHA-256=[password=b]", "has no name"),
        ("SCRAM-SHA-256=[name=a]", "neither password nor saltedpassword"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=eA==]", "no salt"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=10]", "4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=b,color=red]", "unknown part: color"),
        ("SCRAM-SHA-256=[name=a,password=b,salt=***]", "no base64"),
    ],
)
def test_malformed_scram_arguments_are_refused_with_the_reason(argument: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_scram(argument, bytes)
