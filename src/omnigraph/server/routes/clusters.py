"""Planning and applying a cluster through the server that serves it."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.cluster.apply import apply_plan
from omnigraph.cluster.files import described_by
from omnigraph.cluster.plan import Plan, make_plan, save_plan
from omnigraph.cluster.report import status
from omnigraph.cluster.resources import ClusterMoved, ClusterNotFound, digest_of
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.server.request import Answer, HttpCall
from omnigraph.wire.requests import ClusterRequest


def may_plan(_: HttpCall) -> Iterable[Need]:
    return (Need(Action.CLUSTER_PLAN),)


def may_apply(_: HttpCall) -> Iterable[Need]:
    return (Need(Action.CLUSTER_APPLY),)


def cluster_status(call: HttpCall) -> Answer:
    """What was applied to the served cluster, and where graphs differ from it."""
    return Answer(status(_root(call)).to_json())


def plan_cluster(call: HttpCall) -> Answer:
    """What applying a folder would change; changes nothing."""
    plan = _planned(call)
    return Answer({**plan.to_json(), "plan": _digest(plan)})


def apply_cluster(call: HttpCall) -> Answer:
    """Make the cluster match a folder; with `plan`, exactly what was planned or nothing."""
    request: ClusterRequest = call.body
    plan = _planned(call)
    if request.plan is not None and request.plan != _digest(plan):
        raise ClusterMoved("the cluster or the folder changed since the plan was made")
    done = apply_plan(plan, delete=frozenset(request.delete), actor=call.actor)
    if done is None:
        return Answer({"converged": True, "changes": [], "applied_count": 0, "errors": {}})
    return Answer(done.to_json())


def _planned(call: HttpCall) -> Plan:
    return make_plan(described_by(call.body.files, _root(call)))


def _digest(plan: Plan) -> str:
    """The digest of a plan: all its changes, and the state it was made for."""
    return digest_of(save_plan(plan))


def _root(call: HttpCall) -> str:
    root: str | None = call.state.cluster
    if root is None:
        raise ClusterNotFound(
            "this server serves no cluster", help="Start it with `omnigraph serve --cluster DIR`."
        )
    return root
