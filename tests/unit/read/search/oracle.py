"""Search in the plainest Python: what every mode must agree with."""

from __future__ import annotations

import math
import re
from collections import Counter

import Stemmer

from omnigraph.read.search.analyzer import STOP_WORDS


def places(text: str) -> list[tuple[str, int]]:
    """The words of an ASCII text with their places, by the rules of the English analyzer."""
    stem = Stemmer.Stemmer("english").stemWord
    raw = [word.lower() for word in re.findall("[0-9A-Za-z]+", text)]
    return [(stem(word), i) for i, word in enumerate(raw) if word not in STOP_WORDS]


def words(text: str) -> list[str]:
    return [word for word, _ in places(text)]


def any_word(text: str, query: str) -> bool:
    return bool(set(words(text)) & set(words(query)))


def all_words(text: str, query: str) -> bool:
    return bool(words(query)) and set(words(query)) <= set(words(text))


def phrase(text: str, query: str) -> bool:
    wanted, there = places(query), set(places(text))
    if not wanted:
        return False
    first = wanted[0][1]
    return any(
        all((word, begin + place - first) in there for word, place in wanted)
        for begin in range(len(text) + 1)
    )


def fuzzy(text: str, query: str, edits: int) -> bool:
    return any(levenshtein(a, b) <= edits for a in words(query) for b in words(text))


def beginning(text: str, begins: str) -> bool:
    """Whether some word of a text, reduced to its stem, begins so, or is what the beginning is reduced to."""
    stems = words(text)
    return any(stem.startswith(begins.lower()) for stem in stems) or any_word(text, begins)


def prefix(text: str, query: str) -> bool:
    begins = re.findall("[0-9A-Za-z]+", query)
    return bool(begins) and all(beginning(text, each) for each in begins)


def boolean(text: str, clauses: list[tuple[str, str]]) -> bool:
    """Clauses are signs with words, beginnings (`car*`) or phrases (`"a b"`), all of one or more words that count."""

    def holds(clause: str) -> bool:
        if clause.endswith("*"):
            return beginning(text, clause[:-1])
        return phrase(text, clause.strip('"'))

    counted = [(sign, c) for sign, c in clauses if c.endswith("*") or words(c)]
    if not counted:
        return False
    if any(sign == "-" and holds(clause) for sign, clause in counted):
        return False
    must = [holds(clause) for sign, clause in counted if sign == "+"]
    free = [holds(clause) for sign, clause in counted if not sign]
    return all(must) and (bool(must) or not free or any(free))


def levenshtein(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    line = list(range(len(b) + 1))
    for i, left in enumerate(a, start=1):
        corner, line[0] = line[0], i
        for j, right in enumerate(b, start=1):
            corner, line[j] = (
                line[j],
                min(line[j] + 1, line[j - 1] + 1, corner + (left != right)),
            )
    return line[-1]


def bm25(texts: list[str | None], query: str) -> dict[int, float]:
    """Scores by position, only of the texts that match."""
    documents = {i: words(text) for i, text in enumerate(texts) if text is not None}
    mean = sum(map(len, documents.values())) / max(len(documents), 1)
    scores: dict[int, float] = {}
    for word in sorted(set(words(query))):
        holding = [i for i, document in documents.items() if word in document]
        rarity = math.log(1 + (len(documents) - len(holding) + 0.5) / (len(holding) + 0.5))
        for i in holding:
            f = Counter(documents[i])[word]
            norm = 1.2 * (0.25 + 0.75 * len(documents[i]) / mean)
            scores[i] = scores.get(i, 0.0) + rarity * f * 2.2 / (f + norm)
    return scores
