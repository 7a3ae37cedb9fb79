"""What was applied to a cluster, kept in its store: a series of revisions, each created once and never changed.

An apply first creates the next revision, with the desired resources, and at the end another one, with those in force.
Of two concurrent applies, one creates it and the other fails. There is no lock, so nothing has to be unlocked after a
crash: the revision of a dead process is followed by the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from omnigraph.cluster.resources import ClusterMoved, ManagedResource, digest_of
from omnigraph.errors import Corrupt, ObjectExists, ObjectNotFound
from omnigraph.storage.objects import locate, numbered, open_objects

FOLDER = "__cluster"
REVISIONS = f"{FOLDER}/revisions"
TEXTS = f"{FOLDER}/texts"

State = Literal["applying", "applied", "incomplete"]


class Revision(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the ledger."""

    number: int
    state: State
    time: int  # microseconds since 1970
    config: str  # the digest of the desired resources
    resources: dict[str, ManagedResource]  # in force
    wanted: dict[str, ManagedResource] = {}  # while it is being applied
    actor: str | None = None
    changes: tuple[str, ...] = ()  # one line each
    errors: dict[str, str] = {}  # by address


class Ledger:
    """The revisions of the cluster at an address."""

    def __init__(self, root: str) -> None:
        self.root = locate(root).uri
        self._objects = open_objects(locate(root))

    def newest(self) -> Revision | None:
        number = self._objects.newest(REVISIONS)
        return None if number is None else self.at(number)

    def number(self, at_least: int = -1) -> int:
        """The number of the newest revision, from -1, with one request if nothing is new."""
        found = self._objects.newest(REVISIONS, at_least)
        return -1 if found is None else found

    def at(self, number: int) -> Revision:
        key = numbered(REVISIONS, number)
        data = self._objects.get(key)
        try:
            return msgspec.json.decode(data, type=Revision)
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{key} is damaged: {error}", details={"object": key}) from error

    def history(self) -> Iterator[Revision]:
        """The revisions, newest first."""
        for number in range(self.number(), -1, -1):
            yield self.at(number)

    def add(self, revision: Revision) -> None:
        """Add the next revision; `ClusterMoved` if another process added one."""
        try:
            self._objects.put_new(
                numbered(REVISIONS, revision.number), msgspec.json.encode(revision)
            )
        except ObjectExists:
            raise ClusterMoved(
                f"revision {revision.number} was added by another process in the meantime"
            ) from None

    def keep(self, text: str) -> None:
        """Keep a text under its digest."""
        try:
            self._objects.put_new(f"{TEXTS}/{digest_of(text)}", text.encode())
        except ObjectExists:
            return

    def text(self, digest: str) -> str:
        """A kept text, verified against its name."""
        key = f"{TEXTS}/{digest}"
        try:
            data = self._objects.get(key)
        except ObjectNotFound as error:
            raise Corrupt(f"{key} is missing", details={"object": key}) from error
        if digest_of(data) != digest:
            raise Corrupt(f"{key} does not match its name", details={"object": key})
        return data.decode()
