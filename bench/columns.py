"""Records into columns, three ways, on one core and without Spark.

They are the builder in C, numpy over runs of records of equal layout, and the codec record by record.

    .venv/bin/python -m bench.columns --records 500000

numpy is given its best case: a log of PartitionRecords, nearly all of one layout, and only their columns; the
other two fill all columns of `records`. Records of another layout would have to go through the codec.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.spark import write_log
from kraftd.log.segment import scan
from kraftd.spark.decoding.decode import Decoder
from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.inputs.storage import StoredFile
from kraftd.wire.batch import HEADER_BYTES, Batch, decompressed

LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
PARTITION_RECORD, VERSION = 3, 2
ARRAYS = ("replicas", "isr", "removing_replicas", "adding_replicas")


def read_log(log: Path, add: Callable[[Batch], object]) -> None:
    """Every batch of a log's only segment, checksums verified."""
    file = StoredFile(str(next(log.glob("__cluster_metadata-0/*.log"))))
    for batch in scan(file, 0, file.size_bytes(), chunk_bytes=4 << 20):
        add(batch)
    file.close()


class NumpyColumns:
    """Turns PartitionRecords of version 2 into columns, a run of records of equal layout at a time."""

    def __init__(self) -> None:
        self.rows = self.left = 0

    def add(self, batch: Batch) -> None:
        data = np.frombuffer(decompressed(batch).view[HEADER_BYTES:], np.uint8)
        at = 0
        while at < len(data):
            size, start = _varint(data, at)
            stride = start + (size >> 1) - at
            length = self._run(
                data[at : at + (len(data) - at) // stride * stride].reshape(-1, stride), start - at
            )
            at += stride * length

    def _run(self, rows: np.ndarray, start: int) -> int:
        """Decode the leading records with the layout of the first; return their number."""
        value = start + 3 + (1 + (rows[0, start + 2] > 127))
        value += 1 + (rows[0, value] > 127)
        first = rows[0]
        if tuple(first[value : value + 3]) != (1, PARTITION_RECORD, VERSION):
            self.left += 1
            return 1
        places = self._layout(first, value + 3)
        fixed = [*range(start), *range(value - 1, value + 3), *places["counts"]]
        same = (rows[:, fixed] == first[fixed]).all(axis=1)
        same &= (rows[:, start + 2] > 127) == (first[start + 2] > 127)
        length = len(rows) if same.all() else int(same.argmin())
        self._columns(rows[:length], places)
        self.rows += length
        return length

    def _layout(self, first: np.ndarray, at: int) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {"partition_id": [at, 0], "topic_id": [at + 4, 0], "counts": []}
        at += 20
        for name in ARRAYS:
            count = int(first[at]) - 1
            found["counts"].append(at)
            found[name] = [at + 1, count]
            at += 1 + 4 * count
        for name in ("leader", "leader_epoch", "partition_epoch"):
            found[name] = [at, 0]
            at += 4
        found["directories"] = [at + 1, int(first[at]) - 1]
        found["counts"].append(at)
        return found

    def _columns(self, rows: np.ndarray, places: dict[str, list[int]]) -> dict[str, pa.Array]:
        columns = {}
        for name in ("partition_id", "leader", "leader_epoch", "partition_epoch"):
            columns[name] = pa.array(_ints(rows, places[name][0], 1)[:, 0])
        for name in ARRAYS:
            at, count = places[name]
            offsets = pa.array(np.arange(len(rows) + 1, dtype=np.int32) * count)
            columns[name] = pa.ListArray.from_arrays(offsets, pa.array(_ints(rows, at, count).ravel()))
        columns["topic_id"] = _texts(rows[:, places["topic_id"][0] :][:, :16])
        at, count = places["directories"]
        ids = _texts(rows[:, at : at + 16 * count].reshape(-1, 16))
        offsets = pa.array(np.arange(len(rows) + 1, dtype=np.int32) * count)
        columns["directories"] = pa.ListArray.from_arrays(offsets, ids)
        return columns


def _varint(data: np.ndarray, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = int(data[at])
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _ints(rows: np.ndarray, at: int, count: int) -> np.ndarray:
    packed = np.ascontiguousarray(rows[:, at : at + 4 * count])
    ints: np.ndarray = packed.view(">i4").astype(np.int32).reshape(len(rows), count)
    return ints


def _texts(ids: np.ndarray) -> pa.Array:
    """Ids of 16 bytes in Kafka's text form."""
    padded: np.ndarray = np.zeros((len(ids), 18), np.uint8)
    padded[:, :16] = ids
    bits: np.ndarray = np.zeros((len(ids), 6), np.uint32)
    for at in range(3):
        bits = bits << 8 | padded[:, at::3]
    text = np.stack([LETTERS[bits >> shift & 63] for shift in (18, 12, 6, 0)], axis=2).reshape(len(ids), 24)
    data = np.ascontiguousarray(text[:, :22])
    offsets: np.ndarray = np.arange(len(ids) + 1, dtype=np.int32) * 22
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data))


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=500_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as home:
        log = write_log(Path(home) / "log", records, records)

        def with_decoder(*, columns: bool) -> None:
            decoder = Decoder(record_schema(), columns=columns)

            def add(batch: Batch) -> None:
                decoder.add(batch)
                if decoder.rows >= 16_384:
                    decoder.take()

            read_log(log, add)
            decoder.take()

        vectors = NumpyColumns()
        figures = {
            "c": cpu_seconds(lambda: with_decoder(columns=True)),
            "numpy": cpu_seconds(lambda: read_log(log, vectors.add)),
            "record_by_record": cpu_seconds(lambda: with_decoder(columns=False)),
        }
        assert vectors.rows == records, vectors.left
    print(json.dumps({name: f"{value / records * 1e6:.2f} us a record" for name, value in figures.items()}))


if __name__ == "__main__":
    main()
