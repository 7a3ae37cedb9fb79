"""A made-up world of scholars, papers and institutions; the same seed makes the same files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from omnigraph.model.frozen import frozen

SEED = 1815
TOPIC_DIMENSIONS = 16
SCHEMA = """\
node Institution {
  name: String @key
  country: String @index
}

node Scholar {
  name: String @key
  field: String
  since: I32
}

node Paper {
  doi: String @key
  title: String
  abstract: String @index
  year: I32
  topic: Vector(16) @index @metric("cosine")
}

edge WorksAt: Scholar -> Institution @card(0..1) {
  @key(src, dst)
}

edge Wrote: Scholar -> Paper {
  @key(src, dst)
}

edge Cites: Paper -> Paper {
  @key(src, dst)
}
"""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "astronomy": ("galaxies", "spectra", "dust", "orbits", "supernovae", "telescopes"),
    "botany": ("orchids", "pollen", "roots", "mosses", "photosynthesis", "seeds"),
    "computing": ("compilers", "graphs", "caches", "proofs", "schedulers", "types"),
    "geology": ("basalt", "faults", "sediment", "magma", "fossils", "glaciers"),
    "linguistics": ("vowels", "syntax", "dialects", "borrowings", "tones", "scripts"),
    "medicine": ("antibodies", "trials", "vaccines", "enzymes", "sleep", "nerves"),
    "music": ("tuning", "rhythm", "choirs", "manuscripts", "organs", "harmony"),
    "physics": ("lasers", "plasmas", "phonons", "symmetry", "neutrinos", "crystals"),
}
METHODS = (
    "a survey of",
    "new measurements of",
    "a theory of",
    "the origins of",
    "fast methods for",
    "limits of",
)
VERBS = ("We compare", "We measure", "We model", "We revisit", "We classify", "We explain")
ENDINGS = (
    "over ten years",
    "with open data",
    "in three regions",
    "at small scale",
    "without assumptions",
)
FIRST = ("Ada", "Bram", "Chen", "Dina", "Emeka", "Freja", "Goran", "Hana", "Ines", "Jomo", "Kaito", "Lena", "Mara",
         "Nadia", "Omar", "Priya", "Quirin", "Rosa", "Sven", "Tomas", "Uma", "Vera", "Wanda", "Yusuf")  # fmt: skip
LAST = ("Abara", "Berg", "Castro", "Dijk", "Eriksen", "Fontana", "Garcia", "Huber", "Ito", "Jansen", "Kovacs",
        "Lindgren", "Moreau", "Novak", "Okafor", "Petrov", "Rossi", "Sato", "Tanaka", "Weber")  # fmt: skip
PLACES = (("Utrecht", "Netherlands"), ("Uppsala", "Sweden"), ("Kyoto", "Japan"), ("Lagos", "Nigeria"),
          ("Porto", "Portugal"), ("Graz", "Austria"), ("Quito", "Ecuador"), ("Pune", "India"))  # fmt: skip
KINDS = ("University", "Academy", "Institute of Technology", "College", "Observatory")


FILES = {
    "Institution": "institutions.csv",
    "Scholar": "scholars.csv",
    "Paper": "papers.parquet",
    "WorksAt": "works-at.csv",
    "Wrote": "wrote.parquet",
    "Cites": "cites.parquet",
}


@frozen
class Size:
    """The number of each."""

    scholars: int = 12_000
    papers: int = 30_000
    citations: int = 150_000

    def __str__(self) -> str:
        return f"{self.scholars:,} scholars and their {self.papers:,} papers"


def write_world(folder: Path, size: Size | None = None) -> None:
    """Write one file per type, CSV where such data usually comes as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in tables(size or Size()).items():
        file = folder / FILES[name]
        write = pc.write_csv if file.suffix == ".csv" else pq.write_table
        write(pa.table(columns), file)


