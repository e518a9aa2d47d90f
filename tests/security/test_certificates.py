"""What is read of a peer's certificate."""

from __future__ import annotations

import pytest

from kraftd.security import distinguished_names
from kraftd.security.distinguished_names import subject_and_end


@pytest.mark.parametrize("error", [TypeError, NotImplementedError, ValueError])
def test_any_fault_in_reading_a_subject_is_a_refusal_of_its_certificate(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    class Broken:
        @property
        def subject(self) -> None:
            raise error("as it should")

    monkeypatch.setattr(distinguished_names.x509, "load_der_x509_certificate", lambda _: Broken())
    with pytest.raises(ValueError, match=r"cannot be read: as it should"):
        subject_and_end(b"")


def test_bytes_that_are_no_certificate_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        subject_and_end(b"\x30\x03\x02\x01\x01")
