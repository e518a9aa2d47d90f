"""Work in several processes: Python replays on one core a process."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import TypeVar

import pyarrow as pa
from pyspark import SparkContext

from kraftd.spark.errors import InputError

MAX_PROCESSES = 8
T = TypeVar("T")
Work = Callable[[int], Iterator[T]]


def core_count() -> int:
    """How many processes may work, one a core; 1 with a JVM here, whose connections forks would share."""
    if SparkContext._active_spark_context is not None:
        return 1
    return min(len(os.sched_getaffinity(0)), MAX_PROCESSES)


def in_processes(work: Work[T], count: int) -> Iterator[T]:
    """What work(number) yields for each number below count, as it comes.

    Each has a process, a fork of this one, which sees what this one holds; of a single one this process does
    the work. What one of them raises is raised here, and ends the others.
    """
    if count == 1:
        yield from work(0)
        return
    context = multiprocessing.get_context("fork")
    processes: list[ForkProcess] = []
    ends: list[Connection] = []
    try:
        for number in range(count):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_run, args=(work, number, sender, [*ends, receiver]))
            with warnings.catch_warnings():
                # Arrow's threads outlive no fork, and are started again.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            sender.close()
            processes.append(process)
            ends.append(receiver)
        yield from _received(ends)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _received(ends: list[Connection]) -> Iterator[T]:
    waiting = list(ends)
    while waiting:
        for end in wait(waiting):
            assert isinstance(end, Connection)
            try:
                kind, value = end.recv()
            except EOFError:
                raise InputError("a process that replays partitions was killed: is there memory?") from None
            if kind == "done":
                waiting.remove(end)
            elif kind == "failed":
                raise value
            else:
                yield value


def _run(work: Work[T], number: int, sender: Connection, inherited: list[Connection]) -> None:
    """Send what the work yields. A SIGINT of the terminal is left to the parent, which ends this process.

    The inherited ends are the parent's: without them, sending fails once the parent is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for end in inherited:
        end.close()
    gc.disable()  # rows have no cycles, and its passes over millions of them cost a fifth of the time
    pa.set_cpu_count(1)
    try:
        for item in work(number):
            sender.send(("found", item))
        sender.send(("done", None))
    except BrokenPipeError:
        return
    except InputError as error:
        sender.send(("failed", error))
    except Exception:
        sender.send(("failed", RuntimeError(traceback.format_exc())))
