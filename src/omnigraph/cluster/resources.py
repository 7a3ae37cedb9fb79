"""What a cluster is made of. A resource has an address, such as `schema.people` or `query.people.friends`."""

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
    """There is no cluster here, or nothing was applied to it yet."""

    code, kind = "cluster_not_found", Kind.NOT_FOUND
    default_help = "Apply a folder with `omnigraph cluster apply --config DIR`."


class ClusterMoved(OmnigraphError):
    """The cluster is not what the plan was made for: somebody applied another one, or changed a graph.

    A plan is applied exactly or not at all. What an interrupted apply had done already stays, and the next plan starts
    from it.
    """

    code, kind = "cluster_moved", Kind.CONFLICT
    default_help = "Plan again, look at the changes, and apply that plan."


class DeletionUnconfirmed(OmnigraphError):
    """A graph would be deleted, and its name was not given."""

    code, kind = "deletion_unconfirmed", Kind.INVALID
    default_help = "Nothing was changed. Say --delete NAME for each graph that is to be deleted."


class ManagedResource(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing as it is wanted, or was applied: a digest of what it says, and what is known besides."""

    digest: str
    applies_to: tuple[str, ...] = ()  # of a policy: ids of graphs, or `cluster`
    uri: str = (
        ""  # of a graph: below the root if it is the cluster's own, so that the whole may be moved
    )
    identity: str | None = (
        None  # of a graph that was applied: which one it is, whatever lies there later
    )
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
    """Where a graph lies.

    >>> address_in("s3://bucket/prefix", "graphs/people.omni")
    's3://bucket/prefix/graphs/people.omni'
    """
    return uri if "://" in uri or uri.startswith("/") else f"{root}/{uri}"


def is_own(graph: ManagedResource) -> bool:
    """Whether a graph lies below the root of its cluster."""
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
    """The graph an address is about; nothing for policies and providers.

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
