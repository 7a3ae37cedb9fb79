"""Several writes as one: each sees the ones before it, and they become visible in one commit or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.core.plan import PublishPlan, Reads, Verb
from omnigraph.core.txn import WriteTxn


def together(verbs: Sequence[Verb], kind: str = "write") -> Verb:
    """The verb that runs some verbs in order. Its value is the list of theirs."""

    def verb(txn: WriteTxn) -> PublishPlan:
        plans: list[PublishPlan] = []
        for each in verbs:
            plans.append(each(txn))
            txn = txn.after(plans[-1])
        values = [plan.value for plan in plans]
        wanted = [plan for plan in plans if not plan.empty]
        return PublishPlan(
            kind=kind,
            actions=tuple(action for plan in wanted for action in plan.actions),
            reads=_united(plans),
            strict=any(plan.strict for plan in wanted),
            result={"steps": [dict(plan.result) for plan in plans]},
            value=values,
            empty=not wanted,
        )

    return verb


def _united(plans: Sequence[PublishPlan]) -> dict[str, Reads]:
    reads: dict[str, Reads] = {}
    for plan in plans:
        for table, looked in plan.reads.items():
            reads[table] = reads[table] | looked if table in reads else looked
    return reads
