"""A release's bill of materials: valid CycloneDX with every package, its hashes and what it needs."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from email.message import Message
from pathlib import Path

import pytest

from tools.release import bill as bill_module
from tools.release.__main__ import SUMS, Release
from tools.release.bill import InvalidBill, bill_of, image, locked_hashes, program
from tools.release.installed import Installed, debian_packages, in_archive, python_package

LOCK = f"""rich==15.0.0 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
other==1
"""
STATUS = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2:2.36-9+deb12u1
Description: a library
 of several lines

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""


def metadata(name: str, version: str, **fields: str | list[str]) -> Message:
    message = Message()
    message["Name"], message["Version"] = name, version
    for key, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            message[key.replace("_", "-")] = value
    return message


def root_file_system(files: dict[str, bytes]) -> tarfile.TarFile:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return tarfile.open(fileobj=packed)


def two_packages() -> Installed:
    needs = ["rich>=14", 'pytest; extra == "test"', 'colorama; sys_platform == "win32"']
    click = metadata("Click", "8.5.1", License_Expression="BSD-3-Clause", Requires_Dist=needs)
    rich = metadata("rich", "15.0.0", License="MIT")
    return Installed([python_package(click, "l/c"), python_package(rich, "l/r")])


def test_a_bill_names_each_package_with_its_locked_hashes_and_needs() -> None:
    files = {"kraftd-1.2-py3-none-any.whl": "c" * 64}
    made = json.loads(bill_of(program("1.2"), two_packages(), locked_hashes(LOCK), files, 1_700_000_000))
    assert made["specVersion"] == "1.6" and made["metadata"]["timestamp"].startswith("2023-11-14T22:13:20")
    click, rich = made["components"]
    assert (click["name"], click["version"], click["purl"]) == ("click", "8.5.1", "pkg:pypi/click@8.5.1")
    assert [each["content"] for each in rich["externalReferences"][0]["hashes"]] == ["a" * 64, "b" * 64]
    (subject,) = made["metadata"]["component"]["externalReferences"]
    assert subject["url"] == "kraftd-1.2-py3-none-any.whl" and subject["hashes"][0]["content"] == "c" * 64
    needs = {each["ref"]: each.get("dependsOn", []) for each in made["dependencies"]}
    assert needs == {
        "pkg:pypi/kraftd@1.2": [click["bom-ref"]],
        click["bom-ref"]: [rich["bom-ref"]],
        rich["bom-ref"]: [],
    }


def test_sha256sum_checks_the_files_of_a_release(tmp_path: Path) -> None:
    release = Release.__new__(Release)
    release.out, release.files = tmp_path, []
    for name in ("kraftd.whl", "kraftd.cdx.json"):
        release._write(name, name)
    release.make_sums()
    check = ["sha256sum", "--check", "--strict", SUMS]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (tmp_path / "kraftd.whl").write_text("another")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_equal_input_makes_equal_bills_and_other_files_another_serial_number() -> None:
    texts = [
        bill_of(program("1.2"), two_packages(), {}, {"wheel": digest * 64}, 1_700_000_000) for digest in "ccd"
    ]
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["serialNumber"] != json.loads(texts[2])["serialNumber"]


def test_a_bill_that_breaks_the_schema_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(bill_module.JsonV1Dot6):
        def output_as_string(self, **options: object) -> str:
            return super().output_as_string(**options).replace('"application"', '"no such type"')  # type: ignore[arg-type]

    monkeypatch.setattr(bill_module, "JsonV1Dot6", Wrong)
    with pytest.raises(InvalidBill, match="no such type"):
        bill_of(program("1.2"), two_packages(), {}, {}, 0)


def test_the_packages_of_a_root_file_system_are_found_at_every_place() -> None:
    files = {
        "etc/os-release": b'NAME="Debian"\nID=debian\nVERSION_ID="12"\n',
        "var/lib/dpkg/status": STATUS.encode(),
        "opt/kraftd/lib/rich-15.0.0.dist-info/METADATA": b"Name: rich\nVersion: 15.0.0\n",
        "usr/local/lib/rich-14.0.0.dist-info/METADATA": b"Name: rich\nVersion: 14.0.0\n",
        "opt/kraftd/lib/rich/METADATA": b"no metadata\n",
    }
    with root_file_system(files) as archive:
        found = in_archive(archive, archive)
    assert [package.version for package in found.python] == ["15.0.0", "14.0.0"]
    text = bill_of(image("1.2", "d" * 64, "base@sha256:1"), found, locked_hashes(LOCK), {}, 0)
    made = json.loads(text)
    purls = [part["purl"] for part in made["components"]]
    assert "pkg:deb/debian/libc6@2:2.36-9%2Bdeb12u1?arch=amd64&distro=debian-12" in purls
    assert len(purls) == 3
    # The lock file says nothing about a version that it does not have.
    hashed = [part["version"] for part in made["components"] if "externalReferences" in part]
    assert hashed == ["15.0.0"]


def test_packages_that_were_removed_are_left_out() -> None:
    assert [package.name for package in debian_packages(STATUS)] == ["libc6"]
