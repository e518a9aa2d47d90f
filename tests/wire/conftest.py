"""One oracle process for all wire tests, and both engines for every test of a codec."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from kraftd.wire import batch, python_codec, record_frame
from testkit.java import JavaMissing
from tests.wire.engines import c_engine
from tests.wire.oracle import Oracle

FUNCTIONS = ("decode", "decode_prefix", "encode", "encode_bytes", "encode_framed")


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Kafka's own codecs."""
    try:
        process = Oracle()
    except JavaMissing as error:
        pytest.skip(f"not run: {error}")
    yield process
    process.close()


@pytest.fixture(scope="module", params=["c", "python"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine under test: its functions replace the other's in every module that imported those."""
    name: str = request.param
    c = c_engine()
    if c is None and name == "c":
        pytest.skip("the C engine is not built")
    chosen = c if name == "c" else python_codec
    with pytest.MonkeyPatch.context() as patch:
        for module in list(sys.modules.values()):
            if module.__name__.startswith(("kraftd.wire.", "tests.wire.")) and module not in (
                c,
                python_codec,
            ):
                for function in FUNCTIONS:
                    if vars(module).get(function) in (
                        getattr(python_codec, function),
                        getattr(c, function, None),
                    ):
                        patch.setattr(module, function, getattr(chosen, function))
        used = c if name == "c" else None
        patch.setattr(batch, "C_ENGINE", used)
        patch.setattr(record_frame, "C_ENGINE", used)
        encode_record = record_frame.python_encode_record if used is None else used.encode_record
        patch.setattr(record_frame, "encode_record", encode_record)
        yield name
