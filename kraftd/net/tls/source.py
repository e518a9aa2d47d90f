"""The contexts in use, renewed when a store's file or setting changes; unusable new ones are refused."""

from __future__ import annotations

import datetime
import os
import ssl

from kraftd.net.tls.contexts import TlsContexts
from kraftd.security.tls_settings import TlsSettings

# A file has changed if this differs: modification time in ns, size in bytes, inode.
Stamp = tuple[int, int, int]


class Renewal:
    """The result of a poll of the stores: `problem` says why new ones were refused."""

    __slots__ = ("contexts", "problem")

    def __init__(self, contexts: TlsContexts, problem: str | None = None) -> None:
        self.contexts = contexts
        self.problem = problem

    def __repr__(self) -> str:
        return f"<Renewal {'refused: ' + self.problem if self.problem else repr(self.contexts)}>"


class TlsSource:
    """Returns the current contexts for each new connection. Raises ValueError if the first cannot be made."""

    def __init__(self, settings: TlsSettings) -> None:
        self.contexts = TlsContexts(settings)
        self._stamps = stamps(settings)

    @property
    def server(self) -> ssl.SSLContext:
        """For a connection that a listener accepts."""
        context = self.contexts.server
        assert context is not None
        return context

    @property
    def client(self) -> ssl.SSLContext:
        """For a connection that this node opens."""
        return self.contexts.client

    def poll(self) -> Renewal | None:
        """Read the stores again if a file has changed since the last poll; None if none has."""
        found = stamps(self.contexts.settings)
        if found == self._stamps:
            return None
        self._stamps = found
        return self.change(self.contexts.settings)

    def change(self, settings: TlsSettings) -> Renewal:
        """Use other settings, or reload the same; the contexts in use stay if the new ones do not work."""
        try:
            made = TlsContexts(settings)
        except ValueError as error:
            return Renewal(self.contexts, str(error))
        problem = made.refusal(datetime.datetime.now(datetime.UTC))
        if problem is None and self.contexts.trusts_itself() and not made.trusts_itself():
            problem = "its certificate is not trusted by its own trust store, as the one in use is"
        if problem is not None:
            return Renewal(self.contexts, f"{settings.keystore.location or 'ssl.keystore.key'}: {problem}")
        self.contexts = made
        self._stamps = stamps(settings)
        return Renewal(made)

    def fault_of(self, settings: TlsSettings, *, trusts_itself: bool) -> str | None:
        """Why these settings, or changed files, cannot be used; None if they can. Changes nothing.

        `trusts_itself`: nodes with the stores must go on accepting each other, if they do so now.
        """
        if settings == self.contexts.settings and stamps(settings) == self._stamps:
            return None
        try:
            made = TlsContexts(settings)
        except ValueError as error:
            return str(error)
        if made.server is None and self.contexts.server is not None:
            return "ssl.keystore.location: a listener that has a key store needs one"
        fault = made.refusal(datetime.datetime.now(datetime.UTC))
        if fault is None and trusts_itself and self.contexts.trusts_itself() and not made.trusts_itself():
            return "ssl.truststore.location: it does not trust the certificate of this listener"
        return None if fault is None else f"ssl.keystore.location: {fault}"

    def __repr__(self) -> str:
        return f"<TlsSource {self.contexts!r}>"


def stamps(settings: TlsSettings) -> tuple[Stamp | None, ...]:
    """The stamps of the files that the settings name, None for one that is not there."""
    found: list[Stamp | None] = []
    for location in (settings.keystore.location, settings.truststore.location):
        if location is not None:
            try:
                status = os.stat(location)
            except OSError:
                found.append(None)
            else:
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
