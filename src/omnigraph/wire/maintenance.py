"""Answers about maintenance."""

from __future__ import annotations

import msgspec

from omnigraph.core.records import MaintenanceAction, MaintenanceStatus, RetentionPolicy


class RetentionOutput(msgspec.Struct, frozen=True):
    """How much history maintenance leaves; `keep` null: all of it."""

    keep: int | None
    days: float | None = None
    every_hours: float | None = None
    actor_id: str | None = None
    set_at: int | None = None

    @classmethod
    def of(cls, policy: RetentionPolicy | None) -> RetentionOutput:
        if policy is None:
            return cls(None)
        return cls(policy.keep, policy.days, policy.every_hours, policy.actor, policy.time)

    def value(self) -> RetentionPolicy | None:
        if self.keep is None:
            return None
        hours = 1.0 if self.every_hours is None else self.every_hours
        return RetentionPolicy(self.keep, self.days, hours, self.actor_id, self.set_at or 0)


class MaintenanceOutput(msgspec.Struct, frozen=True):
    """Which process maintains the graph, and what was done last."""

    holder: str
    until: int
    cleaned: int
    expired: int
    actions: list[MaintenanceAction]

    @classmethod
    def of(cls, status: MaintenanceStatus) -> MaintenanceOutput:
        return cls(
            status.holder, status.until, status.cleaned, status.expired, list(status.actions)
        )

    def value(self) -> MaintenanceStatus:
        return MaintenanceStatus(
            self.holder, self.until, self.cleaned, self.expired, tuple(self.actions)
        )
