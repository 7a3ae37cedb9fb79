"""The folder of a cluster: `cluster.yaml` with the schemas, queries and policies it names.

    version: 1
    storage: s3://bucket/prefix                  # of ledger and graphs; by default the folder itself
    graphs:
      people:
        schema: people.pg
        queries: queries/                        # or a list of files and folders, or {name: {file: f.gq}}
        checks: people.checks.gq                 # queries the graph must satisfy
        retention: {keep: 1000, days: 30}
        embedding_provider: default
    policies:
      base: {file: base.policy.yaml, applies_to: [people]}
    providers:
      embedding:
        default: {kind: openai, model: text-embedding-3-small, api_key: "${OPENAI_API_KEY}"}

Everything is read and checked before anything is changed, and all mistakes are reported together.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from omnigraph.cluster.observed import settings_of
from omnigraph.cluster.resources import (
    GRAPH_SUFFIX,
    GRAPHS,
    ClusterInvalid,
    Described,
    ManagedResource,
    digest_of,
    is_own,
)
from omnigraph.core.records import RetentionPolicy
from omnigraph.errors import OmnigraphError
from omnigraph.lang.checks import parse_checks
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.languages import check_cypher
from omnigraph.lang.query import compile_query, parse_queries
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.lang.source import Source
from omnigraph.maintenance.status import checked
from omnigraph.model.catalog import Catalog
from omnigraph.model.frozen import frozen
from omnigraph.model.names import GRAPH_ID
from omnigraph.model.yaml_text import YamlRefused, read_yaml
from omnigraph.policy.cedar import Policy, policy_of
from omnigraph.storage.objects import locate
from omnigraph.values.spelling import fields_json

FILE = "cluster.yaml"
VERSION = 1
CLUSTER = "cluster"  # what a policy applies to, besides graphs
CYPHER = ".cypher"
QUERY_FILES = (".gq", CYPHER)
REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
SENT_KEY = re.compile(r"\$\{[A-Z0-9_]+_API_KEY\}")
PROVIDERS = ("openai", "openai-compatible", "gemini", "local", "mock")
KEYED = ("openai", "openai-compatible", "gemini")


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An unknown field is a mistake."""


class Metadata(_Section, frozen=True):
    name: str | None = None


class LedgerSection(_Section, frozen=True):
    """In older files. There is one kind of ledger, and it needs no lock."""

    backend: str = CLUSTER
    lock: bool = True


class EmbeddingSection(_Section, frozen=True):
    kind: str
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None


def provider_problems(section: EmbeddingSection) -> Iterator[tuple[str, str]]:
    """The code and the message of each mistake in the section of a provider."""
    if section.kind not in PROVIDERS:
        kinds = ", ".join(PROVIDERS)
        yield "invalid_embedding_provider", f"kind must be one of {kinds}, not {section.kind!r}"
    if section.api_key is None and section.kind in KEYED:
        yield "embedding_api_key_required", 'api_key is required, as "${NAME}" of a variable'
    if section.api_key is not None and REFERENCE.fullmatch(section.api_key) is None:
        wanted = 'api_key must name a variable, "${NAME}": secrets do not belong in files'
        yield "embedding_api_key_inline", wanted


class ProviderSection(_Section, frozen=True):
    embedding: dict[str, EmbeddingSection] = {}


class QuerySection(_Section, frozen=True):
    file: str


class RetentionSection(_Section, frozen=True):
    keep: int
    days: float | None = None
    every_hours: float = 1.0


class GraphSection(_Section, frozen=True):
    schema: str
    queries: str | list[str] | dict[str, QuerySection] = []
    uri: str | None = None  # of a graph stored elsewhere
    checks: str | None = None  # a .gq file
    retention: RetentionSection | None = None
    embedding_provider: str | None = None


class PolicySection(_Section, frozen=True):
    file: str
    applies_to: list[str] = []


class ClusterFile(_Section, frozen=True):
    version: int
    graphs: dict[str, GraphSection] = {}
    metadata: Metadata = Metadata()
    storage: str | None = None
    state: LedgerSection = LedgerSection()
    providers: ProviderSection = ProviderSection()
    policies: dict[str, PolicySection] = {}


