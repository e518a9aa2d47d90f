"""Failures for the user: one line, without Spark's wrapping."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kraftd.spark.errors import InputError

_OURS = re.compile(r"kraftd\.spark\.errors\.InputError: ([^\n]+)")


@contextmanager
def ends_on_failure() -> Iterator[None]:
    """End the process with exit code 1 and one line on stderr when the input, or Spark, fails."""
    try:
        yield
    except InputError as error:
        _end(str(error))
    except (PySparkException, Py4JError) as error:
        _end(what_failed(error))
    except KeyboardInterrupt:
        print("kraftd-spark: interrupted", file=sys.stderr)
        sys.exit(130)


def what_failed(error: Exception) -> str:
    """The message of the InputError in a failure of Spark, or the first line of Spark's own."""
    text = str(error)
    found = _OURS.search(text)
    if found is not None:
        return found[1].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"Spark failed: {lines[0] if lines else type(error).__name__}"


def _end(message: str) -> None:
    print(f"kraftd-spark: {message}", file=sys.stderr)
    sys.exit(1)
