"""``python -m kraftd.cli.write_code_archive``: write the archive of code, for users who may not."""

import sys

import kraftd.broker_node.apis.api_00_produce
import kraftd.cli.main
import kraftd.cli.start
import kraftd.controller_node.apis.api_18_api_versions
import kraftd.controller_node.apis.api_63_broker_heartbeat
import kraftd.runtime.broker_listeners
import kraftd.runtime.client_listeners
import kraftd.runtime.daemon
import kraftd.runtime.freed_memory  # noqa: F401
from kraftd.cli.code_archive import archivable, archive_path, write_archive
from kraftd.runtime.late_code import load_coordinators

if __name__ == "__main__":
    load_coordinators()
    write_archive(archive_path(), archivable(list(sys.modules.values())))
