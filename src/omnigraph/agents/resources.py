"""Texts to read: the schema, the stored queries, the state of a branch, and the language on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from urllib.parse import unquote

import msgspec

from omnigraph.agents.answers import shown
from omnigraph.agents.stored import stored_list
from omnigraph.agents.toolbox import Toolbox
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.policy.questions import PolicyDenied

SCHEME = "omnigraph://"
COMMITS_SHOWN = 10
JSON, TEXT, MARKDOWN = "application/json", "text/plain", "text/markdown"


class ResourceMissing(OmnigraphError):
    """The resource does not exist."""

    code, kind = "resource_missing", Kind.NOT_FOUND
    default_help = "List the resources and templates to see the addresses."


@frozen
class Resource:
    """A text to read; `path` may end with a name of a branch."""

    path: str  # after the scheme; `{branch}` stands for a name
    title: str
    description: str
    media: str
    read: Callable[[Toolbox, str], str]

    @property
    def is_template(self) -> bool:
        return self.path.endswith("{branch}")

    @property
    def uri(self) -> str:
        return SCHEME + self.path


def _schema(box: Toolbox, branch: str) -> str:
    return box.graph.schema(branch)


def _queries(box: Toolbox, _: str) -> str:
    return _json(stored_list(box))


def _checks(box: Toolbox, _: str) -> str:
    return _json([check.to_json() for check in box.graph.checks()])


def _branch(box: Toolbox, branch: str) -> str:
    """Its head, the last commits, and its changes since it diverged from main."""
    commits = box.graph.log(branch, COMMITS_SHOWN)
    about: dict[str, object] = {"branch": branch, "head": commits[0].id if commits else None}
    if branch != "main":
        about["changed_since_main"] = _changed(box, branch)
    return _json(about | {"commits": [shown(commit.to_json()) for commit in commits]})


def _changed(box: Toolbox, branch: str) -> object:
    try:
        return box.graph.diff("main", branch, from_merge_base=True).counts
    except PolicyDenied:
        return None


def _language(_: Toolbox, __: str) -> str:
    return files("omnigraph.agents").joinpath("language.md").read_text(encoding="utf-8")


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


RESOURCES = (
    Resource("language", "The language", "Queries and mutations on one page.", MARKDOWN, _language),
    Resource("schema", "The schema of main", "The types in force, as text.", TEXT, _schema),
    Resource("queries", "Stored queries", "Names, parameters and descriptions.", JSON, _queries),
    Resource("checks", "Checks of main", "Rules the graph must satisfy.", JSON, _checks),
    Resource("branches/main", "The state of main", "Its head and last commits.", JSON, _branch),
    Resource("schema/{branch}", "The schema of a branch", "As text.", TEXT, _schema),
    Resource(
        "branches/{branch}",
        "The state of a branch",
        "Its head, its last commits, and its changes since it diverged from main.",
        JSON,
        _branch,
    ),
)


def plain() -> Iterator[Resource]:
    return (each for each in RESOURCES if not each.is_template)


def templates() -> Iterator[Resource]:
    return (each for each in RESOURCES if each.is_template)


def read(box: Toolbox, uri: str) -> tuple[Resource, str]:
    """A resource and its text."""
    path = uri.removeprefix(SCHEME)
    for each in RESOURCES:
        if uri == each.uri:
            return each, each.read(box, "main")
    for each in templates():
        start = each.path.removesuffix("{branch}")
        if uri.startswith(SCHEME) and path.startswith(start):
            return each, each.read(box, unquote(path.removeprefix(start)))
    raise ResourceMissing(f"unknown resource {uri[:200]!r}")
