"""Failures of commands, in words, and their exit codes for scripts."""

from __future__ import annotations

import errno
import os
import sys

OK = 0
FAILED = 1
USAGE = 2
DIRECTORY = 3
HELD = 4
UNREACHABLE = 5

EXIT_CODES = {
    OK: "done",
    FAILED: "failed while running; the message says why",
    USAGE: "the command line or the configuration file is wrong",
    DIRECTORY: "a data directory cannot be used as it is: not formatted, another node's, damaged",
    HELD: "another process holds the data directory or the port",
    UNREACHABLE: "no controller answered",
}


REPORT = "Please report it, with the output of a run with KRAFTD_TRACEBACK=1 in the environment."


class CommandFailure(Exception):
    """A command that cannot continue: the text for the user, and the exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def explain(error: Exception) -> tuple[str, int]:
    """The text and the exit code for an error.

    An unforeseen error becomes one line; with KRAFTD_TRACEBACK in the environment it is raised again.
    """
    if isinstance(error, OSError):
        return explain_os_error(error)
    if isinstance(error, ImportError) and str(error).startswith("KRAFTD_CODEC="):
        return f"{error}. Unset KRAFTD_CODEC to use an engine that is installed.", USAGE
    from kraftd.config import ConfigError
    from kraftd.log import errors as storage

    if isinstance(error, CommandFailure):
        return str(error), error.code
    client = sys.modules.get("kraftd.client.failures")
    if client is not None and isinstance(error, client.ClientFailure):
        return str(error), UNREACHABLE if isinstance(error, client.Unreachable) else FAILED
    if isinstance(error, ConfigError):
        return "\n".join(error.problems), USAGE
    if isinstance(error, storage.DirectoryLocked):
        return str(error), HELD
    if isinstance(error, storage.DirectoryProblem | storage.CorruptStorage):
        return str(error), DIRECTORY
    if is_startup_error(error):
        # Its context, where it has one, is what the operating system said.
        in_use = isinstance(error.__context__, OSError) and error.__context__.errno == errno.EADDRINUSE
        return str(error), HELD if in_use else FAILED
    if isinstance(error, storage.StorageError):
        return str(error), FAILED
    if isinstance(error, ValueError) and "null byte" in str(error):
        return "A path holds a NUL character, which no file name can.", USAGE
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object!a} holds bytes that are not UTF-8.", USAGE
    if isinstance(error, MemoryError):
        return "There is not enough memory for this.", FAILED
    if os.environ.get("KRAFTD_TRACEBACK"):
        raise error
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"Unexpected error: {what}\n{REPORT}", FAILED


def is_startup_error(error: Exception) -> bool:
    """Return whether the daemon raised it. Its module is not imported for this: other commands have not
    loaded it.
    """
    daemon = sys.modules.get("kraftd.runtime.daemon")
    return daemon is not None and isinstance(error, daemon.StartupError)


def explain_os_error(error: OSError) -> tuple[str, int]:
    """What the operating system refused, with remedies for the usual cases."""
    if error.errno == errno.EADDRINUSE:
        return f"{error}\nStop the process that has the port, or give another port in listeners.", HELD
    remedy = {
        errno.EADDRNOTAVAIL: "This machine has no such address; correct the host in listeners.",
        errno.EACCES: "Give this user the right to it, or choose another place.",
        errno.EROFS: "The file system is read-only; choose another directory in log.dirs.",
        errno.EMFILE: "Allow this process more open files (ulimit -n).",
        errno.ENFILE: "This machine has too many open files; close some or raise fs.file-max.",
        errno.ENAMETOOLONG: "No file can have a name of that length.",
        errno.EISDIR: "A file is needed, and this is a directory.",
        errno.ENOTDIR: "A part of that path is a file.",
        errno.ELOOP: "Its symbolic links lead in a circle.",
        errno.ENOSPC: "Make room on the disk and run the command again; nothing that was there is damaged.",
    }.get(error.errno or 0)
    return f"{error}\n{remedy}" if remedy else str(error), FAILED
