"""The meaning of a search: the words of a query, their synonyms, and the operators of `search_query`.

A query of `search_query` is a list of clauses. `+tea` must occur, `-tea` must not, and of clauses without a sign at
least one must occur unless another has a plus. A clause is a word, the beginning of one (`gree*`) or a phrase in
quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from omnigraph.errors import OptionInvalid
from omnigraph.model.catalog import Property
from omnigraph.model.frozen import frozen
from omnigraph.read.search.analyzer import Analyzer, analyzer_of, query_words

SYNONYMS = "synonyms"  # `@synonyms("tea, chai; car, automobile")` on a String property
CLAUSES_MAX = 256  # of one query

QueryWords = tuple[tuple[str, int], ...]  # words and their places
_CLAUSE = re.compile(r'([+-]?)(?:"([^"]*)"|(\S+))')


@frozen
class Clause:
    """A part of a query: words side by side, the last of which may be the beginning of one."""

    words: QueryWords
    begins: str | None = None  # the written prefix of some word
    sign: str = ""


@frozen
class QueryReader:
    """The analyzer and the synonyms of a property."""

    analyzer: Analyzer
    synonyms: str | None = None

    @classmethod
    def of(cls, prop: Property) -> QueryReader:
        found = next((a.value for a in prop.annotations if a.name == SYNONYMS), None)
        return cls(analyzer_of(prop), None if found is None else str(found))

    def words(self, query: str) -> QueryWords:
        """The words of a query with their places."""
        return query_words(query, self.analyzer)

    def alternatives(self, word: str) -> tuple[str, ...]:
        """A word and those that mean the same, in alphabetical order."""
        if self.synonyms is None:
            return (word,)
        return _groups(self.synonyms, self.analyzer).get(word, (word,))

    def expanded(self, words: Iterable[str]) -> list[str]:
        """Distinct words with all that mean the same, in alphabetical order."""
        return sorted({other for word in words for other in self.alternatives(word)})

    def beginnings(self, query: str) -> list[str]:
        """The words of a query as they may begin others: neither reduced to a stem nor left out."""
        plain = replace(self.analyzer, stems=None, stops=frozenset())
        return [word for word, _ in query_words(query, plain)]

    def clauses(self, query: str) -> list[Clause]:
        """The clauses of a query; those without words, such as "the", are left out."""
        if query.count('"') % 2:
            raise OptionInvalid(
                "a phrase in the query of search_query has no closing quote",
                help='Write +word, -word, word* or "a phrase"; quotes come in pairs.',
            )
        written = _CLAUSE.findall(query)
        if len(written) > CLAUSES_MAX:
            message = f"the query of search_query has {len(written)} clauses"
            raise OptionInvalid(message, details={"clauses_max": CLAUSES_MAX})
        made = (self._clause(sign, phrase, word) for sign, phrase, word in written)
        return [clause for clause in made if clause.words or clause.begins]

    def _clause(self, sign: str, phrase: str, word: str) -> Clause:
        if not word.endswith("*"):
            return Clause(self.words(phrase or word), sign=sign)
        *before, last = self.beginnings(word) or [""]
        return Clause(self.words(" ".join(before)), last or None, sign)


@lru_cache(maxsize=256)
def _groups(written: str, analyzer: Analyzer) -> dict[str, tuple[str, ...]]:
    """By word: the words that mean the same, as they are stored."""
    groups: dict[str, tuple[str, ...]] = {}
    for group in written.split(";"):
        found = [query_words(each, analyzer) for each in group.split(",")]
        if any(len(words) > 1 for words in found):
            raise OptionInvalid(
                f"synonyms must be single words, unlike {group.strip()!r}",
                help='Write @synonyms("tea, chai; car, automobile").',
            )
        members = {word for words in found for word, _ in words}
        members = members.union(*(groups.get(word, ()) for word in members))
        groups |= dict.fromkeys(members, tuple(sorted(members)))
    return groups
