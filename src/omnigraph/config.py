"""Settings: the environment first, then the project's `omnigraph.yaml`, then `~/.omnigraph/config.yaml`, then defaults.

Files are never written implicitly; `OMNIGRAPH_HOME` names another folder for the file. A file may hold

    defaults: {store: s3://bucket/graph, branch: main, output: table}
    operator: {actor: ada}
    servers: {prod: {url: "https://graphs.example.org"}}
    aliases: {people: "query --file people.gq all"}
    profiles: {work: {server: prod, graph: people}}

A project's file is the nearest `omnigraph.yaml` in the working folder or above it. It says which graph is meant there:

    store: data/graph     # a path beginning at the file, or s3://…
    branch: main

It may come from another person, so it cannot send a token anywhere: it names a server, and the user's own file gives
the address.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.model.yaml_text import YamlRefused, read_yaml

FILE_NAME = "config.yaml"
PROJECT_FILE = "omnigraph.yaml"
PROJECT_KEYS = ("store", "server", "graph", "branch", "output")
CONFIG_BYTES_MAX = 1 << 20
SECTIONS = ("defaults", "operator", "servers", "aliases", "profiles")
PROFILE_KEYS = ("server", "store", "graph", "default_graph")
PLACE_KEYS = frozenset({"defaults.store", "defaults.server"})
PROJECT_HELP = f"A project's file may set {', '.join(PROJECT_KEYS)}."


class ConfigInvalid(OmnigraphError):
    """The configuration file cannot be used."""

    code, kind = "config_invalid", Kind.INVALID
    default_help = "Fix the file; `omnigraph config show --origin` shows where each value is set."


@frozen
class Setting:
    """One setting: its key in the file, its variable in the environment, and what it does."""

    key: str
    variable: str
    about: str
    default: str | None = None


@frozen
class SettingValue:
    """The value of a setting, and where it is set."""

    setting: Setting
    value: str | None
    origin: str


SETTINGS = (
    Setting("defaults.store", "OMNIGRAPH_STORE", "The graph to use without `--store`."),
    Setting(
        "defaults.server", "OMNIGRAPH_SERVER", "The server to use without `--server`: URL or name."
    ),
    Setting(
        "defaults.graph", "OMNIGRAPH_GRAPH", "The graph on that server to use without `--graph`."
    ),
    Setting("defaults.branch", "OMNIGRAPH_BRANCH", "The branch to use without `--branch`.", "main"),
    Setting(
        "defaults.output",
        "OMNIGRAPH_FORMAT",
        "The output format to use without `--format`.",
        "table",
    ),
    Setting(
        "defaults.json",
        "OMNIGRAPH_JSON",
        "The form of `--json`: `0.10` or `0.13` for that of the Rust project; without it, our own.",
    ),
    Setting("operator.actor", "OMNIGRAPH_ACTOR", "The actor that commits record."),
    Setting(
        "operator.policy",
        "OMNIGRAPH_POLICY",
        "The policy for graphs that are opened without a server.",
    ),
)
VARIABLES = {
    "OMNIGRAPH_HOME": "The folder of the configuration file and the shell's history; default `~/.omnigraph`.",
    "OMNIGRAPH_DEBUG": "If set: internal errors show their traceback.",
    "OMNIGRAPH_MEMORY": (
        "The memory a process may use for reading, such as `4G`: a quarter for cached tables, the rest for "
        "running queries; default half of the machine or container, which the workers of a server share. If set, "
        "it applies to each worker."
    ),
    "OMNIGRAPH_QUERY_MEMORY": "The memory one query may use, such as `512M`; default a quarter of `OMNIGRAPH_MEMORY`.",
    "OMNIGRAPH_SPILL": "The folder for query data that exceeds its memory; default: the temporary folder.",
    "OMNIGRAPH_SPARK_MASTER": "The Spark cluster bulk work runs on; without it, the cores of this machine.",
    "OMNIGRAPH_SPARK_MEMORY": "The memory of Spark's driver; default `2g`.",
    "OMNIGRAPH_SPARK_LOG": "The file for Spark's own log.",
    "OMNIGRAPH_SPARK_ARCHIVE": "`off`: do not use or build the class archive that makes Spark start faster.",
    "OMNIGRAPH_SPARK_TRAINING": "Set by `python -m omnigraph.pipeline.jvm_cds` while it records how Spark starts.",
    "OMNIGRAPH_FSYNC": "`0`: do not sync writes to a local disk. Only for data that can be recreated.",
    "OMNIGRAPH_EMBED_PROVIDER": "The embedding provider: `openai`, `gemini`, `local` or `mock`.",
    "OMNIGRAPH_EMBED_MODEL": "The embedding model; for `local` the default comes with the extra `embeddings`.",
    "OMNIGRAPH_EMBED_URL": "The URL of the embedding provider; or `OMNIGRAPH_EMBED_BASE_URL`.",
    "OMNIGRAPH_EMBED_API_KEY": "The API key for the embedding provider; or `OPENAI_API_KEY`, `GEMINI_API_KEY`.",
    "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE_MAX": "Limit on requests of one process to the provider; default: none.",
    "OMNIGRAPH_BLOB_ALLOW": "Comma-separated prefixes of external blobs that loads may refer to.",
    "OMNIGRAPH_RRF_PLAN": "Shown by `show all;`, for files of the Rust project; changes nothing.",
    "OMNIGRAPH_MERGE_LINEAGE": "Shown by `show all;`, for files of the Rust project; changes nothing.",
    "OMNIGRAPH_ANN_NPROBES": "Shown by `show all;`, for files of the Rust project; changes nothing.",
    "OMNIGRAPH_LOAD_CONCURRENCY": "Shown by `show all;`, for files of the Rust project; changes nothing.",
    "OMNIGRAPH_TRAVERSAL_WORK_LIMIT": "Shown by `show all;`, for files of the Rust project; changes nothing.",
    "OMNIGRAPH_HISTORY_RELEASE_BYTES": "Shown by `show all;`, for files of the Rust project; changes nothing.",
    "OMNIGRAPH_TOKEN": (
        "The token a client sends to a server; `OMNIGRAPH_TOKEN_<NAME>` for a configured server. Both override what "
        "`omnigraph login` has stored."
    ),
    "OMNIGRAPH_BEARER_TOKEN": "The token a client sends if no other is configured.",
    "OMNIGRAPH_PROFILE": "The profile to use without `--profile`.",
    "OMNIGRAPH_SERVER_BEARER_TOKEN": "Serving: the token of the actor `default`.",
    "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": "Serving: a file of actors and tokens, as JSON.",
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "Serving: actors and tokens, as JSON.",
    "OMNIGRAPH_UNAUTHENTICATED": "Serving: `1` serves without tokens.",
    "OMNIGRAPH_REQUIRE_ALL_GRAPHS": "Serving: `1` fails when a graph cannot be opened.",
    "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "Serving: concurrent requests per actor.",
    "OMNIGRAPH_PER_ACTOR_BYTES_MAX": "Serving: bytes of concurrent request bodies per actor.",
    "AWS_ACCESS_KEY_ID": "The access key for an S3 store.",
    "AWS_SECRET_ACCESS_KEY": "The secret key for an S3 store.",
    "AWS_SESSION_TOKEN": "The session token of temporary credentials.",
    "AWS_REGION": "The region of an S3 store; or `AWS_DEFAULT_REGION`.",
    "AWS_ENDPOINT_URL": "The endpoint of an S3-compatible server; or `AWS_ENDPOINT_URL_S3`.",
    "AWS_EC2_METADATA_DISABLED": (
        "`true`: without keys, do not query the cloud's metadata address for credentials; requests are unsigned."
    ),
    "AWS_WEB_IDENTITY_TOKEN_FILE": "The file with the token a cluster issues for a role.",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "The path where a container service provides credentials.",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "The same, as a full URL.",
    "AWS_S3_FORCE_PATH_STYLE": "`1`: the bucket is part of the path; the default with an endpoint.",
    "AWS_ALLOW_HTTP": "`1`: allow an endpoint without TLS; the default for a plain http endpoint.",
    "NO_COLOR": "If set: no colours.",
    "COLUMNS": "The width of tables, instead of the terminal's.",
}


@frozen
class Config:
    """The values of all settings, with the servers and aliases of the file."""

    path: Path
    values: Mapping[str, SettingValue]
    servers: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    project: Path | None = None

    def __getitem__(self, key: str) -> str | None:
        return self.values[key].value


def home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's own files."""
    named = environment.get("OMNIGRAPH_HOME")
    return Path(named) if named else Path.home() / ".omnigraph"


