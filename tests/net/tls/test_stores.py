"""Key stores and trust stores of all formats, and the contexts made from them."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from shutil import which

import pytest
from msgspec import structs
from msgspec.structs import replace

from kraftd.net.tls.cipher_suites import openssl_name
from kraftd.net.tls.contexts import TlsContexts
from kraftd.net.tls.jks import JavaKeyStore
from kraftd.net.tls.source import TlsSource
from kraftd.net.tls.stores import load_identity, load_trusted
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority, Issued
from testkit.java_stores import keytool

AUTHORITY = Authority()
NODE = AUTHORITY.issue("CN=node,OU=Lab")
PASSWORD = "changeit"


def pem(tmp_path: Path, issued: Issued = NODE, authority: Authority = AUTHORITY) -> TlsSettings:
    return TlsSettings(
        keystore=StoreSettings(type="PEM", location=str(issued.write_pem(tmp_path / "key.pem"))),
        truststore=StoreSettings(type="PEM", location=str(authority.write_pem(tmp_path / "trust.pem"))),
        client_auth="required",
    )


def test_pem_in_files_and_inline_gives_the_same_contexts(tmp_path: Path) -> None:
    inline = TlsSettings(
        keystore=StoreSettings(
            type="PEM",
            key=NODE.encrypted_key_pem("pw"),
            certificates=NODE.chain_pem,
            key_password="pw",
        ),
        truststore=StoreSettings(type="PEM", certificates=AUTHORITY.pem),
        client_auth="required",
    )
    for settings in (inline, pem(tmp_path)):
        contexts = TlsContexts(settings)
        assert contexts.identity is not None
        assert contexts.identity.certificates[0] == NODE.certificate
        assert contexts.trusts_itself()


@pytest.mark.skipif(which("keytool") is None, reason="no keytool")
def test_pkcs12_and_jks_written_by_java_are_read(tmp_path: Path) -> None:
    p12 = NODE.write_pkcs12(tmp_path / "node.p12", PASSWORD)
    jks, trust = tmp_path / "node.jks", tmp_path / "trust.jks"
    keytool(
        *("-importkeystore", "-srckeystore", p12, "-srcstorepass", PASSWORD, "-destkeystore", jks),
        *("-deststoretype", "JKS", "-deststorepass", PASSWORD, "-noprompt"),
    )
    authority = AUTHORITY.write_pem(tmp_path / "ca.pem")
    for store, kind in ((trust, "JKS"), (tmp_path / "trust.p12", "PKCS12")):
        keytool(
            *("-importcert", "-file", authority, "-keystore", store, "-storetype", kind),
            *("-storepass", PASSWORD, "-noprompt", "-alias", "ca"),
        )
        trusted = load_trusted(StoreSettings(type=kind, location=str(store), password=PASSWORD))
        assert trusted is not None
        assert len(trusted) == 1
    for path, kind in ((p12, "PKCS12"), (jks, "JKS"), (p12, "JKS")):
        identity = load_identity(StoreSettings(type=kind, location=str(path), password=PASSWORD))
        assert identity is not None
        assert identity.certificates[0] == NODE.certificate
        with pytest.raises(ValueError, match=r"ssl\.keystore\.password") as refused:
            load_identity(StoreSettings(type=kind, location=str(path), password="wrong-one"))
        assert "wrong-one" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (StoreSettings(type="PEM", location="/absent.pem"), "/absent.pem: cannot be read"),
        (StoreSettings(type="JKS", location="/absent.jks"), "ssl.keystore.password"),
        (StoreSettings(type="BCFKS", location="/x", password="x"), "one of PEM, PKCS12, JKS"),
        (StoreSettings(type="PEM", key="x"), "ssl.keystore.certificate.chain is missing"),
        (StoreSettings(type="PEM", key="x", certificates="y"), "no private key in PEM"),
        (StoreSettings(type="PEM", key=NODE.key_pem, certificates="y"), "no certificate in PEM"),
        (
            StoreSettings(type="PEM", key=NODE.key_pem, certificates=AUTHORITY.pem),
            "not that of the private key",
        ),
        (
            StoreSettings(
                type="PEM",
                key=NODE.encrypted_key_pem("a"),
                certificates=NODE.chain_pem,
                key_password="b",
            ),
            "ssl.key.password",
        ),
        (
            StoreSettings(type="PEM", key=NODE.key_pem, certificates=NODE.chain_pem, password=""),
            "PEM has none",
        ),
        (
            StoreSettings(type="PEM", key=NODE.key_pem, certificates=NODE.chain_pem, key_password=""),
            "not encrypted; remove ssl.key.password",
        ),
    ],
)
def test_a_key_store_that_cannot_be_used_is_refused_by_its_key(settings: StoreSettings, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load_identity(settings)


def test_pkcs12_with_another_password_of_its_key_is_refused_and_so_is_an_empty_one(
    tmp_path: Path,
) -> None:
    store = str(NODE.write_pkcs12(tmp_path / "node.p12", PASSWORD))
    settings = StoreSettings(type="PKCS12", location=store, password=PASSWORD, key_password=PASSWORD)
    assert load_identity(settings) is not None
    for other in ("", "another"):
        with pytest.raises(ValueError, match=r"ssl\.key\.password does not open its key"):
            load_identity(replace(settings, key_password=other))
    with pytest.raises(ValueError, match="no store that has a password"):
        load_trusted(
            StoreSettings(type="PEM", location=str(AUTHORITY.write_pem(tmp_path / "ca")), password="")
        )


def test_damaged_jks_files_are_refused(tmp_path: Path) -> None:
    for data in (b"", b"\xfe\xed\xfe\xed", b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\x09" + bytes(40), bytes(100)):
        with pytest.raises(ValueError, match=r"key store|ends too early|kind"):
            JavaKeyStore(data, None)


def test_java_names_of_cipher_suites_become_openssls() -> None:
    for java, name in (
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", "DHE-RSA-AES128-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
    ):
        assert openssl_name(java) == name
    with pytest.raises(ValueError, match="no cipher suite"):
        openssl_name("SSL_RSA_WITH_RC4_128_MD5")


def test_protocols_and_suites_restrict_the_offer(tmp_path: Path) -> None:
    base = pem(tmp_path)

    def with_keys(**keys: tuple[str, ...]) -> TlsSettings:
        return TlsSettings(keystore=base.keystore, truststore=base.truststore, **keys)  # type: ignore[arg-type]

    server = TlsContexts(with_keys(enabled_protocols=("TLSv1.2",))).server
    assert server is not None
    assert server.maximum_version.name == "TLSv1_2"
    only_older = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)
    server = TlsContexts(with_keys(cipher_suites=only_older)).server
    assert server is not None
    assert server.maximum_version.name == "TLSv1_2"
    for wrong in (
        {"enabled_protocols": ("TLSv1",)},
        {"enabled_protocols": ("TLSv1.3",), "cipher_suites": only_older},
    ):
        with pytest.raises(ValueError, match=r"ssl\.enabled\.protocols"):
            TlsContexts(with_keys(**wrong))


def test_a_new_certificate_is_loaded_when_its_file_changes(tmp_path: Path) -> None:
    settings = pem(tmp_path)
    source = TlsSource(settings)
    assert source.poll() is None
    before = source.contexts
    AUTHORITY.issue("CN=node,OU=New").write_pem(tmp_path / "key.pem")
    renewal = source.poll()
    assert renewal is not None
    assert renewal.problem is None
    assert source.contexts is not before


@pytest.mark.parametrize("what", ["gone", "garbage", "expired", "foreign", "half"])
def test_an_unusable_new_certificate_is_not_loaded(tmp_path: Path, what: str) -> None:
    source = TlsSource(pem(tmp_path))
    before, path = source.contexts, tmp_path / "key.pem"
    if what == "gone":
        path.unlink()
    elif what == "garbage":
        path.write_text("garbage")
    elif what == "expired":
        AUTHORITY.issue("CN=node", days=-1).write_pem(path)
    elif what == "foreign":
        Authority("CN=Another").issue("CN=node").write_pem(path)
    else:
        path.write_text(path.read_text()[:300])
    renewal = source.poll()
    assert renewal is not None
    assert renewal.problem is not None
    assert str(path) in renewal.problem
    assert source.contexts is before
    assert source.poll() is None  # it is reported once


def test_stores_that_cannot_be_used_are_reported_before_they_are_set(tmp_path: Path) -> None:
    source = TlsSource(pem(tmp_path))
    for name in ("good", "foreign"):
        (tmp_path / name).mkdir()
    good = pem(tmp_path / "good", AUTHORITY.issue("CN=node"))
    foreign = pem(tmp_path / "foreign", Authority("CN=Another").issue("CN=node"))
    gone = structs.replace(good, keystore=StoreSettings(type="PEM", location=str(tmp_path / "gone")))
    for settings, trusts_itself, why in (
        (source.contexts.settings, True, None),
        (good, True, None),
        (gone, False, "gone"),
        (structs.replace(good, keystore=StoreSettings()), False, "needs one"),
        (foreign, True, "does not trust"),
        (foreign, False, None),
    ):
        fault = source.fault_of(settings, trusts_itself=trusts_itself)
        assert (fault is None) if why is None else (fault is not None and why in fault), (settings, fault)
    AUTHORITY.issue("CN=node", days=-1).write_pem(tmp_path / "key.pem")
    assert "expired" in str(source.fault_of(source.contexts.settings, trusts_itself=False))


def test_no_repr_shows_a_key_or_a_password(tmp_path: Path) -> None:
    key = NODE.encrypted_key_pem("pass")
    settings = StoreSettings(type="PEM", key=key, certificates=NODE.chain_pem, key_password="pass")
    assert "PRIVATE" not in repr(settings) + repr(load_identity(settings))
    assert "pass" not in repr(TlsSettings(keystore=settings))


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_no_connection_resumes_the_session_of_another(tmp_path: Path, protocol: str) -> None:
    contexts = TlsContexts(structs.replace(pem(tmp_path), enabled_protocols=(protocol,)))
    assert contexts.server is not None
    first = shaken(contexts.client, contexts.server)
    again = shaken(contexts.client, contexts.server, first.session)
    assert first.session is not None and not again.session_reused


def test_a_requested_certificate_may_be_missing_but_not_untrusted(tmp_path: Path) -> None:
    server = TlsContexts(structs.replace(pem(tmp_path), client_auth="requested")).server
    trusting = StoreSettings(type="PEM", certificates=AUTHORITY.pem)
    foreign = Authority("CN=Foreign").issue("CN=node")
    shown = StoreSettings(type="PEM", key=foreign.key_pem, certificates=foreign.chain_pem)
    assert server is not None
    shaken(TlsContexts(TlsSettings(truststore=trusting)).client, server)
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(TlsContexts(TlsSettings(keystore=shown, truststore=trusting)).client, server)


def shaken(
    client: ssl.SSLContext, server: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> ssl.SSLObject:
    """The client's end of a connection after the handshake and one read byte, hence with session tickets."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_end = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1", session=session)
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    for step in (
        client_end.do_handshake,
        server_end.do_handshake,
        client_end.do_handshake,
        server_end.do_handshake,
    ):
        with suppress(ssl.SSLWantReadError):
            step()
    server_end.write(b"x")
    assert client_end.read(1) == b"x"
    return client_end
