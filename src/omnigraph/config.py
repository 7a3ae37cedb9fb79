"""Settings of a person or a machine: the environment first, then `~/.omnigraph/config.yaml`, then the defaults.

Nothing is written on its own; `OMNIGRAPH_HOME` names another folder for the file. A file may hold

    defaults: {store: s3://bucket/graph, branch: main, output: table}
    operator: {actor: ada}
    servers: {prod: {url: "https://graphs.example.org"}}
    aliases: {people: "query --file people.gq all"}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.value import value
from omnigraph.model.yaml_text import YamlRefused, read_yaml

FILE_NAME = "config.yaml"
CONFIG_BYTES_MAX = 1 << 20
SECTIONS = ("defaults", "operator", "servers", "aliases")


class ConfigInvalid(OmnigraphError):
    """The configuration file cannot be used."""

    code, kind = "config_invalid", Kind.INVALID
    default_help = "Fix the file; `omnigraph config show --origin` shows where each value is set."


@value
class Setting:
    """One setting: its key in the file, its variable in the environment, and what it does."""

    key: str
    variable: str
    about: str
    default: str | None = None


@value
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
        "What a process may hold for reading, such as `4G`: a quarter of it for what is kept of tables, the rest for "
        "running queries; default half of the machine or container."
    ),
    "OMNIGRAPH_QUERY_MEMORY": "What one query may hold, such as `512M`; default a quarter of `OMNIGRAPH_MEMORY`.",
    "OMNIGRAPH_SPILL": "The folder for what a query sorts or groups beyond its memory; default the temporary one.",
    "OMNIGRAPH_SPARK_MASTER": "The Spark cluster bulk work runs on; without it, the cores of this machine.",
    "OMNIGRAPH_SPARK_MEMORY": "The memory of Spark's driver; default `2g`.",
    "OMNIGRAPH_SPARK_LOG": "The file for Spark's own log.",
    "OMNIGRAPH_SPARK_ARCHIVE": "`off`: do not use or build the class archive that makes Spark start faster.",
    "OMNIGRAPH_SPARK_TRAINING": "Set by `python -m omnigraph.pipeline.jvm_cds` while it records how Spark starts.",
    "OMNIGRAPH_FSYNC": "`0`: do not sync writes to a local disk. Only for data that can be recreated.",
    "OMNIGRAPH_EMBED_PROVIDER": "The embedding provider: `openai`, `gemini`, `local` or `mock`.",
    "OMNIGRAPH_EMBED_MODEL": "The embedding model; of `local` the one that comes with the extra `embeddings`.",
    "OMNIGRAPH_EMBED_URL": "The URL of the embedding provider; or `OMNIGRAPH_EMBED_BASE_URL`.",
    "OMNIGRAPH_EMBED_API_KEY": "The API key for the embedding provider; or `OPENAI_API_KEY`, `GEMINI_API_KEY`.",
    "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE_MAX": "How often one process asks the embedding provider; default: no limit.",
    "OMNIGRAPH_BLOB_ALLOW": "Comma-separated prefixes of external blobs that loads may refer to.",
    "OMNIGRAPH_TOKEN": "The token a client sends to a server.",
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
        "`true`: without keys, nobody is asked for some at the metadata address of the cloud; requests go unsigned."
    ),
    "AWS_WEB_IDENTITY_TOKEN_FILE": "Where a cluster keeps the token that stands for a role.",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "Where a container service hands out credentials.",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "The same, as a whole address.",
    "AWS_S3_FORCE_PATH_STYLE": "`1`: the bucket is part of the path; the default with an endpoint.",
    "AWS_ALLOW_HTTP": "`1`: allow an endpoint without TLS; the default for a plain http endpoint.",
    "NO_COLOR": "If set: no colours.",
    "COLUMNS": "The width of tables, instead of the terminal's.",
}


@value
class Config:
    """The values of all settings, with the servers and aliases of the file."""

    path: Path
    values: Mapping[str, SettingValue]
    servers: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> str | None:
        return self.values[key].value


def home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of what belongs to a person."""
    named = environment.get("OMNIGRAPH_HOME")
    return Path(named) if named else Path.home() / ".omnigraph"


def load_config(environment: Mapping[str, str] = os.environ) -> Config:
    """Read the environment and the file; a missing file is an empty one.

    >>> load_config({"OMNIGRAPH_STORE": "people", "OMNIGRAPH_HOME": "nowhere"})["defaults.store"]
    'people'
    """
    path = home(environment) / FILE_NAME
    content = _read(path)
    values = {s.key: _value(s, environment, content, path) for s in SETTINGS}
    return Config(
        path=path,
        values=values,
        servers={
            name: _url(path, name, entry) for name, entry in _section(content, "servers").items()
        },
        aliases={name: str(line) for name, line in _section(content, "aliases").items()},
        unknown=tuple(_unknown(content)),
    )


def _value(
    setting: Setting, environment: Mapping[str, str], content: Mapping[str, Any], path: Path
) -> SettingValue:
    if environment.get(setting.variable):
        return SettingValue(
            setting, environment[setting.variable], f"environment {setting.variable}"
        )
    section, _, name = setting.key.partition(".")
    found = _section(content, section).get(name)
    if found is not None:
        return SettingValue(setting, str(found), str(path))
    return SettingValue(setting, setting.default, "default")


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
