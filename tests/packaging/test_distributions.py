"""A wheel and an sdist, built and installed into a separate environment, work as the checkout does."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Below the prefix of an installation.
SHARED = ("kraftd.service", "alerts.yml", "grafana-dashboard.json")
CODE = (
    "from importlib.resources import files; import kraftd.messages.registry as r; "
    "print(len(r.APIS) > 50, files('kraftd.metrics').joinpath('status.html').is_file())"
)


def run(*words: object, cwd: Path | None = None) -> str:
    done = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both; the wheel is built from the sdist, as for a package index."""
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source") / "kraftd"
    run("git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", source)
    run(sys.executable, "-m", "build", "--outdir", folder, source)
    return folder


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_a_distribution_installs_and_runs_with_all_of_its_files(
    built: Path, tmp_path: Path, kind: str
) -> None:
    (distribution,) = built.glob(kind)
    venv.create(tmp_path, with_pip=True)
    pip = (tmp_path / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--require-hashes", "-r", ROOT / "requirements.lock")
    run(*pip, "--no-deps", distribution)
    assert run(tmp_path / "bin/kraftd", "version", cwd=tmp_path).startswith("kraftd ")
    assert run(tmp_path / "bin/python", "-c", CODE, cwd=tmp_path).split() == ["True", "True"]
    for name in SHARED:
        (original,) = (one for folder in ("packaging", "monitoring") for one in ROOT.glob(f"{folder}/{name}"))
        assert (tmp_path / "share" / "kraftd" / name).read_bytes() == original.read_bytes()
