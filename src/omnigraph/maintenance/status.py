"""The stored state of maintenance: the retention policy, which process maintains, and what it did.

Several processes may serve a graph, and one maintains it: a process that finds the role free claims it, and checks a
moment later whether another did too. Maintenance is safe when run concurrently, so two processes that both believe it
is their turn waste work and nothing else.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from omnigraph.core import layout
from omnigraph.core.records import (
    MaintenanceAction,
    MaintenanceStatus,
    RetentionPolicy,
    encode,
    object_at,
)
from omnigraph.core.repository import Repository
from omnigraph.errors import OmnigraphError, OptionInvalid

LEASE_SECONDS = 120.0
RENEW_SECONDS = LEASE_SECONDS / 3  # while an action runs
RENEWALS_MAX = 360  # of one action, four hours: a process that hangs in it loses the role
SETTLE_SECONDS = 0.5  # between claiming the role and trusting the claim
ACTIONS_KEPT_MAX = 200
MARKED = {
    "cleanup": "cleaned",
    "expire": "expired",
}  # actions whose last time is stored, and in which field

log = logging.getLogger("omnigraph.maintenance.status")


# --- the policy --------------------------------------------------------------------------------------------------


def retention(repo: Repository) -> RetentionPolicy | None:
    """How much history maintenance keeps; None: all of it."""
    return object_at(repo.objects, RetentionPolicy, layout.RETENTION)


def checked(policy: RetentionPolicy) -> RetentionPolicy:
    """The policy, if its values are valid."""
    if policy.keep < 1:
        raise OptionInvalid(f"keep must be at least 1, got {policy.keep}")
    if policy.days is not None and not 0 <= policy.days <= 36_500:
        raise OptionInvalid(f"days must be from 0 to 36500, got {policy.days}")
    if not 0.001 <= policy.every_hours <= 8_760:
        raise OptionInvalid(f"every_hours must be from 0.001 to 8760, got {policy.every_hours}")
    return policy


def set_retention(repo: Repository, policy: RetentionPolicy | None) -> None:
    """Set the policy; None: nothing is removed automatically."""
    if policy is None:
        repo.objects.delete([layout.RETENTION])
    else:
        repo.objects.put(layout.RETENTION, encode(policy))


# --- who maintains -----------------------------------------------------------------------------------------------


def status(repo: Repository) -> MaintenanceStatus:
    """Which process maintains the graph, and what was done last."""
    found = object_at(repo.objects, MaintenanceStatus, layout.MAINTENANCE)
    return MaintenanceStatus() if found is None else found


class Office:
    """The role of the process that maintains a graph."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self.name = f"{socket.gethostname()}:{os.getpid()}:{repo.clock.fresh_id()[:6]}"
        self.held = False

    def take(self) -> bool:
        """Whether this process maintains, for now: takes the role if it is free, and keeps it if it was ours."""
        now = self._repo.clock.now()
        there = status(self._repo)
        if there.holder != self.name and there.until > now:
            self.held = False
            return False
        self._claim(there)
        if there.holder != self.name:
            self._repo.clock.pause(SETTLE_SECONDS)
            self.held = status(self._repo).holder == self.name
        else:
            self.held = True
        return self.held

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the role, if it is ours, while an action runs that may take longer than the role is given for."""
        if not self.held:
            yield
            return
        done = threading.Event()
        thread = threading.Thread(target=self._renew, args=(done,), name="omnigraph-role")
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _renew(self, done: threading.Event) -> None:
        for _ in range(RENEWALS_MAX):
            if done.wait(RENEW_SECONDS):
                return
            try:
                there = status(self._repo)
                if there.holder != self.name:
                    return
                self._claim(there)
            except OmnigraphError as error:
                log.warning("the role of the maintaining process was not renewed: %s", error)

    def report(self, kind: str, action: MaintenanceAction | None) -> None:
        """Record what was done; without an action, that there was nothing to do."""
        there = status(self._repo)
        times = {MARKED[kind]: self._repo.clock.now()} if kind in MARKED else {}
        actions = there.actions if action is None else (action, *there.actions)[:ACTIONS_KEPT_MAX]
        there = msgspec.structs.replace(there, actions=actions, **times)
        if self.held and there.holder == self.name:
            self._claim(there)
        else:
            self._put(there)

    def leave(self) -> None:
        """Release the role, so that another process need not wait."""
        there = status(self._repo)
        if self.held and there.holder == self.name:
            self._put(msgspec.structs.replace(there, holder="", until=0))
        self.held = False

    def _claim(self, known: MaintenanceStatus) -> None:
        until = self._repo.clock.now() + int(LEASE_SECONDS * 1_000_000)
        self._put(msgspec.structs.replace(known, holder=self.name, until=until))

    def _put(self, said: MaintenanceStatus) -> None:
        self._repo.objects.put(layout.MAINTENANCE, encode(said))