def load_config(environment: Mapping[str, str] = os.environ, folder: Path | None = None) -> Config:
    """Read the environment and the files; a missing file is an empty one. The project is that of `folder`.

    >>> load_config({"OMNIGRAPH_STORE": "people", "OMNIGRAPH_HOME": "nowhere"})["defaults.store"]
    'people'
    """
    path = home(environment) / FILE_NAME
    content = _read(path)
    servers = {
        name: _url(path, name, entry) for name, entry in _section(content, "servers").items()
    }
    project = None if folder is None else project_file(folder)
    levels = [
        _from_environment(environment),
        {} if project is None else _from_project(project, servers),
        _from_person(content, path),
    ]
    return Config(
        path=path,
        values=_merged(levels),
        servers=servers,
        project=project,
        aliases={name: str(line) for name, line in _section(content, "aliases").items()},
        profiles={n: _profile(path, n, p) for n, p in _section(content, "profiles").items()},
        unknown=tuple(_unknown(content)),
    )


def _profile(path: Path, name: str, entry: Any) -> dict[str, str]:
    """Which graph a profile names: one on a server, or one in a store."""
    if not isinstance(entry, dict) or not set(entry) <= set(PROFILE_KEYS):
        keys = ", ".join(PROFILE_KEYS)
        raise ConfigInvalid(f"{path}: the profile {name!r} may set {keys}")
    if ("server" in entry) == ("store" in entry):
        raise ConfigInvalid(f"{path}: the profile {name!r} names either a server or a store")
    return {key: str(value) for key, value in entry.items()}


