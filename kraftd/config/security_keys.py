"""The security keys of one listener, or of one client, looked up as Kafka does: the nearest name wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kraftd.config.findings import Findings
from kraftd.config.settings import Setting
from kraftd.configdef.definition import InvalidValue, broker_def
from kraftd.security.tls_settings import TLS_1_3, StoreSettings, TlsSettings

Settings = Mapping[str, Setting]


class Keys:
    """The keys of one listener or client; their faults are noted in `findings`."""

    def __init__(self, settings: Settings, findings: Findings, listener: str = "") -> None:
        self._settings = settings
        self._findings = findings
        self._prefixes = (f"listener.name.{listener.lower()}.", "") if listener else ("",)
        self._of_listener = bool(listener)

    def found(self, key: str, mechanism: str = "") -> str | None:
        """The full name under which a key is set; None when it is not."""
        inner = [f"{mechanism.lower()}."] if mechanism else []
        if not (self._of_listener and key == "sasl.jaas.config"):  # there, a mechanism has its own or none
            inner.append("")
        names = [f"{prefix}{part}{key}" for prefix in self._prefixes for part in inner]
        return next((name for name in names if name in self._settings), None)

    def value(self, key: str, mechanism: str = "") -> Any:
        """The typed value of a key; its default if it is not set or malformed."""
        definition = broker_def()[key]
        name = self.found(key, mechanism)
        if name is not None:
            try:
                return definition.parse(self._settings[name].text)
            except InvalidValue as error:
                self._findings.refuse(name, error.wanted)
        return broker_def().defaults()[key]

    def text(self, key: str, mechanism: str = "") -> str | None:
        """The value of a text; None if it is not set or empty."""
        value = self.value(key, mechanism)
        return str(value) if value not in (None, "") else None

    def password(self, key: str) -> str | None:
        """The value of a password; None if it is not set. Kafka takes an empty one for a password as well."""
        value = self.value(key)
        return None if value is None else str(value)

    def raw(self, key: str, mechanism: str = "") -> str:
        """The text of a key that Kafka's definition does not have, "" where it is not set."""
        name = self.found(key, mechanism)
        return self._settings[name].text if name is not None else ""

    def refuse(self, key: str, why: str, mechanism: str = "") -> None:
        """Note a problem with a key."""
        self._findings.refuse(self.found(key, mechanism) or f"{self._prefixes[0]}{key}", why)

    def warn(self, key: str, problem: str) -> None:
        """Note a key whose value does not have its effect in Kafka."""
        text = f"{self._findings.shown(self.found(key) or key)}: {problem}"
        if text not in self._findings.warnings:  # the keys of a listener are those of its clients, too
            self._findings.warnings.append(text)

    def tried(self, key: str, make: Callable[[], Any], mechanism: str = "") -> Any:
        """The result of `make`; if it raises ValueError, None, with the problem noted."""
        try:
            return make()
        except ValueError as error:
            self.refuse(key, str(error), mechanism)
            return None


def plain_text(settings: Settings, key: str) -> str:
    """The text of a key that Kafka's definition does not have."""
    return settings[key].text if key in settings else ""


def tls_settings(keys: Keys) -> TlsSettings:
    """The ``ssl.*`` keys of a listener or a client."""
    if keys.text("ssl.engine.factory.class") is not None:
        keys.refuse("ssl.engine.factory.class", "kraftd runs no Java classes; remove the key")
    suites = tuple(keys.value("ssl.cipher.suites") or ())
    if 0 < len(TLS_1_3.intersection(suites)) < len(TLS_1_3):
        keys.warn("ssl.cipher.suites", "those of TLS 1.3 cannot be chosen one by one: all three are offered")
    return TlsSettings(
        keystore=StoreSettings(
            type=_store_type(keys, "ssl.keystore.type"),
            location=keys.text("ssl.keystore.location"),
            password=keys.password("ssl.keystore.password"),
            key_password=keys.password("ssl.key.password"),
            key=keys.text("ssl.keystore.key"),
            certificates=keys.text("ssl.keystore.certificate.chain"),
        ),
        truststore=StoreSettings(
            type=_store_type(keys, "ssl.truststore.type"),
            location=keys.text("ssl.truststore.location"),
            password=keys.password("ssl.truststore.password"),
            certificates=keys.text("ssl.truststore.certificates"),
        ),
        client_auth=str(keys.value("ssl.client.auth")),
        enabled_protocols=tuple(keys.value("ssl.enabled.protocols")),
        cipher_suites=suites,
        endpoint_identification=str(keys.value("ssl.endpoint.identification.algorithm") or "").strip(),
    )


def _store_type(keys: Keys, key: str) -> str:
    return str(keys.value(key)).upper()
