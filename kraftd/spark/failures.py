"""Failures for the user: one line, without Spark's wrapping."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kraftd.control_characters import visible
from kraftd.spark.errors import InputError

JAVA_END_S = 2
_OURS = re.compile(r"kraftd\.spark\.errors\.InputError: ([^\n]+)")


@contextmanager
def ends_on_failure() -> Iterator[None]:
    """End the process with exit code 1 and one line on stderr when the input, or Spark, fails."""
    root = logging.getLogger()
    root.addFilter(_is_news)
    try:
        yield
    except InputError as error:
        _end(str(error))
    except (PySparkException, Py4JError, ConnectionError) as error:
        death = _death_of_java(error)
        if death is None and isinstance(error, ConnectionError):
            raise
        _end(what_failed(error) if death is None else death)
    except KeyboardInterrupt:
        print("kraftd-spark: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        root.removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a line of the log says more than an error that is raised, unlike Py4J's."""
    return not (record.exc_info and isinstance(record.exc_info[1], Py4JError))


@contextmanager
def takes_interrupts() -> Iterator[None]:
    """Start a session that SIGINT interrupts once, quietly, in place of PySpark's handler.

    That one calls the JVM from within a call, and the broken calls are logged with stack traces. A SIGINT
    meanwhile waits until the session has started. The JVM and its workers never get one. A SIGINT that was
    ignored before stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a background job of a shell
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
        signal.signal(signal.SIGINT, signal.SIG_IGN if is_ignored else _interrupt)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(_signal: int, _frame: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is under way is ended in order
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt


def end_session(session: SparkSession, clean_up: Callable[[], None] = lambda: None) -> None:
    """Clean up and stop Spark, quietly on an interrupt. Nothing of it can be called once its JVM ended."""
    if _death_of_java(sys.exc_info()[1]) is not None:
        session.sparkContext._accumulatorServer.handle_error = lambda *_: None
        return
    quiet_if_interrupted(session)
    with suppress(Py4JError):  # the error that ended the run is reported, not a failed clean-up
        clean_up()
    session.stop()


def quiet_if_interrupted(session: SparkSession) -> None:
    """Cancel Spark's jobs and streams without its stack traces if a KeyboardInterrupt is on its way.

    A stream whose session ends first dies with a stack trace of its own, and PySpark's server of accumulators
    prints one when Spark hangs up.
    """
    if isinstance(sys.exc_info()[1], KeyboardInterrupt):
        with suppress(Exception):
            session.sparkContext._accumulatorServer.handle_error = lambda *_: None
            session.sparkContext.setLogLevel("OFF")
            # First: a stream whose job is cancelled ends by itself, unseen, and perhaps after the session.
            for query in session.streams.active:
                query.stop()
            session.sparkContext.cancelAllJobs()


def _death_of_java(error: BaseException | None) -> str | None:
    """How the JVM that this process started has ended, if this error is that it does not answer.

    Its sockets are closed a moment before its end can be seen.
    """
    java = getattr(SparkContext._gateway, "proc", None)
    is_silent = isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)
    if java is None or not is_silent:
        return None
    try:
        code = java.wait(JAVA_END_S)
    except subprocess.TimeoutExpired:
        return None
    how = f"was killed by signal {-code}: is there memory?" if code < 0 else f"ended with exit code {code}"
    return f"Spark's JVM {how}"


def what_failed(error: Exception) -> str:
    """The message of the InputError in a failure of Spark, or the first line of Spark's own."""
    text = str(error)
    found = _OURS.search(text)
    if found is not None:
        return found[1].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"Spark failed: {lines[0] if lines else type(error).__name__}"


def _end(message: str) -> None:
    print(f"kraftd-spark: {visible(message)}", file=sys.stderr)
    sys.exit(1)
