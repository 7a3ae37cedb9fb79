"""The text of a query in a request, and which of its queries is meant."""

from __future__ import annotations

from functools import lru_cache

from omnigraph.lang.query import choose, parse_queries
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.wire import MutateRequest, QueryRequest


@lru_cache(maxsize=512)
def query_name(text: str, name: str | None) -> str:
    """The name of the query that is meant: the one named, or the only one."""
    return choose(parse_queries(text, bare=True), name).name


def source_of(asked: QueryRequest | MutateRequest) -> tuple[str, str]:
    """The text and the name of its query, under the field names of this or of older clients."""
    text = asked.query if asked.query is not None else asked.query_source
    if text is None:
        raise RequestInvalid("the body needs `query`")
    return text, query_name(text, asked.name if asked.name is not None else asked.query_name)
