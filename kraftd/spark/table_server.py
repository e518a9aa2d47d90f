"""What `format("kraft")` asks the driver for: a table's files, or copies of what Hadoop's file systems hold.

Spark plans a Python data source in a process beside the driver, which has no session. That process asks the
driver over a Unix socket.
"""

from __future__ import annotations

import json
import shutil
import socketserver
import tempfile
import threading
from collections.abc import Mapping

from pyspark.sql import SparkSession

from kraftd.spark.as_of import IN_SPARK
from kraftd.spark.cluster_tables import RECORDS, Tables, open_tables
from kraftd.spark.errors import InputError
from kraftd.spark.failures import what_failed
from kraftd.spark.inputs.hadoop import copy_inputs
from kraftd.spark.inputs.storage import join, list_files
from kraftd.spark.source.options import SourceOptions, parse_options
from kraftd.spark.source.table_source import Answer
from kraftd.spark.tables.columns import COORDINATOR_TABLES

PARQUET = ".parquet"


class TableServer:
    """Answers the data source's questions in a session, one at a time. Its socket is this user's alone.

    What it makes stays until the process ends, so data frames may be read again.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._made: dict[tuple[object, ...], Tables] = {}
        directory = tempfile.mkdtemp(prefix="kraftd-spark-")
        self.address = join(directory, "tables")
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(json.dumps(owner.answer(json.loads(self.rfile.readline()))).encode())

        self._server = socketserver.ThreadingUnixStreamServer(self.address, Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True, name="kraftd-spark tables").start()
        self._server_directory = directory

    def close(self) -> None:
        """End the server; deletes what it made."""
        self._server.shutdown()
        self._server.server_close()
        for made in self._made.values():
            made.close()
        shutil.rmtree(self._server_directory, ignore_errors=True)

    def answer(self, options: Mapping[str, str]) -> Answer:
        """The schema and the files of the table that options name, the copies for records, or an error."""
        try:
            parsed = parse_options(options)
            if parsed.table in (None, RECORDS):  # not locked: a table in the making may ask for its records
                return {"copies": copy_inputs(self._session, parsed.paths, parsed.scratch)}
            with self._lock:
                return self._table(parsed)
        except InputError as error:
            return {"error": str(error)}
        except Exception as error:
            return {"error": what_failed(error)}

    def _table(self, options: SourceOptions) -> Answer:
        name = options.table or ""
        if name in COORDINATOR_TABLES:
            raise InputError(f"table={name}: kraftd.spark.tables(spark, path) has the tables of coordinators")
        found = open_tables(
            self._session,
            options.paths if len(options.paths) > 1 else options.paths[0],
            as_of=options.as_of,
            mode="permissive" if options.permissive else "failfast",
            high_watermark=options.high_watermark,
            scratch=options.scratch,
            spelling=IN_SPARK,
        )
        key = options.paths, options.permissive, options.high_watermark, options.scratch, found.as_of
        if key in self._made:
            found.close()
        found = self._made.setdefault(key, found)
        if name not in found:
            raise InputError(f"table={name}: there is no such table; there are {', '.join(found)}")
        directory = found.path(name)
        files = [join(directory, file) for file, _ in list_files(directory) if file.endswith(PARQUET)]
        return {"schema": found[name].schema.json(), "files": files, "as_of": found.as_of}
