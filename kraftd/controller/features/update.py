"""UpdateFeatures (KIP-584, KIP-778, KIP-1022): finalized levels go up and, if nothing is lost, down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from kraftd.controller.configs.elr import elr_safety_records
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.features.downgrade import fitting_records, why_not_down
from kraftd.ground.refusal import cut
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.update_features_request import UpdateFeaturesRequest
from kraftd.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.features import ELR_VERSION, check_dependencies, supported_features
from kraftd.metadata.metadata_version import KRAFT_VERSION, METADATA_VERSION
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

GONE = " (if it is gone for good: kraftd quorum forget-controller)"
MAX_UPDATES = 1_000  # there are fewer features
_NO_ERROR_TEXT = "NONE"  # Kafka's error text for each updated feature


class UpgradeType(IntEnum):
    """How an update may change a level."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(Decision[UpdateFeaturesResponse], gc=False):
    """kraft_version is set if the quorum must change that as well; raft does so or refuses.

    With validate_only raft only checks whether it would. ``refused`` is the answer if raft refuses.
    """

    kraft_version: int | None = None
    validate_only: bool = False


def update_features(ctx: Context, request: UpdateFeaturesRequest, version: int) -> FeatureUpdate:
    """Make all updates or none; of a feature named twice the last counts.

    Errors are in the answer: INVALID_UPDATE_VERSION with the feature and the reason.
    """
    if len(request.feature_updates) > MAX_UPDATES:
        return refused(f"a request has at most {MAX_UPDATES} updates")
    updates = {update.feature: update for update in request.feature_updates}
    proposed = {**ctx.image.features, METADATA_VERSION: ctx.image.metadata_version}
    proposed |= {name: update.max_version_level for name, update in updates.items()}
    records: list[VersionedRecord] = []
    kraft_version = None
    for name, update in updates.items():
        level = update.max_version_level
        reason = _why_not(ctx, name, level, update.upgrade_type, proposed)
        if reason is not None:
            return refused(f"{name} cannot become {level}: {reason}.")
        if name == KRAFT_VERSION:
            if update.upgrade_type == UpgradeType.UPGRADE:
                kraft_version = level
                # The answer needs an offset to wait for: the change itself is a control record.
                records.append(VersionedRecord(NoOpRecord(), 0))
        else:
            if name == METADATA_VERSION and level < ctx.image.metadata_version:
                records += fitting_records(ctx.image, level)
            records.append(VersionedRecord(FeatureLevelRecord(name, level), 0))
    if ELR_VERSION in updates and updates[ELR_VERSION].max_version_level > 0:
        records = elr_safety_records(ctx) + records
    answer = UpdateFeaturesResponse(error_message=None)
    if version <= 1:
        answer.results = [
            UpdatableFeatureResult(update.feature, 0, _NO_ERROR_TEXT) for update in request.feature_updates
        ]
    if request.validate_only:
        records = []
    return FeatureUpdate(answer, records, kraft_version=kraft_version, validate_only=request.validate_only)


def refused(reason: str, code: ErrorCode = ErrorCode.INVALID_UPDATE_VERSION) -> FeatureUpdate:
    """The answer that nothing was updated."""
    text = cut(f"No feature was updated, because of one: {reason}")
    return FeatureUpdate(UpdateFeaturesResponse(error_code=code, error_message=text))


def _why_not(
    ctx: Context, name: str, level: int, upgrade_type: int, proposed: Mapping[str, int]
) -> str | None:
    if upgrade_type not in list(UpgradeType):
        return f"there is no upgrade type {upgrade_type}"
    if level < 0:
        return "a level is at least 0"
    reason = _unsupported(ctx, name, level)
    if reason is not None:
        return reason
    current = ctx.kraft_version if name == KRAFT_VERSION else ctx.image.features.get(name, 0)
    if name == METADATA_VERSION:
        current = ctx.image.metadata_version
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        return f"it is {current}, and a downgrade must be asked for as a safe or unsafe one"
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        return f"it is {current}, and a downgrade cannot go up"
    if name == METADATA_VERSION:
        return _why_no_metadata_version(ctx, current, level, proposed)
    if name == KRAFT_VERSION:
        return "it cannot be downgraded" if level < current else None
    try:
        check_dependencies(name, level, proposed)
    except ValueError as error:
        return str(error)
    return None


def _why_no_metadata_version(
    ctx: Context, current: int, level: int, proposed: Mapping[str, int]
) -> str | None:
    """The reason to refuse a metadata.version. It goes down only if nothing is lost, unsafe or not; Kafka
    refuses if any record's form changed.
    """
    if not mv.is_known(level):
        return f"its levels are {mv.MINIMUM_VERSION} to {mv.LATEST_TESTING}"
    if level < current:
        return why_not_down(ctx.image, level, proposed)
    return None


def _unsupported(ctx: Context, name: str, level: int) -> str | None:
    """A node that does not support a feature's level: this controller, a broker, or another controller."""
    settings = ctx.settings
    own = supported_features(unstable=settings.unstable_feature_versions_enable)
    own_features = {f"controller {settings.node_id}": own}
    for node, ranges in (*own_features.items(), *_others(ctx)):
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            remedy = GONE if node.startswith("controller") and node not in own_features else ""
            if high == 0:
                return f"{node} does not support it{remedy}"
            return f"{node} supports {low} to {high} only{remedy}"
    if mv.allows_controller_registration(ctx.image.metadata_version):
        for controller_id in settings.static_voter_ids:
            if controller_id != settings.node_id and controller_id not in ctx.image.controllers:
                return f"controller {controller_id} has not registered and may not support it"
    return None


def _others(ctx: Context) -> Iterator[tuple[str, Mapping[str, tuple[int, int]]]]:
    for broker_id, broker in sorted(ctx.image.brokers.items()):
        yield f"broker {broker_id}", broker.features
    if mv.allows_controller_registration(ctx.image.metadata_version):
        for controller_id, controller in sorted(ctx.image.controllers.items()):
            if controller_id != ctx.settings.node_id:
                yield f"controller {controller_id}", controller.features