Level = dict[str, tuple[str, str]]  # by key: the value, and where it is set


def _merged(levels: list[Level]) -> dict[str, SettingValue]:
    """Each setting from the first level that has it. The level that names a graph hides those of later ones."""
    decided = next((i for i, level in enumerate(levels) if PLACE_KEYS & set(level)), len(levels))
    for level in levels[decided + 1 :]:
        for key in (*PLACE_KEYS, "defaults.graph"):
            level.pop(key, None)
    found = {}
    for setting in SETTINGS:
        text, origin = next(
            (level[setting.key] for level in levels if setting.key in level),
            (setting.default, "default"),
        )
        found[setting.key] = SettingValue(setting, text, origin)
    return found


def _from_environment(environment: Mapping[str, str]) -> Level:
    given = [s for s in SETTINGS if environment.get(s.variable)]
    return {s.key: (environment[s.variable], f"environment {s.variable}") for s in given}


def _from_person(content: Mapping[str, Any], path: Path) -> Level:
    level: Level = {}
    for setting in SETTINGS:
        section, _, name = setting.key.partition(".")
        found = _section(content, section).get(name)
        if found is not None:
            level[setting.key] = (str(found), str(path))
    return level


def project_file(folder: Path) -> Path | None:
    """The nearest `omnigraph.yaml`: in a folder or above it."""
    for place in (folder, *folder.parents):
        file = place / PROJECT_FILE
        if file.is_file():
            return file
    return None


def _from_project(file: Path, servers: Mapping[str, str]) -> Level:
    content = _read(file)
    for name, given in content.items():
        if name not in PROJECT_KEYS:
            raise ConfigInvalid(f"{file}: unknown setting {name!r}", help=PROJECT_HELP)
        if not isinstance(given, str):
            raise ConfigInvalid(f"{file}: `{name}` must be text", help=PROJECT_HELP)
    if "store" in content and "server" in content:
        raise ConfigInvalid(f"{file}: give `store` or `server`, not both", help=PROJECT_HELP)
    if "server" in content and content["server"] not in servers:
        name = content["server"]
        help = f"Write `servers: {{{name}: {{url: …}}}}` into your own config.yaml."
        raise ConfigInvalid(
            f"{file}: there is no server named {name!r} in your settings", help=help
        )
    level = {f"defaults.{name}": (given, str(file)) for name, given in content.items()}
    if "store" in content:
        level["defaults.store"] = (_beside(file, content["store"]), str(file))
    return level


def _beside(file: Path, store: str) -> str:
    """The address of a store in a project's file; a path begins where the file is."""
    if store.startswith(("http://", "https://")):
        help = "Name a server of your own config.yaml with `server: NAME` and `graph: ID`."
        raise ConfigInvalid(f"{file}: a project's store is not a server", help=help)
    return store if "://" in store else os.path.relpath(file.parent / Path(store).expanduser())


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > CONFIG_BYTES_MAX:
            raise ConfigInvalid(f"{path} is larger than {CONFIG_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}") from error
    content = _parse(path, text)
    for section in SECTIONS:
        if not isinstance(content.get(section) or {}, dict):
            raise ConfigInvalid(f"{path}: `{section}` must be a mapping")
    return content


def _parse(path: Path, text: str) -> Mapping[str, Any]:
    try:
        content = read_yaml(text) or {}
    except YamlRefused as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigInvalid(f"{path} must hold a mapping of sections")
    return content


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return content.get(name) or {}


def _url(path: Path, name: str, entry: Any) -> str:
    match entry:
        case str(url) | {"url": str(url)}:
            return url
        case _:
            raise ConfigInvalid(f"{path}: the server `{name}` needs a `url`")


def _unknown(content: Mapping[str, Any]) -> list[str]:
    known = {s.key for s in SETTINGS}
    named = [name for name in content if name not in SECTIONS]
    for section in ("defaults", "operator"):
        keys = (f"{section}.{name}" for name in _section(content, section))
        named += [key for key in keys if key not in known]
    return named
