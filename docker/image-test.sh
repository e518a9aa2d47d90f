#!/bin/sh
# Builds the image and runs it for real with buildah and podman (make image-test). Needs root; see tests/container.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/pytest tests/container -v "$@"