@frozen
class Problem:
    """A mistake: what is wrong, and where."""

    code: str
    path: str  # in the file: graphs.people.schema
    message: str

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def read_folder(folder: str | Path, *, sealed: bool = False) -> Described:
    """The description in a folder; `ClusterInvalid` with all mistakes. A sealed one names no file outside it."""
    reading = _Folder(Path(folder), sealed)
    wanted = reading.wanted()
    if reading.problems:
        first, rest = reading.problems[0], len(reading.problems) - 1
        raise ClusterInvalid(
            f"{first}" + (f" (and {rest} more)" if rest else ""),
            details={"diagnostics": [problem.to_json() for problem in reading.problems]},
        )
    return wanted


def read_files(folder: str | Path) -> dict[str, str]:
    """The files of a folder by their paths, to send to a server that applies it."""
    reading = _Folder(Path(folder))
    reading.wanted()
    return {FILE: (reading.folder / FILE).read_text(encoding="utf-8"), **reading.files}


def described_by(files: Mapping[str, str], root: str) -> Described:
    """The description in received files, for the cluster at `root`: as if they were a folder.

    An actor who may apply need not be the operator: graphs stored elsewhere, files that were not sent, and variables
    other than provider keys are refused.
    """
    with tempfile.TemporaryDirectory(prefix="omnigraph-cluster-") as held:
        folder = Path(held)
        for name, text in files.items():
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts or not place.parts:
                raise ClusterInvalid(f"{name!r} is not a path below a folder")
            file = folder.joinpath(*place.parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        found = read_folder(folder, sealed=True)
    for address, resource in found.resources.items():
        if address.startswith("graph.") and not is_own(resource):
            raise ClusterInvalid(
                f"{address} is stored elsewhere; a server accepts only its own graphs"
            )
        key = resource.settings.get("api_key") if address.startswith("provider.") else None
        if key and not SENT_KEY.fullmatch(key):
            message = f"{address} names {key}: a server accepts only variables that end in _API_KEY"
            raise ClusterInvalid(message)
    return Described(root, found.resources, found.texts)


def root_of(place: str) -> str:
    """The address of the ledger of a cluster: the place itself, or the one in the file of a folder."""
    if "://" in place:
        return locate(place).uri
    reading = _Folder(Path(place))
    return reading.root(reading.file())


@dataclass(slots=True)
class _Folder:
    """One pass over a folder."""

    folder: Path
    sealed: bool = False
    problems: list[Problem] = field(default_factory=list)
    resources: dict[str, ManagedResource] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # the files read, by their paths

    def file(self) -> ClusterFile:
        place = self.folder / FILE
        try:
            found = msgspec.convert(read_yaml(place.read_text(encoding="utf-8")), ClusterFile)
        except (OSError, UnicodeDecodeError) as error:
            raise ClusterInvalid(f"{place} cannot be read: {error}") from error
        except (YamlRefused, msgspec.ValidationError) as error:
            raise ClusterInvalid(f"{place}: {error}") from error
        if found.version != VERSION:
            raise ClusterInvalid(f"{place}: version must be {VERSION}, not {found.version}")
        return found

    def root(self, file: ClusterFile) -> str:
        return self._placed(file.storage or ".")

    def _placed(self, place: str) -> str:
        return locate(place if "://" in place else str((self.folder / place).resolve())).uri

    def wanted(self) -> Described:
        file = self.file()
        root = self.root(file)
        if not file.graphs:
            self._wrong("cluster_empty", "graphs", "there are no graphs")
        for id, graph in file.graphs.items():
            self._graph(id, graph)
        self._providers(file)
        self._policies(file)
        return Described(root, dict(sorted(self.resources.items())), self.texts)

    def _wrong(self, code: str, path: str, message: str) -> None:
        self.problems.append(Problem(code, path, message))

    # --- graphs ----------------------------------------------------------------------------------------------------

    def _graph(self, id: str, graph: GraphSection) -> None:
        path = f"graphs.{id}"
        if GRAPH_ID.fullmatch(id) is None:
            message = "an id has 1 to 64 letters, digits or hyphens"
            self._wrong("invalid_resource_id", path, message)
            return
        uri = f"{GRAPHS}/{id}{GRAPH_SUFFIX}" if graph.uri is None else self._placed(graph.uri)
        self.resources[f"graph.{id}"] = ManagedResource(digest_of(uri), uri=uri)
        catalog = self._schema(id, graph, path)
        if graph.checks is not None:
            self._checks(id, graph.checks, f"{path}.checks", catalog)
        if graph.retention is not None:
            self._retention(id, graph.retention, path)
        self._queries(id, graph, f"{path}.queries", catalog)

    def _schema(self, id: str, graph: GraphSection, path: str) -> Catalog | None:
        text = self._text(graph.schema, f"{path}.schema", "schema_file_missing")
        if text is None:
            return None
        self._keep(f"schema.{id}", text)
        try:
            return catalog_of(compile_schema(text))
        except OmnigraphError as error:
            self._wrong("schema_parse_error", f"{path}.schema", _message_of(error, graph.schema))
            return None

    def _checks(self, id: str, file: str, path: str, catalog: Catalog | None) -> None:
        text = self._text(file, path, "checks_file_missing")
        if text is None:
            return
        try:
            for check in parse_checks(text, file):
                self._checked_query(check.text, check.name, catalog, path, file)
        except OmnigraphError as error:
            self._wrong("checks_parse_error", path, _message_of(error, file))
            return
        self._keep(f"checks.{id}", text)

    def _retention(self, id: str, section: RetentionSection, path: str) -> None:
        try:
            kept = checked(RetentionPolicy(section.keep, section.days, section.every_hours))
        except OmnigraphError as error:
            self._wrong("retention_invalid", f"{path}.retention", error.message)
            return
        settings = settings_of(kept.keep, kept.days, kept.every_hours)
        self._settings(f"retention.{id}", settings)

    # --- queries ---------------------------------------------------------------------------------------------------

    def _queries(self, id: str, graph: GraphSection, path: str, catalog: Catalog | None) -> None:
        if isinstance(graph.queries, dict):
            for name, section in graph.queries.items():
                self._query_file(id, section.file, f"{path}.{name}", catalog, only=name)
            return
        places = [graph.queries] if isinstance(graph.queries, str) else graph.queries
        for place in places:
            for file in self._query_files(place, path):
                self._query_file(id, file, path, catalog)

    def _query_files(self, place: str, path: str) -> Iterator[str]:
        try:
            folder = self._inside(place)
        except ValueError as error:
            self._wrong("query_file_missing", path, f"{place} cannot be read: {error}")
            return
        if not folder.is_dir():
            yield place
            return
        held = (file for file in folder.iterdir() if file.suffix in QUERY_FILES)
        found = sorted(str(Path(place) / file.name) for file in held)
        if not found:
            self._wrong("query_dir_empty", path, f"{place} holds no .gq or .cypher files")
        yield from found

    def _query_file(
        self, id: str, file: str, path: str, catalog: Catalog | None, only: str | None = None
    ) -> None:
        text = self._text(file, path, "query_file_missing")
        if text is None:
            return
        try:
            names = _names_in(text, file)
        except OmnigraphError as error:
            self._wrong("query_parse_error", path, _message_of(error, file))
            return
        if names is None:
            message = f"{file} holds a setting or a statement; only queries are stored"
            self._wrong("query_parse_error", path, message)
            return
        if only is not None and only not in names:
            self._wrong("query_key_mismatch", path, f"{file} holds no query {only!r}")
            return
        for name in names if only is None else [only]:
            address = f"query.{id}.{name}"
            if address in self.resources:
                self._wrong("duplicate_query_name", path, f"duplicate query {name!r} in {file}")
            self._keep(address, text)
            self._checked_query(text, name, catalog, path, file)

    def _checked_query(
        self, text: str, name: str, catalog: Catalog | None, path: str, file: str
    ) -> None:
        if catalog is None:  # its mistakes are reported
            return
        try:
            if Path(file).suffix != CYPHER:
                compile_query(text, catalog, name)
            elif wrong := check_cypher(text, catalog):
                raise LanguageError(wrong, Source(text, file))
        except OmnigraphError as error:
            self._wrong("query_typecheck_error", path, f"{name}: {_message_of(error, file)}")

    # --- providers and policies ------------------------------------------------------------------------------------

    def _providers(self, file: ClusterFile) -> None:
        sections = file.providers.embedding
        for name, section in sections.items():
            path = f"providers.embedding.{name}"
            for code, message in provider_problems(section):
                self._wrong(code, path, message)
            self._settings(f"provider.embedding.{name}", msgspec.structs.asdict(section))
        used = {g.embedding_provider for g in file.graphs.values() if g.embedding_provider}
        for missing in sorted(used - set(sections)):
            message = f"unknown embedding provider {missing!r}"
            self._wrong("dangling_embedding_provider_reference", "graphs", message)
        for id, graph in file.graphs.items():
            known = self.resources.get(f"graph.{id}")
            if graph.embedding_provider and known is not None:
                settings = {"embedding_provider": graph.embedding_provider}
                self.resources[f"graph.{id}"] = msgspec.structs.replace(known, settings=settings)

    def _policies(self, file: ClusterFile) -> None:
        taken: dict[str, str] = {}
        for name, section in file.policies.items():
            path = f"policies.{name}"
            text = self._text(section.file, path, "policy_file_missing")
            policy = None if text is None else self._policy(text, section, path)
            self._bound(name, section, policy, path, taken, set(file.graphs))
            if text is not None:
                self._keep(
                    f"policy.{name}",
                    text,
                    applies_to=tuple(sorted(section.applies_to)),
                    settings={"file": Path(section.file).name},
                )

    def _policy(self, text: str, section: PolicySection, path: str) -> Policy | None:
        try:
            return policy_of(text, section.file)
        except OmnigraphError as error:
            self._wrong("policy_invalid", path, _message_of(error, section.file))
            return None

    def _bound(
        self,
        name: str,
        section: PolicySection,
        policy: Policy | None,
        path: str,
        taken: dict[str, str],
        graphs: set[str],
    ) -> None:
        """The scopes of a policy: graphs or the cluster, each with one policy."""
        scopes = section.applies_to
        if not scopes:
            self._wrong("policy_missing_applies_to", path, "applies_to is empty")
        if CLUSTER in scopes and len(scopes) > 1:
            message = "a policy applies to graphs or to the cluster, not to both"
            self._wrong("policy_mixed_binding_kinds", path, message)
        elif policy is not None and policy.rules.for_server not in (None, CLUSTER in scopes):
            what = "the cluster" if CLUSTER in scopes else "graphs"
            self._wrong("policy_invalid", path, f"it holds rules that do not apply to {what}")
        for scope in scopes:
            if scope != CLUSTER and scope not in graphs:
                self._wrong("dangling_graph_reference", path, f"unknown graph {scope!r}")
            if scope in taken:
                message = f"{taken[scope]!r} already applies to {scope!r}"
                self._wrong("duplicate_policy_binding", path, message)
            taken[scope] = name

    # --- texts -----------------------------------------------------------------------------------------------------

    def _text(self, file: str, path: str, missing: str) -> str | None:
        try:
            text = self._inside(file).read_text(encoding="utf-8")
            self.files[Path(file).as_posix()] = text
            return text
        except (OSError, UnicodeDecodeError, ValueError) as error:
            self._wrong(missing, path, f"{file} cannot be read: {error}")
            return None

    def _inside(self, file: str) -> Path:
        place = self.folder / file
        if self.sealed and not place.resolve().is_relative_to(self.folder.resolve()):
            raise ValueError("it is outside the folder")
        return place

    def _keep(self, address: str, text: str, **more: Any) -> None:
        digest = digest_of(text)
        self.texts[digest] = text
        self.resources[address] = ManagedResource(digest, **more)

    def _settings(self, address: str, settings: dict[str, Any]) -> None:
        digest = digest_of(msgspec.json.encode(settings, order="deterministic"))
        self.resources[address] = ManagedResource(digest, settings=settings)


def _names_in(text: str, file: str) -> list[str] | None:
    """The queries of a file, None if it holds anything else; one in Cypher has the name of its file."""
    if Path(file).suffix != CYPHER:
        tree = parse_queries(text, file)
        other = tree.statement is not None or tree.settings
        return None if other else [query.name for query in tree.queries]
    from omnigraph.lang.cypher import parse_cypher

    parse_cypher(text, file)
    return [Path(file).stem]


def _message_of(error: OmnigraphError, file: str) -> str:
    at = "" if error.span is None else f":{error.span.line}"
    return f"{file}{at}: {error.message}"