def tables(size: Size) -> dict[str, dict[str, Any]]:
    """The columns of every type."""
    random = np.random.default_rng(SEED)
    institutions = [f"{place} {kind}" for place, _ in PLACES for kind in KINDS]
    countries = [country for _, country in PLACES for _ in KINDS]
    scholars = [_scholar(i) for i in range(size.scholars)]
    fields = random.integers(0, len(FIELDS), size.scholars)
    papers, authors = _papers(random, fields, size)
    dois = papers["doi"]
    return {
        "Institution": {"name": institutions, "country": countries},
        "Scholar": {
            "name": scholars,
            "field": [list(FIELDS)[f] for f in fields],
            "since": (1980 + random.integers(0, 45, size.scholars)).astype(np.int32),
        },
        "Paper": papers,
        "WorksAt": {
            "from": scholars,
            "to": [institutions[i] for i in random.integers(0, len(institutions), size.scholars)],
        },
        "Wrote": _pairs(scholars, dois, authors[0], authors[1]),
        "Cites": _pairs(dois, dois, *_citations(random, size)),
    }


def _scholar(number: int) -> str:
    """A unique name: an initial distinguishes people who share the rest."""
    first, rest = number % len(FIRST), number // len(FIRST)
    last, again = rest % len(LAST), rest // len(LAST)
    initial = f"{ascii_uppercase[again - 1]}. " if again else ""
    return f"{FIRST[first]} {initial}{LAST[last]}"


def _papers(
    random: np.random.Generator, fields: Any, size: Size
) -> tuple[dict[str, Any], tuple[Any, Any]]:
    """Papers about what their authors study, and who wrote which."""
    count = size.papers
    leads = random.integers(0, size.scholars, count)
    topics = fields[leads]
    words = random.integers(0, 6, (count, 2))
    choices = random.integers(0, 30, count)
    made = [_texts(int(topics[i]), words[i].tolist(), int(choices[i])) for i in range(count)]
    helpers = random.integers(0, size.scholars, count * 2)
    writers = np.concatenate([leads, helpers])
    written = np.concatenate([np.arange(count), np.repeat(np.arange(count), 2)])
    columns = {
        "doi": [f"10.1000/{i:06d}" for i in range(count)],
        "title": [title for title, _ in made],
        "abstract": [abstract for _, abstract in made],
        "year": (1990 + random.integers(0, 35, count)).astype(np.int32),
        "topic": _vectors(random, topics, words),
    }
    return columns, _distinct(writers, written, count)


def _texts(topic: int, words: list[int], choice: int) -> tuple[str, str]:
    field = list(FIELDS)[topic]
    one, other = FIELDS[field][words[0]], FIELDS[field][words[1]]
    title = f"{METHODS[choice % 6].capitalize()} {one}"
    abstract = (
        f"{VERBS[choice // 5]} {one} and {other} {ENDINGS[choice % 5]}, a question of {field}."
    )
    return title, abstract


def topic_vector(field: str, word: str) -> list[float]:
    """The position of a word of a field, before any noise."""
    found = np.zeros(TOPIC_DIMENSIONS, dtype=np.float32)
    found[list(FIELDS).index(field)] = 1.0
    found[8 + FIELDS[field].index(word)] = 0.6
    return [float(v) for v in found]


def _vectors(random: np.random.Generator, topics: Any, words: Any) -> pa.Array:
    count = len(topics)
    values = random.normal(0, 0.05, (count, TOPIC_DIMENSIONS)).astype(np.float32)
    values[np.arange(count), topics] += 1.0
    values[np.arange(count), 8 + words[:, 0]] += 0.6
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), TOPIC_DIMENSIONS)


def _citations(random: np.random.Generator, size: Size) -> tuple[Any, Any]:
    """Papers cite earlier ones, and the famous ones more often."""
    citing = random.integers(1, size.papers, size.citations)
    fame = random.random(size.citations) ** 2
    return _distinct(citing, (citing * fame).astype(np.int64), size.papers)


def _distinct(a: Any, b: Any, width: int) -> tuple[Any, Any]:
    both = np.unique(a.astype(np.int64) * width + b)
    return both // width, both % width


def _pairs(sources: list[str], targets: list[str], a: Any, b: Any) -> dict[str, Any]:
    return {
        "from": pa.array(sources).take(pa.array(a)),
        "to": pa.array(targets).take(pa.array(b)),
    }
