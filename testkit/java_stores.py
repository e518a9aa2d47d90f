"""Key stores and trust stores by the JDK's keytool, of type JKS or PKCS12."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from testkit.certificates import Authority, Issued
from testkit.java import find_java

STORE_PASSWORD = "of-the-store"
KEY_PASSWORD = "of-the-key"  # of a key in a JKS file; a PKCS12 file has one password
_QUICK = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-J-Xshare:auto")


def store_keys(home: Path, authority: Authority, subject: str, kind: str, prefix: str = "") -> dict[str, str]:
    """The store settings of a node whose certificate has that subject, with stores in its home."""
    home.mkdir(parents=True, exist_ok=True)
    settings = {
        f"{prefix}ssl.keystore.type": kind,
        f"{prefix}ssl.keystore.location": str(write_key_store(home, authority.issue(subject), kind)),
        f"{prefix}ssl.keystore.password": STORE_PASSWORD,
        f"{prefix}ssl.truststore.type": kind,
        f"{prefix}ssl.truststore.location": str(write_trust_store(home, authority, kind)),
        f"{prefix}ssl.truststore.password": STORE_PASSWORD,
    }
    if kind == "JKS":
        settings[f"{prefix}ssl.key.password"] = KEY_PASSWORD
    return settings


def write_key_store(home: Path, issued: Issued, kind: str) -> Path:
    """Write the store of a key and its chain, in place of an existing one."""
    path = home / f"node.{kind.lower()}"
    with tempfile.TemporaryDirectory(dir=home) as folder:
        source, store = Path(folder, "source.p12"), Path(folder, "made")
        issued.write_pkcs12(source, STORE_PASSWORD)
        own = ("-alias", "kraftd", "-destkeypass", KEY_PASSWORD) if kind == "JKS" else ()
        keytool(
            *("-importkeystore", "-noprompt", "-srckeystore", source, "-srcstorepass", STORE_PASSWORD),
            *("-destkeystore", store, "-deststoretype", kind, "-deststorepass", STORE_PASSWORD, *own),
        )
        store.replace(path)
    return path


def write_trust_store(home: Path, authority: Authority, kind: str) -> Path:
    """Write the store that contains only this authority."""
    path = home / f"trust.{kind.lower()}"
    keytool(
        *("-importcert", "-noprompt", "-alias", "ca", "-file", authority.write_pem(home / "ca.pem")),
        *("-keystore", path, "-storetype", kind, "-storepass", STORE_PASSWORD),
    )
    return path


def keytool(*arguments: object) -> None:
    """Run keytool of the java in use. Raises JavaMissing, or CalledProcessError with its output."""
    command = [find_java().with_name("keytool"), *_QUICK, *arguments]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
