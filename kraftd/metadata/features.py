"""Features (KIP-584, KIP-1022): those that this software supports, their defaults by release, their
dependencies.

Facts: Feature, MetadataVersion and the *Version enums of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.metadata_version import KRAFT_VERSION, METADATA_VERSION
from kraftd.named_tuple import NamedTuple
from kraftd.wire.record_frame import VersionedRecord

ELR_VERSION: Final = "eligible.leader.replicas.version"


class FeatureLevel(NamedTuple):
    """One level: the metadata.version that makes it a new cluster's default, and its dependencies."""

    level: int
    default_since: int
    needs: tuple[tuple[str, int], ...] = ()


class Feature(NamedTuple):
    """A feature other than metadata.version; its levels ascend from 0."""

    name: str
    levels: tuple[FeatureLevel, ...]

    @property
    def highest(self) -> int:
        return self.levels[-1].level

    def default(self, release: int) -> int:
        """The level of a cluster formatted at a metadata.version."""
        level = self.levels[0]
        for later in self.levels[1:]:
            if later.default_since > release:
                break
            level = later
        return level.level

    def at(self, level: int) -> FeatureLevel:
        """The level of that number. Raises ValueError if there is none."""
        for known in self.levels:
            if known.level == level:
                return known
        raise ValueError(f"{self.name} has no level {level}: its levels are 0 to {self.highest}")


_ZERO = FeatureLevel(0, mv.MINIMUM_VERSION)

FEATURES: Final[Mapping[str, Feature]] = MappingProxyType(
    {
        feature.name: feature
        for feature in (
            Feature("group.version", (_ZERO, FeatureLevel(1, 22))),
            Feature(KRAFT_VERSION, (_ZERO, FeatureLevel(1, 21))),
            Feature("share.version", (_ZERO, FeatureLevel(1, 28))),
            Feature("streams.version", (_ZERO, FeatureLevel(1, 29))),
            Feature("transaction.version", (_ZERO, FeatureLevel(1, 24), FeatureLevel(2, 24))),
            Feature(ELR_VERSION, (_ZERO, FeatureLevel(1, 26, ((METADATA_VERSION, 23),)))),
        )
    }
)

# In the order in which a Kafka controller lists them in ApiVersions.
_SUPPORTED: Final = (
    "group.version",
    KRAFT_VERSION,
    METADATA_VERSION,
    "share.version",
    "streams.version",
    "transaction.version",
    ELR_VERSION,
)


def supported_features(*, unstable: bool = False) -> dict[str, tuple[int, int]]:
    """Name to (lowest, highest) supported level, metadata.version among them."""
    latest = mv.LATEST_TESTING if unstable else mv.LATEST_PRODUCTION
    return {
        name: (mv.MINIMUM_VERSION, latest) if name == METADATA_VERSION else (0, FEATURES[name].highest)
        for name in _SUPPORTED
    }


def check_dependencies(name: str, level: int, levels: Mapping[str, int]) -> None:
    """Raises ValueError if a feature's level (other than metadata.version's) lacks a dependency in levels."""
    if name not in FEATURES:
        raise ValueError(f"there is no feature {name}")
    metadata_version = levels.get(METADATA_VERSION)
    if level >= 1 and (metadata_version is None or metadata_version < mv.MINIMUM_VERSION):
        raise ValueError(
            f"{name} {level} needs metadata.version {mv.MINIMUM_VERSION} "
            f"({mv.version_name(mv.MINIMUM_VERSION)}) or later"
        )
    for needed, needed_level in FEATURES[name].at(level).needs:
        if levels.get(needed, -1) < needed_level:
            raise ValueError(f"{name} {level} needs {needed} {needed_level} or later")


def format_levels(
    requested: Mapping[str, int],
    release: int | None = None,
    *,
    dynamic_quorum: bool,
    unstable: bool = False,
) -> dict[str, int]:
    """The levels of every feature that a new cluster starts with, metadata.version and kraft.version
    among them.

    requested: the levels of --feature; release: the level of --release-version; dynamic_quorum: whether the
    log holds the voters (KIP-853). Raises ValueError with a text for the operator.
    """
    if METADATA_VERSION in requested:
        if release is not None:
            raise ValueError(
                f"--release-version and --feature {METADATA_VERSION}=… say the same thing: give one of them."
            )
        release = requested[METADATA_VERSION]
        if not mv.is_known(release):
            raise ValueError(
                f"metadata.version has no level {release}: "
                f"its levels are {mv.MINIMUM_VERSION} to {mv.LATEST_TESTING}."
            )
    if release is None:
        release = mv.LATEST_TESTING if unstable else mv.LATEST_PRODUCTION
    if release > mv.LATEST_PRODUCTION and not unstable:
        raise ValueError(
            f"metadata.version {mv.version_name(release)} is not stable; the latest that is: "
            f"{mv.version_name(mv.LATEST_PRODUCTION)}."
        )
    unknown = [name for name in requested if name != METADATA_VERSION and name not in FEATURES]
    if unknown:
        raise ValueError(
            f"There is no feature {unknown[0]}. There are {METADATA_VERSION}, {', '.join(sorted(FEATURES))}."
        )
    levels = dict(requested)
    levels[METADATA_VERSION] = release
    for name, feature in FEATURES.items():
        if name == KRAFT_VERSION:
            levels[name] = _kraft_version_level(requested.get(name), dynamic_quorum=dynamic_quorum)
        elif name not in levels:
            levels[name] = feature.default(release)
    for name in sorted(levels):
        if name != METADATA_VERSION:
            check_dependencies(name, levels[name], levels)
    return dict(sorted(levels.items()))


def _kraft_version_level(requested: int | None, *, dynamic_quorum: bool) -> int:
    """The level of kraft.version: voters in the log need 1, and 1 needs voters in the log."""
    if requested is None:
        return 1 if dynamic_quorum else 0
    if requested == 0 and dynamic_quorum:
        raise ValueError(
            "kraft.version cannot be 0 with a dynamic quorum, which --standalone, --initial-controllers and "
            "--no-initial-controllers make. Leave out --feature kraft.version=0."
        )
    if requested != 0 and not dynamic_quorum:
        raise ValueError(
            f"kraft.version cannot be {requested} with a static quorum. Remove controller.quorum.voters and "
            "use one of --standalone, --initial-controllers and --no-initial-controllers."
        )
    return requested


def bootstrap_records(
    levels: Mapping[str, int], others: Iterable[VersionedRecord] = ()
) -> list[VersionedRecord]:
    """The records of bootstrap.checkpoint for the levels of a new cluster; others follow (SCRAM credentials).

    metadata.version comes first. A level of 0 has no record, nor has kraft.version, which the quorum keeps.
    """
    records = [VersionedRecord(FeatureLevelRecord(METADATA_VERSION, levels[METADATA_VERSION]), 0)]
    records += [
        VersionedRecord(FeatureLevelRecord(name, level), 0)
        for name, level in sorted(levels.items())
        if name not in (METADATA_VERSION, KRAFT_VERSION) and level > 0
    ]
    records.extend(others)
    return records


def default_bootstrap_records() -> list[VersionedRecord]:
    """What a directory without a bootstrap.checkpoint starts with: the latest metadata.version alone."""
    return [VersionedRecord(FeatureLevelRecord(METADATA_VERSION, mv.LATEST_PRODUCTION), 0)]
