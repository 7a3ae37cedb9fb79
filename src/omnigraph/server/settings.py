"""What a server serves, and its limits: from flags, or from a file such as

graphs:
  people: {uri: s3://bucket/people, queries: [queries], policy: people.policy.yaml}
policy: server.policy.yaml
tokens_file: tokens.json
load_from: [s3://bucket/incoming/]
limits: {query_seconds_max: 20}

Paths are relative to the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.cluster.files import EmbeddingSection, provider_problems
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.names import GRAPH_ID
from omnigraph.model.yaml_text import YamlRefused, read_yaml

RESERVED = frozenset({"policies", "healthz", "openapi", "graphs"})
MIB = 1 << 20


class ServerInvalid(OmnigraphError):
    """The server cannot start with these settings."""

    code, kind = "server_invalid", Kind.INVALID
    default_help = "`omnigraph serve --help` shows the flags; the server guide shows a file."


class GraphIdInvalid(OmnigraphError):
    """This id is not valid for a served graph."""

    code, kind = "graph_id_invalid", Kind.INVALID
    default_help = "An id has 1 to 64 letters, digits or hyphens."


class Bounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of a server."""

    threads_max: int = 16  # of a process, for reads and writes
    in_flight_max: int = 512  # requests in total, in all workers; so are all that follow
    actor_in_flight_max: int = 64
    actor_bytes_max: int = 4 << 30  # of request bodies in flight
    loads_max: int = 4  # at a time; they run beside the workers
    uploads_max: int = 32  # loads whose bodies are being received; half of them by one actor
    exports_max: int = 4  # streams; half of them by one actor
    jobs_max: int = 16  # waiting or running; half of them by one actor
    jobs_running_max: int = 2
    export_ttl_seconds: int = 86_400  # how long the parts of an export are kept
    export_ttl_seconds_max: int = 7 * 86_400
    signed_seconds_max: int = 3600  # how long a signed address of a part is valid
    body_bytes_max: int = MIB
    json_load_bytes_max: int = 64 * MIB
    load_bytes_max: int = 4 << 30  # of one load, unpacked
    unpack_ratio_max: int = 200  # unpacked bytes per packed byte, after the first 16 MiB
    query_seconds_max: float = 60.0
    write_seconds_max: float = 120.0
    load_seconds_max: float = 3600.0
    query_rows_max: int = 1_000_000
    slow_query_seconds: float = 1.0  # queries that take longer are logged, with their plan
    diff_rows_max: int = 10_000
    commits_max: int = 10_000
    stall_seconds_max: float = 30.0  # without a byte from or to a client
    shutdown_seconds_max: float = 30.0


class GraphSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One graph: where it is, which queries are stored for it, and who may do what."""

    uri: str  # where it is
    queries: list[str] = []  # files of stored queries, or folders of them
    policy: str | None = None  # who may do what
    embedding: EmbeddingSection | None = None  # the provider of its vectors, as in cluster.yaml


class OidcSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trusted OpenID Connect issuer."""

    issuer: str  # the `iss` of its tokens
    audience: str  # their `aud`
    keys: str  # a file with its public keys (a JSON Web Key Set), or their address
    algorithms: tuple[str, ...] = ("RS256", "ES256")  # only those with a public key
    actor_claim: str = "sub"  # the actor; dots lead into nested claims, as in `act.sub`
    person_claim: str | None = None  # on whose behalf the actor acts
    prefix: str = ""  # before the names of its actors, if there are several issuers
    skew_seconds: float = 60  # by which clocks may differ


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server."""

    graphs: dict[str, GraphSettings]  # by their id in addresses
    policy: str | None = None  # for the server as a whole
    tokens_file: str | None = None  # JSON of actors and their tokens
    oidc: list[OidcSettings] = []  # issuers whose tokens are accepted, besides those of the file
    oidc_keys_from: list[str] = []  # addresses below which their keys may be fetched
    unauthenticated: bool = False  # serve without tokens
    hosts: list[str] = []  # names it is reached by without tokens, besides localhost and addresses
    read_only: bool = False  # accept only reads
    require_all_graphs: bool = False  # do not start if one cannot be opened
    group_commit: bool = True  # writers of one branch share commits
    maintain: bool = (
        True  # compact, index, expire and clean in the background, one process at a time
    )
    load_from: list[str] = []  # addresses loads by reference may be read from
    cluster: str | None = None  # the root of the served cluster
    limits: Bounds = Bounds()  # see the table


def graph_id(text: str) -> str:
    """A validated id of a served graph.

    >>> graph_id("people-2")
    'people-2'
    """
    if GRAPH_ID.fullmatch(text) is None or text in RESERVED:
        raise GraphIdInvalid(f"{text!r} is not a valid graph id")
    return text


def read_settings(path: str | Path) -> Settings:
    """The settings in a file."""
    place = Path(path)
    try:
        content = read_yaml(place.read_text(encoding="utf-8"))
        found = msgspec.convert(content, Settings)
    except (OSError, UnicodeDecodeError, YamlRefused) as error:
        raise ServerInvalid(f"{place} cannot be read: {error}") from error
    except msgspec.ValidationError as error:
        raise ServerInvalid(f"{place}: {error}") from error
    for id, graph in found.graphs.items():
        for _, message in provider_problems(graph.embedding) if graph.embedding else ():
            raise ServerInvalid(f"{place}: the provider of {id}: {message}")
    return _placed(found, place.parent)


def _placed(settings: Settings, folder: Path) -> Settings:
    """The same settings, with paths relative to the folder of the file."""

    def at(name: str | None) -> str | None:
        return None if name is None else name if "://" in name else str(folder / name)

    graphs = {
        graph_id(id): msgspec.structs.replace(
            g, uri=str(at(g.uri)), queries=[str(at(q)) for q in g.queries], policy=at(g.policy)
        )
        for id, g in settings.graphs.items()
    }
    return msgspec.structs.replace(
        settings,
        graphs=graphs,
        policy=at(settings.policy),
        tokens_file=at(settings.tokens_file),
        oidc=[msgspec.structs.replace(o, keys=str(at(o.keys))) for o in settings.oidc],
    )


def from_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """The settings, completed from the environment variables of a container."""
    changed: dict[str, Any] = {}
    if _truthy(environment.get("OMNIGRAPH_UNAUTHENTICATED")):
        changed["unauthenticated"] = True
    if _truthy(environment.get("OMNIGRAPH_REQUIRE_ALL_GRAPHS")):
        changed["require_all_graphs"] = True
    limits = {
        field: int(environment[name])
        for name, field in (
            ("OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", "actor_in_flight_max"),
            ("OMNIGRAPH_PER_ACTOR_BYTES_MAX", "actor_bytes_max"),
        )
        if environment.get(name, "").isdecimal()
    }
    if limits:
        changed["limits"] = msgspec.structs.replace(settings.limits, **limits)
    return msgspec.structs.replace(settings, **changed) if changed else settings


def _truthy(value: str | None) -> bool:
    return bool(value) and value not in ("0", "false")
