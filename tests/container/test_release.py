"""The released image: its archive, and a bill of materials that names what its own tools find in it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.container.conftest import TAG
from tests.container.engine import BASE, Engine
from tools.release.__main__ import Release
from tools.release.container import Image

pytestmark = pytest.mark.container

FIND_PYTHON = """
import importlib.metadata, re
for each in importlib.metadata.distributions():
    print(re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(), each.version)
"""


@pytest.fixture
def image(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Image:
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    return Image("podman", TAG)


def found_inside(engine: Engine, *command: str) -> set[str]:
    return set(engine.podman("run", "--rm", "--entrypoint", "", TAG, *command).splitlines())


@pytest.mark.thorough
def test_the_archive_and_its_bill_have_what_the_image_has(
    engine: Engine, image: Image, tmp_path: Path
) -> None:
    archive = tmp_path / "image.tar"
    image.save(archive)
    release = Release(tmp_path, tmp_path)
    release.version = "1.2.3"
    bill = json.loads(release.bill_of_image(image, BASE, archive))
    with tarfile.open(archive) as saved:
        assert f"{image.id()}.json" in saved.getnames()
    subject = bill["metadata"]["component"]
    assert subject["hashes"] == [{"alg": "SHA-256", "content": image.id()}]
    assert subject["properties"] == [{"name": "kraftd:base-image", "value": BASE}]
    by_kind: dict[str, set[str]] = {"pypi": set(), "deb": set()}
    for part in bill["components"]:
        by_kind[part["purl"][4:].partition("/")[0]].add(f"{part['name']} {part['version']}")
    program = {
        f"{part['name']} {part['version']}"
        for part in bill["components"]
        if any(each["value"].startswith("/opt/kraftd/") for each in part.get("properties", ()))
    }
    assert by_kind["deb"] == found_inside(engine, "dpkg-query", "-W", "-f", "${Package} ${Version}\n")
    assert program == found_inside(engine, "/opt/kraftd/bin/python", "-c", FIND_PYTHON)
    assert not {name for name in program if name.startswith(("pip ", "setuptools "))}
