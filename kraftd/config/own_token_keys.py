"""The rows of a node's own token (OAUTHBEARER); `own_token.py` puts them together."""

from __future__ import annotations

from kraftd.config.rows import flag, fraction, integer, own, string


class OwnTokenKeys:
    """This node's own token, for its logins by OAUTHBEARER; a listener may have its own keys here, too"""

    sasl_oauthbearer_token_endpoint_url = string(
        "sasl.oauthbearer.token.endpoint.url",
        "the token endpoint, `https:` (or `http:` of this host), or the file of a token, `file:`",
    )
    sasl_oauthbearer_client_id = string(
        "sasl.oauthbearer.client.credentials.client.id",
        "the client id with which a token is requested; else the option `clientId` of `sasl.jaas.config`",
    )
    sasl_oauthbearer_client_secret = string(
        "sasl.oauthbearer.client.credentials.client.secret", "its secret; else the option `clientSecret`"
    )
    sasl_oauthbearer_scope = string("sasl.oauthbearer.scope", "the requested scope; else the option `scope`")
    sasl_oauthbearer_header_urlencode = flag(
        "sasl.oauthbearer.header.urlencode",
        "whether id, secret and scope are URL-encoded in the request (RFC 6749, 2.3.1)",
        **own("sasl.oauthbearer.header.urlencode", "boolean", "false"),
    )
    sasl_oauthbearer_jwt_retriever_class = string(
        "sasl.oauthbearer.jwt.retriever.class",
        "only checked: Kafka's DefaultJwtRetriever, FileJwtRetriever or ClientCredentialsJwtRetriever",
    )
    sasl_oauthbearer_assertion_file = string(
        "sasl.oauthbearer.assertion.file", "refused with a token endpoint: kraftd sends no assertion"
    )
    sasl_oauthbearer_assertion_claim_iss = string(
        "sasl.oauthbearer.assertion.claim.iss", "refused with a token endpoint: kraftd sends no assertion"
    )
    sasl_login_connect_timeout_ms = string(
        "sasl.login.connect.timeout.ms",
        "how long a connection to the token endpoint may take; 10 s unless set",
    )
    sasl_login_read_timeout_ms = string(
        "sasl.login.read.timeout.ms", "how long it may take to answer; 10 s unless set"
    )
    sasl_login_retry_backoff_ms = integer(
        "sasl.login.retry.backoff.ms",
        "the first pause after a failed attempt; each next is twice as long",
    )
    sasl_login_retry_backoff_max_ms = integer(
        "sasl.login.retry.backoff.max.ms",
        "the longest pause; a command gives up after that time, the daemon never does",
    )
    sasl_login_refresh_window_factor = fraction(
        "sasl.login.refresh.window.factor", "the share of a token's lifetime after which it is replaced"
    )
    sasl_login_refresh_window_jitter = fraction(
        "sasl.login.refresh.window.jitter", "the largest random addition to that share"
    )
    sasl_login_refresh_min_period_seconds = integer(
        "sasl.login.refresh.min.period.seconds", "the least time before a token is replaced"
    )
    sasl_login_refresh_buffer_seconds = integer(
        "sasl.login.refresh.buffer.seconds",
        "the latest replacement before a token expires; a shorter lifetime ignores this and the period",
    )
