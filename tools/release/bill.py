"""The software bill of materials, as CycloneDX: each package of a release with version, license and hashes.

The same input gives the same bytes: the time is that of the commit, the serial number follows from the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import DisjunctiveLicense, License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tools.release.installed import DebianPackage, Installed, PythonPackage

PROJECT = "kraftd"
_LOCKED = re.compile(r"^([a-z0-9._-]+)==(\S+)((?:\s*\\\n\s*--hash=sha256:[0-9a-f]{64})+)", re.M)


class InvalidBill(Exception):
    """The bill does not keep to CycloneDX's schema."""


Hashes = Mapping[tuple[str, str], Sequence[str]]


def locked_hashes(lock: str) -> Hashes:
    """Name and version -> SHA-256 of each file that a lock file permits."""
    found = _LOCKED.findall(lock)
    return {(name, version): re.findall(r"[0-9a-f]{64}", hashes) for name, version, hashes in found}


def bill_of(
    subject: Component,
    installed: Installed,
    locked: Hashes,
    files: Mapping[str, str],
    made_s: int,
) -> str:
    """The bill of a subject as JSON. Raises InvalidBill.

    `files` are the names of the subject's files with their SHA-256; `made_s` is a time since 1970.
    """
    for name, digest in files.items():
        subject.external_references.add(_distribution(name, [digest]))
    # The path tells installations of one package apart.
    parts = {f"{_purl(package)}#{package.path}": package for package in installed.python}
    bill = Bom(
        serial_number=uuid5(NAMESPACE_URL, " ".join([str(subject.purl), *sorted(files.values())])),
        components=[
            *(_python(ref, package, locked) for ref, package in parts.items()),
            *(_debian(package, installed.distro) for package in installed.debian),
        ],
    )
    bill.metadata.timestamp = datetime.fromtimestamp(made_s, UTC)
    bill.metadata.component = subject
    bill.dependencies = _dependencies(bill, parts, subject)
    text = JsonV1Dot6(bill).output_as_string(indent=2) + "\n"
    if (error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        raise InvalidBill(str(error))
    return text


def program(version: str) -> Component:
    """kraftd as a Python distribution."""
    return _subject(ComponentType.APPLICATION, version, PackageURL("pypi", name=PROJECT, version=version))


def image(version: str, image_id: str, base: str) -> Component:
    """kraftd as a container image; `base` is what it was built on."""
    subject = _subject(ComponentType.CONTAINER, version, PackageURL("oci", name=PROJECT, version=version))
    subject.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=image_id.removeprefix("sha256:")))
    subject.properties.add(Property(name="kraftd:base-image", value=base))
    return subject


def _subject(kind: ComponentType, version: str, purl: PackageURL) -> Component:
    return Component(
        name=PROJECT,
        type=kind,
        version=version,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
    )


def _purl(package: PythonPackage) -> str:
    return PackageURL("pypi", name=package.name, version=package.version).to_string()


def _python(ref: str, package: PythonPackage, locked: Hashes) -> Component:
    hashes = locked.get((package.name, package.version), ())
    return Component(
        name=package.name,
        version=package.version,
        purl=PackageURL("pypi", name=package.name, version=package.version),
        bom_ref=ref,
        licenses=_licenses(package),
        external_references=[_distribution(f"https://pypi.org/simple/{package.name}/", hashes)]
        if hashes
        else [],
        properties=[Property(name="kraftd:path", value=package.path)],
    )


def _licenses(package: PythonPackage) -> list[License]:
    if package.license is None:
        return []
    if package.is_expression:
        return [LicenseFactory().make_from_string(package.license)]
    return [DisjunctiveLicense(name=package.license)]


def _debian(package: DebianPackage, distro: str | None) -> Component:
    qualifiers = {"arch": package.architecture} | ({"distro": distro} if distro else {})
    purl = PackageURL("deb", "debian", package.name, package.version, qualifiers)
    return Component(name=package.name, version=package.version, purl=purl, bom_ref=purl.to_string())


def _distribution(url: str, hashes: Sequence[str]) -> ExternalReference:
    return ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(url),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes],
    )


def _dependencies(bill: Bom, parts: Mapping[str, PythonPackage], subject: Component) -> list[Dependency]:
    """What each Python package needs, and what the subject needs: the packages that no other one needs."""
    refs = {component.bom_ref.value: component.bom_ref for component in bill.components}
    needs = {ref: _needed(package, parts) for ref, package in parts.items()}
    needed = {other for others in needs.values() for other in others}
    top = [Dependency(ref) for name, ref in refs.items() if name not in needed]
    found = [
        Dependency(refs[ref], [Dependency(refs[each]) for each in others]) for ref, others in needs.items()
    ]
    return [Dependency(subject.bom_ref, top), *found]


def _needed(package: PythonPackage, parts: Mapping[str, PythonPackage]) -> list[str]:
    """The packages beside this one that it requires."""
    home = package.path.rpartition("/")[0]
    return [
        ref
        for ref, other in parts.items()
        if other.name in package.requires and other.path.rpartition("/")[0] == home
    ]
