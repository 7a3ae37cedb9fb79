"""A cluster for a server: the graphs, queries and policies in force.

Texts of the ledger are written to a folder, because servers read policies and queries from files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from omnigraph.cluster.files import CLUSTER, EmbeddingSection, root_of
from omnigraph.cluster.ledger import Ledger, Revision
from omnigraph.cluster.report import newest_of
from omnigraph.cluster.resources import ClusterNotFound, ManagedResource, address_in, of_kind
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.languages import is_cypher_text
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.read.search.embed import settings_pace


class SecretMissing(OmnigraphError):
    """A variable that holds a secret of the cluster is not set."""

    code, kind = "secret_missing", Kind.INVALID
    default_help = "Set the variable where the server is started."


@frozen
class ServedGraph:
    uri: str
    queries: tuple[str, ...] = ()  # files
    policy: str | None = None
    embedding: EmbeddingSection | None = None


@frozen
class ServedCluster:
    """A revision as files and addresses."""

    revision: int
    graphs: dict[str, ServedGraph]
    policy: str | None = None  # for the server as a whole


def served(place: str, folder: Path) -> ServedCluster:
    """The revision in force, with its texts written below a folder."""
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
                _provider(newest, graph),
            )
            for id, graph in graphs.items()
        },
        policies.get(CLUSTER),
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
    """The file of each policy, by its scope."""
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


def _provider(newest: Revision, graph: ManagedResource) -> EmbeddingSection | None:
    """The provider a graph names; its key is still the name of a variable."""
    name = graph.settings.get("embedding_provider")
    if name is None:
        return None
    return msgspec.convert(
        newest.resources[f"provider.embedding.{name}"].settings, EmbeddingSection
    )


def embed_settings(section: EmbeddingSection, environment: Mapping[str, str]) -> EmbedSettings:
    """The settings of a provider, with the secrets its section names."""
    given = (section.model, section.base_url, section.api_key)
    model, url, key = (text and _resolved(text, environment) for text in given)
    return EmbedSettings(section.kind, model, url, key, settings_pace())


def _resolved(text: str, environment: Mapping[str, str]) -> str:
    def secret(match: re.Match[str]) -> str:
        name = match.group(0)[2:-1]
        if name not in environment:
            raise SecretMissing(f"the variable {name} is not set")
        return environment[name]

    return re.sub(r"\$\{\w+\}", secret, text)
