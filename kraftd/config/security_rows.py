"""The rows of TLS, SASL and the authorizer; `security.py` puts them together."""

from __future__ import annotations

from kraftd.config.rows import flag, integer, own, string, strings


class AccessKeys:
    """Access to this node; for all listeners"""

    authorizer_class_name = string(
        "authorizer.class.name",
        "Kafka's StandardAuthorizer by its class name, or `kraftd.authorizer:<name>` of a Python entry "
        "point; without one everything is allowed",
    )
    super_users = string(
        "super.users",
        "principals that may do everything, separated by semicolons",
        **own("super.users", "string", ""),
    )
    allow_everyone_if_no_acl_found = string(
        "allow.everyone.if.no.acl.found",
        "whether resources without an ACL are open to all",
        **own("allow.everyone.if.no.acl.found", "string", "false"),
    )
    connection_failed_authentication_delay_ms = integer(
        "connection.failed.authentication.delay.ms", "the delay before a failed login is answered"
    )
    audit_allowances = flag(
        "kraftd.audit.allowances",
        "whether the audit also has allowed requests, not only denials",
        **own("kraftd.audit.allowances", "boolean", "false"),
    )
    authentication_timeout_ms = integer(
        "kraftd.authentication.timeout.ms",
        "how long a connection may take to log in",
        **own("kraftd.authentication.timeout.ms", "int", "15000", ("range", 1, None)),
    )
    ssl_handshake_timeout_ms = integer(
        "kraftd.ssl.handshake.timeout.ms",
        "how long a TLS handshake may take",
        **own("kraftd.ssl.handshake.timeout.ms", "int", "10000", ("range", 1, None)),
    )
    config_providers = strings(
        "config.providers",
        "providers of `${provider:path:key}`; `config.providers.<name>.class` is Kafka's File-, Directory- "
        "or EnvVarConfigProvider",
    )


class SecurityKeys:
    """Security; each key also as `listener.name.<listener>.<key>`, for one listener"""

    sasl_enabled_mechanisms = strings(
        "sasl.enabled.mechanisms",
        "the mechanisms that a SASL listener offers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
    )
    sasl_mechanism_controller_protocol = string(
        "sasl.mechanism.controller.protocol", "the mechanism by which this node logs in at other controllers"
    )
    sasl_mechanism_inter_broker_protocol = string(
        "sasl.mechanism.inter.broker.protocol",
        "the mechanism by which this node logs in at brokers, for its clients",
    )
    sasl_jaas_config = string(
        "sasl.jaas.config", "the login module of a mechanism, as `listener.name.<listener>.<mechanism>.<key>`"
    )
    sasl_server_max_receive_size = integer(
        "sasl.server.max.receive.size", "the largest frame before authentication; never more than 65536"
    )
    connections_max_reauth_ms = integer("connections.max.reauth.ms", "how long a login lasts; 0 is forever")
    sasl_oauthbearer_jwks_endpoint_url = string(
        "sasl.oauthbearer.jwks.endpoint.url",
        "where the keys that verify tokens are read: `file:` or `https:`",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = integer(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", "how often they are read again"
    )
    sasl_oauthbearer_expected_issuer = string(
        "sasl.oauthbearer.expected.issuer", "the issuer that tokens must name"
    )
    sasl_oauthbearer_expected_audience = strings(
        "sasl.oauthbearer.expected.audience", "the audiences of which tokens must name one"
    )
    sasl_oauthbearer_clock_skew_seconds = integer(
        "sasl.oauthbearer.clock.skew.seconds", "the allowed difference between clocks"
    )
    sasl_oauthbearer_sub_claim_name = string(
        "sasl.oauthbearer.sub.claim.name", "the claim that is the principal's name"
    )
    sasl_oauthbearer_scope_claim_name = string(
        "sasl.oauthbearer.scope.claim.name", "the claim that holds the scopes"
    )
    sasl_server_callback_handler_class = string(
        "sasl.server.callback.handler.class", "only checked: Kafka's own for OAUTHBEARER and PLAIN"
    )
    sasl_login_callback_handler_class = string(
        "sasl.login.callback.handler.class", "only checked: Kafka's own for OAUTHBEARER"
    )
    principal_builder_class = string("principal.builder.class", "only checked: Kafka's own")
    ssl_keystore_type = string("ssl.keystore.type", "PEM, PKCS12 or JKS")
    ssl_keystore_location = string(
        "ssl.keystore.location", "the node's key and certificates, read again when the file changes"
    )
    ssl_keystore_password = string("ssl.keystore.password", "the password of that file")
    ssl_key_password = string("ssl.key.password", "the password of the key in it")
    ssl_keystore_key = string("ssl.keystore.key", "the key in PEM, in place of a file")
    ssl_keystore_certificate_chain = string(
        "ssl.keystore.certificate.chain", "its certificates in PEM, in place of a file"
    )
    ssl_truststore_type = string("ssl.truststore.type", "PEM, PKCS12 or JKS")
    ssl_truststore_location = string("ssl.truststore.location", "the authorities that are trusted")
    ssl_truststore_password = string("ssl.truststore.password", "the password of that file")
    ssl_truststore_certificates = string(
        "ssl.truststore.certificates", "the authorities in PEM, in place of a file"
    )
    ssl_client_auth = string(
        "ssl.client.auth", "whether clients need a certificate: required, requested, none"
    )
    ssl_enabled_protocols = strings("ssl.enabled.protocols", "TLSv1.2 and TLSv1.3, or one of them")
    ssl_cipher_suites = strings(
        "ssl.cipher.suites", "Java's names of cipher suites; empty is OpenSSL's choice"
    )
    ssl_endpoint_identification_algorithm = string(
        "ssl.endpoint.identification.algorithm", "https checks the names of servers; empty does not"
    )
    ssl_principal_mapping_rules = string(
        "ssl.principal.mapping.rules", "rules that map the name in a client's certificate to a principal"
    )
