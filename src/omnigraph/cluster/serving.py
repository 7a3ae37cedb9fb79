"""What a server needs of a cluster: the graphs, queries and policies that are in force.

Texts come from the ledger and are put into a folder, because servers read policies and queries from files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.cluster.files import CLUSTER, root_of
from omnigraph.cluster.ledger import Ledger, Revision
from omnigraph.cluster.report import newest_of
from omnigraph.cluster.resources import ClusterInvalid, ClusterNotFound, address_in, of_kind
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.languages import is_cypher_text

VARIABLES = {
    "kind": "OMNIGRAPH_EMBED_PROVIDER",
    "base_url": "OMNIGRAPH_EMBED_URL",
    "model": "OMNIGRAPH_EMBED_MODEL",
    "api_key": "OMNIGRAPH_EMBED_API_KEY",
}


class SecretMissing(OmnigraphError):
    """A variable that holds a secret of the cluster is not set."""

    code, kind = "secret_missing", Kind.INVALID
    default_help = "Set the variable where the server is started."


@dataclass(frozen=True, slots=True)
class ServedGraph:
    uri: str
    queries: tuple[str, ...] = ()  # files
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """A revision as files and addresses."""

    revision: int
    graphs: dict[str, ServedGraph]
    policy: str | None = None  # for what concerns the server as a whole
    environment: dict[str, str] = field(default_factory=dict)  # for embeddings


def served(place: str, folder: Path, environment: Mapping[str, str] = os.environ) -> ServedCluster:
    """What is in force, with its texts written below a folder."""
    ledger = Ledger(root_of(place))
    newest = newest_of(ledger)
    graphs = of_kind(newest.resources, "graph")
    if not graphs:
        raise ClusterNotFound(f"no graph of {ledger.root} is in force yet")
    here = folder / str(newest.number)
    here.mkdir(parents=True, exist_ok=True)
    policies = _policies(ledger, newest, here)
    return ServedCluster(
        newest.number,
        {
            id: ServedGraph(
                address_in(ledger.root, graph.uri),
                _queries(ledger, newest, id, here),
                policies.get(id),
            )
            for id, graph in graphs.items()
        },
        policies.get(CLUSTER),
        _embedding(newest, environment),
    )


def _queries(ledger: Ledger, newest: Revision, id: str, folder: Path) -> tuple[str, ...]:
    """One file for each text: several queries of `.gq` may come from one; one in Cypher has the name of its file."""
    found: dict[str, str] = {}
    for name, resource in of_kind(newest.resources, f"query.{id}").items():
        text = ledger.text(resource.digest)
        if is_cypher_text(text):
            (folder / id).mkdir(exist_ok=True)
            found[name] = _written(folder / id / f"{name}.cypher", text)
        elif resource.digest not in found:
            found[resource.digest] = _written(folder / f"{id}.{resource.digest}.gq", text)
    return tuple(sorted(found.values()))


def _policies(ledger: Ledger, newest: Revision, folder: Path) -> dict[str, str]:
    """The file of each policy, by what it applies to."""
    found: dict[str, str] = {}
    for name, policy in of_kind(newest.resources, "policy").items():
        suffix = Path(policy.settings["file"]).suffix
        file = _written(folder / f"policy.{name}{suffix}", ledger.text(policy.digest))
        for scope in policy.applies_to:
            found[scope] = file
    return found


def _written(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    return str(file)


def _embedding(newest: Revision, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the provider that graphs use, with the secret its key names."""
    used = {
        graph.settings["embedding_provider"]
        for graph in of_kind(newest.resources, "graph").values()
        if "embedding_provider" in graph.settings
    }
    if len(used) > 1:
        raise ClusterInvalid("graphs of one server share one embedding provider")
    found: dict[str, str] = {}
    for name in used:
        section = newest.resources[f"provider.embedding.{name}"].settings
        for key, variable in VARIABLES.items():
            if section.get(key):
                found[variable] = _resolved(section[key], environment)
    return found


def _resolved(text: str, environment: Mapping[str, str]) -> str:
    def secret(match: re.Match[str]) -> str:
        name = match.group(0)[2:-1]
        if name not in environment:
            raise SecretMissing(f"the variable {name} is not set")
        return environment[name]

    return re.sub(r"\$\{\w+\}", secret, text)
