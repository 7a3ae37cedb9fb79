"""SQL typed where a query is expected: recognised, and answered with the `.gq` equivalent. So is Cypher in a file of
queries in `.gq`; on its own it is a valid query (`lang/cypher`).

A help, not a parser: simple texts are translated as a whole, others clause by clause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from omnigraph.lang.diagnostics import LanguageError

_CYPHER = re.compile(
    r"\s*(optional\s+match|match|create|merge|unwind)\s*\(|\s*(call|with|unwind)\s+\w",
    re.IGNORECASE,
)
_SQL = re.compile(
    r"\s*(select\s|insert\s+into\s|update\s+\w+\s+set\s+\w+\s*=|delete\s+from\s|with\s+\w+\s+as\s*\()",
    re.IGNORECASE,
)
_SIMPLE_SQL = re.compile(
    r"\s*select\s+(?P<items>.+?)\s+from\s+(?P<type>\w+)(\s+where\s+(?P<where>.+?))?"
    r"(\s+order\s+by\s+(?P<order>.+?))?(\s+limit\s+(?P<limit>\d+))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(
    r"(?P<left>[\w.]+)\s*(?P<op><=|>=|<>|!=|=|<|>)\s*(?P<right>'[^']*'|\"[^\"]*\"|[\d.]+)"
)
_ITEM = re.compile(r"(?P<value>\w+(\.\w+)?)(\s+as\s+(?P<name>\w+))?", re.IGNORECASE)
TRANSLATED_CHARS_MAX = 500  # the patterns try every way to split a text into clauses
CYPHER = "This looks like Cypher. Run it on its own, or with language='cypher'; files hold queries in `.gq`."
SQL_CLAUSES = (
    "SELECT name FROM Person WHERE age > 30 is `match { $p: Person  $p.age > 30 } return { $p.name }`, a JOIN is an "
    "edge `$p knows $f`, ORDER BY is `order { $p.name asc }`, INSERT INTO is `insert Person { name: … }`"
)
PAGE = 'The page "Coming from Cypher and SQL" of the docs has more.'


def answered(error: LanguageError) -> LanguageError:
    """The same error, with help if the text is in another language."""
    text = error.source.text
    if _CYPHER.match(text):
        help = CYPHER
    elif _SQL.match(text):
        whole = _of_sql(text)
        instead = f"Write it as `{whole}`." if whole else f"{SQL_CLAUSES}."
        help = f"This looks like SQL. {instead} {PAGE}"
    else:
        return error
    first = replace(error.diagnostics[0], help=help)
    return LanguageError([first], error.source)  # the others follow from it


def _of_sql(text: str) -> str | None:
    found = _SIMPLE_SQL.fullmatch(text) if len(text) <= TRANSLATED_CHARS_MAX else None
    if found is None:
        return None
    return _whole([f"$x: {found['type']}"], found, lambda name: f"$x.{name.rpartition('.')[2]}")


def _whole(lines: list[str], found: re.Match[str], name_of: Callable[[str], str]) -> str | None:
    """The query of a pattern and the clauses after it; None if one of them is not simple."""
    for condition in re.split(r"\s+and\s+", found["where"] or "", flags=re.IGNORECASE):
        if not condition.strip():
            continue
        test = _CONDITION.fullmatch(condition.strip())
        if test is None:
            return None
        value = test["right"].replace("'", '"')
        lines.append(f"{name_of(test['left'])} {test['op'].replace('<>', '!=')} {value}")
    items = [_ITEM.fullmatch(item.strip()) for item in found["items"].split(",")]
    if not all(items):
        return None
    columns = [
        f"{name_of(item['value'])}" + (f" as {item['name']}" if item["name"] else "")
        for item in items
        if item
    ]
    tail = _order(found["order"], name_of) + (f" limit {found['limit']}" if found["limit"] else "")
    return f"match {{ {'  '.join(lines)} }} return {{ {', '.join(columns)} }}{tail}"


def _order(text: str | None, name_of: Callable[[str], str]) -> str:
    if not text:
        return ""
    keys = []
    for key in text.split(","):
        name, _, way = key.strip().partition(" ")
        keys.append(f"{name_of(name)} {'desc' if way.strip().lower() == 'desc' else 'asc'}")
    return f" order {{ {', '.join(keys)} }}"
