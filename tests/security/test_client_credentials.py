"""OAuth's client credentials grant: the request, the check of an answer, and the time of the next request."""

from __future__ import annotations

import json

import jwt
import pytest

from kraftd.security.sasl.client_credentials import (
    MAX_ANSWER_BYTES,
    GrantRefused,
    RefreshRules,
    Token,
    TokenGrant,
    read_answer,
    read_token,
    refresh_at_ms,
    request,
    retry_wait_ms,
)

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
GRANT = TokenGrant(url="https://idp/token", client_id="node 1", client_secret="s3cr/t~*", scope="a b")


def unsigned(**claims: object) -> str:
    return jwt.encode(claims, "secret" * 8, "HS256")


def test_the_client_uses_basic_authentication() -> None:
    headers, body = request(GRANT)
    assert headers["Authorization"] == "Basic bm9kZSAxOnMzY3IvdH4q"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert body == b"grant_type=client_credentials&scope=a b"
    plain = TokenGrant(url="https://idp/token", client_id="a", client_secret="b")
    assert request(plain)[1] == b"grant_type=client_credentials"


def test_credentials_are_url_encoded_as_by_javas_encoder() -> None:
    grant = TokenGrant(
        url="https://idp/token", client_id="a b", client_secret="c~*:/", scope="x y", url_encodes=True
    )
    headers, body = request(grant)
    assert headers["Authorization"] == "Basic YStiOmMlN0UqJTNBJTJG"  # a+b:c%7E*%3A%2F
    assert body == b"grant_type=client_credentials&scope=x+y"


def test_an_answers_token_is_its_access_token_or_its_id_token() -> None:
    assert read_answer(200, b'{"access_token": " a.b.c ", "id_token": "d"}', GRANT) == "a.b.c"
    assert read_answer(201, b'{"access_token": "", "id_token": "d.e.f"}', GRANT) == "d.e.f"


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"token": "a.b.c"}', b'{"access_token": 7}', b"\xff", b"[" * 100_000],
)
def test_an_answer_without_a_token_is_refused_and_not_quoted(data: bytes) -> None:
    with pytest.raises(GrantRefused, match=r"^its answer holds no access_token$"):
        read_answer(200, data, GRANT)


def test_an_answer_of_more_than_a_mebibyte_is_refused() -> None:
    with pytest.raises(GrantRefused, match="has more than 1048576 bytes"):
        read_answer(200, b" " * (MAX_ANSWER_BYTES + 1), GRANT)


def test_an_error_has_status_and_oauth_error_and_hides_the_secret() -> None:
    answer = {"error": "invalid_client", "error_description": f"no\n{GRANT.client_secret}", "trace": "hush"}
    with pytest.raises(GrantRefused) as refused:
        read_answer(401, json.dumps(answer).encode(), GRANT)
    assert str(refused.value) == "it answers with status 401: invalid_client: no [hidden]"
    assert refused.value.permanent
    with pytest.raises(GrantRefused) as refused:
        read_answer(503, b"<html>hush</html>", GRANT)
    assert str(refused.value) == "it answers with status 503"
    assert not refused.value.permanent
    with pytest.raises(GrantRefused, match="status 302, a redirect, which is not followed"):
        read_answer(302, b"", GRANT)


def test_a_tokens_times_come_from_its_claims() -> None:
    token = read_token(unsigned(sub="a", exp=NOW_S + 60, iat=NOW_S))
    assert (token.expires_ms, token.issued_ms) == (NOW_MS + 60_000, NOW_MS)
    assert read_token(unsigned(sub="a", exp=NOW_S)).issued_ms is None
    assert read_token(unsigned(azp="a", exp=NOW_S), "azp").expires_ms == NOW_MS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b",
        "a.b.c",
        "a b.c.d",
        "a.\x01.c",
        "a." + "b" * 40_000 + ".c",
        unsigned(sub="a"),
        unsigned(exp=NOW_S),
        unsigned(sub=" ", exp=NOW_S),
        jwt.api_jws.encode(b'{"sub": "a", "exp": "tomorrow"}', "secret" * 8, "HS256"),
        jwt.api_jws.encode(b'{"sub": "a", "exp": 1e400}', "secret" * 8, "HS256"),
        jwt.api_jws.encode(b'{"sub": "a", "exp": true}', "secret" * 8, "HS256"),
        jwt.api_jws.encode(b"[]", "secret" * 8, "HS256"),
    ],
)
def test_an_unusable_token_is_refused(text: str) -> None:
    with pytest.raises(GrantRefused, match="grants") as refused:
        read_token(text)
    assert not text or text not in str(refused.value)


def refreshed_after_s(lifetime_s: int, share: float = 0.0, issued_before_s: int = 0) -> float:
    token = Token("t", NOW_MS + 1000 * (lifetime_s - issued_before_s), NOW_MS - 1000 * issued_before_s)
    return (refresh_at_ms(token, NOW_MS, RefreshRules(), share) - NOW_MS) / 1000


def test_a_token_is_refreshed_at_the_same_time_as_in_kafka() -> None:
    assert refreshed_after_s(3600) == 2880  # 80 % of its lifetime
    assert refreshed_after_s(3600, share=1.0) == 3060  # at most 5 % later
    assert refreshed_after_s(600) == 300  # the buffer before it expires
    assert refreshed_after_s(3600, issued_before_s=2400) == 480  # of a lifetime that began earlier
    assert refreshed_after_s(3600, issued_before_s=3000) == 60  # not before the minimal period
    assert refreshed_after_s(359) == 287.2  # too short for both: 80 % of the rest
    assert refreshed_after_s(0) == 10  # it has expired


def test_the_backoff_between_attempts_increases_up_to_a_limit() -> None:
    waits = [retry_wait_ms(GRANT, failures, permanent=False) for failures in (1, 2, 3, 8, 100_000)]
    assert waits == [100, 200, 400, 10_000, 10_000]
    assert retry_wait_ms(GRANT, 1, permanent=True) == 10_000
    never = TokenGrant(url="", client_id="a", client_secret="b", retry_backoff_ms=0, retry_backoff_max_ms=0)
    assert retry_wait_ms(never, 1, permanent=False) == 100


def test_no_repr_contains_the_secret_or_the_token() -> None:
    assert GRANT.client_secret not in repr(GRANT)
    assert repr(Token("a.b.c", 7)) == "<Token until 7 ms>"
