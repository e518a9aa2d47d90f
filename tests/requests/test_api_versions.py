"""The APIs that ApiVersions lists for clients of each version, and the client software that it refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.ground.refusal import Refusal
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.metadata.metadata_version import LATEST_PRODUCTION, LATEST_TESTING
from kraftd.requests import api_versions
from kraftd.requests.api_versions import answer, response
from kraftd.requests.call import Call
from kraftd.requests.registry import Registry, Route
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

ROUTES = [Route(key, None, None, lambda: lambda call: None) for key in (ApiKey.API_VERSIONS, ApiKey.FETCH)]
REGISTRY = Registry(ROUTES)


def answered(version: int, name: str = "java", software_version: str = "4.3.1") -> ApiVersionsResponse:
    """The answer to the boundary; `described` would be answered with epoch 5."""
    answers: list[ApiVersionsResponse] = []
    boundary: Any = SimpleNamespace(registry=REGISTRY, answer=lambda call, made: answers.append(made))
    request = ApiVersionsRequest(name, software_version)
    call = Call(1, 0, "C", "h", ApiKey.API_VERSIONS, version, 1, "c", request)
    answer(boundary, call, lambda: ApiVersionsResponse(finalized_features_epoch=5))
    assert call.version == (version if version <= 4 else 0)
    return answers[0]


def listed(version: int, levels: dict[str, int], *, unstable: bool = False) -> ApiVersionsResponse:
    return response(REGISTRY, version, levels, 9, unstable_features=unstable)


@pytest.mark.parametrize("version", [0, 2, 3, 4])
@pytest.mark.parametrize(
    ("name", "software_version", "valid"),
    [
        ("java", "4.3.1", True),
        ("a", "1", True),
        ("lib-rd.kafka", "1-2", True),
        ("", "1", False),
        ("java", "", False),
        ("-java", "1", False),
        ("java", "1.", False),
        ("ja va", "1", False),
        ("jävä", "1", False),
    ],
)
def test_from_v3_on_invalid_software_names_are_refused__kip511(
    version: int, name: str, software_version: str, valid: bool
) -> None:
    if valid or version < 3:
        assert answered(version, name, software_version).finalized_features_epoch == 5
    else:
        with pytest.raises(Refusal) as refusal:
            answered(version, name, software_version)
        assert refusal.value.code == ErrorCode.INVALID_REQUEST


def test_an_unknown_version_is_answered_with_those_of_this_api__kip511() -> None:
    answer = answered(5)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(one.api_key, one.min_version, one.max_version) for one in answer.api_keys] == [(18, 0, 4)]


def test_served_apis_are_listed_with_their_versions_and_produce_from_v0__kafka18659() -> None:
    assert [(one.api_key, one.min_version, one.max_version) for one in listed(3, {}).api_keys] == [
        (ApiKey.FETCH, 4, 18),
        (ApiKey.API_VERSIONS, 0, 4),
    ]
    routes = [Route(ApiKey.PRODUCE, None, None, lambda: lambda call: None)]
    (produce,) = response(Registry(routes), 3, {}, 9, unstable_features=False).api_keys
    assert (produce.min_version, produce.max_version) == (0, 13)


@pytest.mark.parametrize(("version", "names"), [(3, ["one"]), (4, ["zero", "one"])])
def test_a_feature_with_a_level_0_is_listed_from_v4_on__kip584(
    monkeypatch: pytest.MonkeyPatch, version: int, names: list[str]
) -> None:
    supported = {"zero": (0, 2), "one": (1, 3)}
    monkeypatch.setattr(api_versions, "supported_features", lambda *, unstable: supported)
    features = listed(version, {}).supported_features
    assert [(one.name, one.min_version, one.max_version) for one in features] == [
        (name, *supported[name]) for name in names
    ]


@pytest.mark.parametrize("unstable", [False, True])
def test_unstable_levels_are_supported_if_they_are_enabled(unstable: bool) -> None:
    features = {one.name: one.max_version for one in listed(4, {}, unstable=unstable).supported_features}
    assert features["metadata.version"] == (LATEST_TESTING if unstable else LATEST_PRODUCTION)


def test_finalized_levels_are_listed_in_kafkas_order_without_zeros() -> None:
    levels = {"z": 1, "a": 2, "metadata.version": 30, "kraft.version": 1, "share.version": 0, "b": 0}
    answer = listed(3, levels)
    assert answer.finalized_features_epoch == 9
    assert [
        (one.name, one.min_version_level, one.max_version_level) for one in answer.finalized_features
    ] == [(name, levels[name], levels[name]) for name in ("kraft.version", "metadata.version", "a", "z")]
