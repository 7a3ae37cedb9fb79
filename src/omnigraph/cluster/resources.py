"""The resources of a cluster. A resource has an address, such as `schema.people` or `query.people.friends`."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from omnigraph.errors import Kind, OmnigraphError

GRAPHS = "graphs"
GRAPH_SUFFIX = ".omni"


class ClusterInvalid(OmnigraphError):
    """The description of a cluster has mistakes; the details list all of them."""

    code, kind = "cluster_invalid", Kind.INVALID
    default_help = "`omnigraph cluster validate` shows them; nothing was changed."


class ClusterNotFound(OmnigraphError):
    """The cluster does not exist, or nothing was applied to it yet."""

    code, kind = "cluster_not_found", Kind.NOT_FOUND
    default_help = "Apply a folder with `omnigraph cluster apply --config DIR`."


class ClusterMoved(OmnigraphError):
    """The cluster changed since the plan was made: another plan was applied, or a graph was changed.

    A plan is applied exactly or not at all. The changes of an interrupted apply remain, and the next plan starts from
    them.
    """

    code, kind = "cluster_moved", Kind.CONFLICT
    default_help = "Plan again, review the changes, and apply that plan."


class DeletionUnconfirmed(OmnigraphError):
    """A graph would be deleted without confirmation by its name."""

    code, kind = "deletion_unconfirmed", Kind.INVALID
    default_help = "Nothing was changed. Pass --delete NAME for each graph to delete."


class ManagedResource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A desired or applied resource: the digest of its content, and its other fields."""

    digest: str
    applies_to: tuple[str, ...] = ()  # of a policy: ids of graphs, or `cluster`
    uri: str = (
        ""  # of a graph: below the root if it is the cluster's own, so that the whole may be moved
    )
    identity: str | None = None  # of an applied graph: its identity, whatever is stored there later
    settings: dict[str, Any] = {}  # of a provider or a retention


class Described(msgspec.Struct, frozen=True):
    """Everything a folder describes, with the texts of its files by their digest."""

    root: str  # where the ledger and the graphs are
    resources: dict[str, ManagedResource]
    texts: dict[str, str]

    @property
    def digest(self) -> str:
        return digest_of(msgspec.json.encode(self.resources, order="deterministic"))

    def text(self, address: str) -> str:
        return self.texts[self.resources[address].digest]


def address_in(root: str, uri: str) -> str:
    """The address of a graph.

    >>> address_in("s3://bucket/prefix", "graphs/people.omni")
    's3://bucket/prefix/graphs/people.omni'
    """
    return uri if "://" in uri or uri.startswith("/") else f"{root}/{uri}"


def is_own(graph: ManagedResource) -> bool:
    """Whether a graph is stored below the root of its cluster."""
    return address_in("", graph.uri) != graph.uri


def digest_of(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def kind_of(address: str) -> str:
    """
    >>> kind_of("query.people.friends")
    'query'
    """
    return address.partition(".")[0]


def graph_of(address: str) -> str:
    """The graph of a resource address; empty for policies and providers.

    >>> graph_of("query.people.friends"), graph_of("policy.base")
    ('people', '')
    """
    kind, _, rest = address.partition(".")
    return (
        rest.partition(".")[0]
        if kind in ("graph", "schema", "checks", "query", "retention")
        else ""
    )


def of_kind(resources: dict[str, ManagedResource], kind: str) -> dict[str, ManagedResource]:
    """The resources of a kind, by what follows it in their addresses, in order."""
    start = f"{kind}."
    return {a.removeprefix(start): r for a, r in sorted(resources.items()) if a.startswith(start)}
