"""Random graphs over a rich schema, and random queries about them as text.

Values are few and small, so that things meet, and now and then at the ends of their types: NaN, both infinities and
zeros, the largest integers, the first and the last day, texts that are empty or long.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
interface Named { name: String age: I32? }
node Person implements Named {
  code: String @key
  name: String
  age: I32?
  big: I64?
  size: U64?
  floor: U32?
  score: F64?
  light: F32?
  born: Date?
  seen: DateTime?
  active: Bool?
  tags: [String]?
  marks: [I64]?
  sizes: [U64]?
  ratios: [F64]?
  lights: [F32]?
  days: [Date]?
  times: [DateTime]?
  flags: [Bool]?
  color: enum(red, green, blue)?
}
node City { name: String  people: I64?  opened: Date? }
node Pet implements Named { name: String  age: I32?  kind: String? }
edge Knows: Person -> Person { since: I32?  weight: F64?  note: String? }
edge Likes: Person -> Person { since: I32? }
edge LivesIn: Person -> City { since: I32? }
edge Owns: Person -> Pet { since: I32? }
edge Near: City -> City { since: I32? }
"""

ENDS = {
    "Knows": ("Person", "Person"),
    "Likes": ("Person", "Person"),
    "LivesIn": ("Person", "City"),
    "Owns": ("Person", "Pet"),
    "Near": ("City", "City"),
}
WORDS = ["a", "b", "ab", "Ba", "äö", "", "c c", "ABC", "é😀", "long " * 400]
FLOATS = [0.0, 0.5, 1.0, 2.5, -1.5, 3.0, float(2**53)]
F64_ENDS = [math.nan, math.inf, -math.inf, -0.0, 0.1, 5e-324, 1e300]
F32_ENDS = [math.nan, math.inf, -math.inf, -0.0, 0.10000000149011612, 1.401298464324817e-45]
INTEGER_ENDS = {
    "I32": [2**31 - 1, -(2**31)],
    "I64": [2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)],
    "U32": [2**32 - 1, 2**31],
    "U64": [2**63, 2**64 - 1, 2**53 + 1],
}
ENDS_OF_ALL = {
    "big",
    "size",
    "floor",
    "marks",
    "sizes",
}  # the others are added up, which has to stay exact
DAYS = [dt.date.min, dt.date.max]
TIMES = [
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC),
]
PROPERTIES: dict[str, dict[str, str]] = {
    "Person": {
        "code": "String",
        "name": "String",
        "age": "I32",
        "big": "I64",
        "size": "U64",
        "floor": "U32",
        "score": "F64",
        "light": "F32",
        "born": "Date",
        "seen": "DateTime",
        "active": "Bool",
        "tags": "[String]",
        "marks": "[I64]",
        "sizes": "[U64]",
        "ratios": "[F64]",
        "lights": "[F32]",
        "days": "[Date]",
        "times": "[DateTime]",
        "flags": "[Bool]",
        "color": "String",
    },
    "City": {"name": "String", "people": "I64", "opened": "Date"},
    "Pet": {"name": "String", "age": "I32", "kind": "String"},
    "Named": {"name": "String", "age": "I32"},
    "Knows": {"since": "I32", "weight": "F64", "note": "String"},
    "Likes": {"since": "I32"},
    "LivesIn": {"since": "I32"},
    "Owns": {"since": "I32"},
    "Near": {"since": "I32"},
}
# Every scalar type, and lists of each.
PROPERTIES["Every"] = {
    "text": "String", "flag": "Bool", "i32": "I32", "i64": "I64", "u32": "U32", "u64": "U64", "f32": "F32",
    "f64": "F64", "day": "Date", "time": "DateTime", "texts": "[String]", "flags": "[Bool]", "i32s": "[I32]",
    "i64s": "[I64]", "u32s": "[U32]", "u64s": "[U64]", "f32s": "[F32]", "f64s": "[F64]", "days": "[Date]",
    "times": "[DateTime]",
}  # fmt: skip
NUMERIC = {"I32", "I64", "U32", "U64", "F64", "F32"}
SUMMED = {"age", "score", "light", "people", "since", "weight"}


# --- graphs ------------------------------------------------------------------------------------------------------


def random_rows(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    """Rows of every type; small numbers and few words, so that things meet."""
    counts = {t: rng.randint(0, most) for t, most in (("Person", 9), ("City", 4), ("Pet", 4))}
    data: dict[str, list[dict[str, Any]]] = {}
    for kind, count in counts.items():
        ids = rng.sample(["a", "b", "c", "d", "e", "f", "g", "h", "i", "jé"], count)
        data[kind] = [
            _row(rng, kind, {"id": i, "code": i} if kind == "Person" else {"id": i}) for i in ids
        ]
    for kind, (src, dst) in ENDS.items():
        made = rng.randint(0, 14) if data[src] and data[dst] else 0
        numbers = rng.sample(range(100), made)
        data[kind] = [
            _row(
                rng,
                kind,
                {"id": f"e{n}", **_ends(rng, data[src], data[dst], loops=src == dst)},
            )
            for n in numbers
        ]
    return data


def _ends(
    rng: random.Random, src: list[dict[str, Any]], dst: list[dict[str, Any]], loops: bool
) -> dict[str, str]:
    first = rng.choice(src)["id"]
    loop = loops and rng.random() < 0.15
    return {"src": first, "dst": first if loop else rng.choice(dst)["id"]}


def _row(rng: random.Random, kind: str, row: dict[str, Any]) -> dict[str, Any]:
    for name, type_ in PROPERTIES[kind].items():
        if name not in row:
            null = rng.random() < 0.25 and name != "name"
            row[name] = None if null else random_value(rng, name, type_)
    return row


def random_everything(rng: random.Random, n: int) -> list[dict[str, Any]]:
    """Rows of `Every`, at the ends of their types now and then; some texts are huge."""
    made = []
    for i in range(n):
        row: dict[str, Any] = {"k": f"k{i}"}
        for name, kind in PROPERTIES["Every"].items():
            row[name] = None if rng.random() < 0.2 else random_value(rng, "big", kind)
        if rng.random() < 0.05:
            row["text"] = "huge " * 40_000
        made.append(row)
    return made


def random_value(rng: random.Random, name: str, kind: str) -> Any:
    match kind:
        case "String" if name == "color":
            return rng.choice(["red", "green", "blue"])
        case "String":
            return rng.choice(WORDS)
        case "I32" | "I64" | "U32" | "U64" if name in ENDS_OF_ALL and rng.random() < 0.3:
            return rng.choice(INTEGER_ENDS[kind])
        case "I32" | "I64":
            return rng.randint(-3, 5)
        case "U32" | "U64":
            return rng.randint(0, 5)
        case "F64" | "F32":
            return rng.choice(FLOATS + (F64_ENDS if kind == "F64" else F32_ENDS))
        case "Bool":
            return rng.random() < 0.5
        case "Date" if rng.random() < 0.1:
            return rng.choice(DAYS)
        case "DateTime" if rng.random() < 0.1:
            return rng.choice(TIMES)
        case "Date":
            return dt.date(2020, 1, 1) + dt.timedelta(days=rng.randint(-40, 400))
        case "DateTime":
            base = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
            return base + dt.timedelta(seconds=rng.randint(-10_000_000, 10_000_000))
        case _:
            element = kind.strip("[]")
            return [random_value(rng, name, element) for _ in range(rng.randint(0, 3))]


def json_value(value: Any) -> Any:
    """A value as a record of JSON spells it."""
    if isinstance(value, list):
        return [json_value(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value.isoformat() if isinstance(value, dt.date) else value


FLOAT_LITERALS = [
    "0.5",
    "1.0",
    "2.5",
    "-1.5",
    "9007199254740992.0",
    "0.0",
    "-0.0",
    "0.1",
    "1e300",
    "5e-324",
]
FLOAT_LITERALS += [f'cast("{text}" as F64)' for text in ("NaN", "inf", "-inf")]


def written(clauses: list[str], returned: str) -> str:
    return f"query q() {{ match {{ {' '.join(clauses)} }} {returned} }}"


# --- queries -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Scope:
    """What is bound so far: node variables, edge variables and paths, with their types."""

    nodes: dict[str, str] = field(default_factory=dict)
    edges: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)

    def copy(self) -> Scope:
        return Scope(dict(self.nodes), dict(self.edges), list(self.paths))


class QueryMaker:
    """Makes one query; the same random numbers make the same query."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = 0

    def query(self) -> str:
        if self.rng.random() < 0.06:
            return self.union()
        clauses, returned = self.parts()
        return written(clauses, returned)

    def parts(self) -> tuple[list[str], str]:
        """The clauses of a pattern, and what stands behind it."""
        scope = Scope()
        clauses = self.pattern(scope, self.rng.randint(0, 3))
        return clauses, self.returns(scope)

    def union(self) -> str:
        parts = []
        for _ in range(2):
            scope = Scope()
            clauses = self.pattern(scope, 1)
            var = self.rng.choice(list(scope.nodes))
            number = self.rng.choice([t for t, k in self.all_properties(scope) if k in NUMERIC])
            returned = f"return {{ {number} as x, ${var}.@id as y }}"
            parts.append(f"match {{ {' '.join(clauses)} }} {returned}")
        word = self.rng.choice([" union ", " union all "])
        return f"query q() {{ {word.join(parts)} {self.rng.choice(['', 'order { x, y desc } limit 3'])} }}"

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # --- patterns ---

    def pattern(self, scope: Scope, traversals: int) -> list[str]:
        clauses = [self.binding(scope)]
        for _ in range(traversals):
            clauses += self.traversal(scope)
        if self.rng.random() < 0.15 and traversals < 2:
            clauses.append(self.binding(scope))
        while self.rng.random() < 0.45:
            clauses.append(self.condition(scope))
        while self.rng.random() < 0.3:
            clauses.append(self.nested(scope))
        return clauses

    def binding(self, scope: Scope) -> str:
        var = self.fresh("n")
        kind = self.rng.choices(["Person", "City", "Pet", "Named"], [6, 2, 1, 1])[0]
        scope.nodes[var] = kind
        if kind == "Person" and self.rng.random() < 0.15:
            return f'${var}: Person {{ code: "{self.rng.choice("abcdefg")}" }}'
        if self.rng.random() < 0.15:
            name = self.rng.choice(["name", "age"] if kind != "City" else ["name", "people"])
            return f"${var}: {kind} {{ {name}: {self.literal(PROPERTIES[kind][name])} }}"
        return f"${var}: {kind}"

    def traversal(self, scope: Scope) -> list[str]:
        start = self.rng.choice(list(scope.nodes))
        kind = scope.nodes[start]
        fitting = [e for e, ends in ENDS.items() if kind in ends]
        if not fitting:
            return []
        edge = self.rng.choice(fitting)
        src, dst = ENDS[edge]
        forward = kind == src and (src != dst or self.rng.random() < 0.7)
        far = dst if forward else src
        end = self.end(scope, start, far)
        words = edge[0].lower() + edge[1:]
        if edge in ("Knows", "Likes") and self.rng.random() < 0.2:
            words = "knows|likes"
        if src == dst and self.rng.random() < 0.2:
            words = f"<{words}>"
        ends = (start, end) if forward else (end, start)
        return [self.spelled(scope, ends, words, src == dst, edge)]

    def end(self, scope: Scope, start: str, far: str) -> str:
        if scope.nodes[start] == far and self.rng.random() < 0.07:
            return start
        known = [v for v, t in scope.nodes.items() if t == far and v != start]
        if known and self.rng.random() < 0.25:
            return self.rng.choice(known)
        var = self.fresh("n")
        scope.nodes[var] = far
        return var

    def spelled(
        self, scope: Scope, ends: tuple[str, str], words: str, chains: bool, edge: str
    ) -> str:
        first, second = ends
        chance = self.rng.random()
        if chance < 0.2:
            var = self.fresh("e")
            if "|" not in words:
                scope.edges[var] = edge
                return f"${first} ${var}:{words} ${second}"
        if chance < 0.45:
            hops = self.rng.choice(["{1,2}", "{2,2}", "{1,3}", "{2,3}", "{3,3}"])
            path = ""
            if self.rng.random() < 0.3:
                name = self.fresh("p")
                scope.paths.append(name)
                path = f"${name} = path "
            return f"{path}${first} {words}{hops} ${second}"
        return f"${first} {words} ${second}"

    def nested(self, scope: Scope) -> str:
        word = self.rng.choice(["not", "exists", "optional", "count", "sum"])
        inner = scope.copy()
        clauses: list[str] = []
        for _ in range(self.rng.randint(1, 2)):
            clauses += self.traversal(inner)
        if not clauses:
            return self.condition(scope)
        if self.rng.random() < 0.4:
            clauses.append(self.condition(inner))
        if self.rng.random() < 0.15:
            clauses.append(self.nested(inner))
        if word == "optional":
            scope.nodes, scope.edges, scope.paths = inner.nodes, inner.edges, inner.paths
        block = f"{{ {' '.join(clauses)} }}"
        if word in ("count", "sum"):
            return f"{self.measure(word, inner)} {block} {self.measured_as()}"
        return f"{word} {block}"

    def measure(self, word: str, inner: Scope) -> str:
        """What is measured of a block: its solutions, the nodes of a variable, or a number of them."""
        people = [name for name, kind in inner.nodes.items() if kind == "Person"]
        if word == "sum" and people:
            function = self.rng.choice(["sum", "avg", "min", "max"])
            return f"{function}(${self.rng.choice(people)}.age)"
        distinct = f"count(distinct ${self.rng.choice(sorted(inner.nodes))})"
        return self.rng.choice(["count", "count", distinct])

    def measured_as(self) -> str:
        return f"{self.rng.choice(['=', '!=', '<', '<=', '>', '>='])} {self.rng.randint(0, 4)}"

    # --- expressions ---

    def condition_on_every(self) -> str:
        """A condition on `$n: Every`; often one float is compared, which is the hardest to get right."""
        if self.rng.random() < 0.7:
            return self.condition(Scope({"n": "Every"}))
        op = self.rng.choice(["=", "!=", "<", "<=", ">", ">="])
        test = f"$n.{self.rng.choice(['f32', 'f64'])} {op} {self.literal('F64')}"
        return self.rng.choice([f"({test})", f"(not ({test}))"])

    def condition(self, scope: Scope, depth: int = 0) -> str:
        chance = self.rng.random()
        if depth < 2 and chance < 0.25:
            word = self.rng.choice([" and ", " or "])
            return f"({self.condition(scope, depth + 1)}{word}{self.condition(scope, depth + 1)})"
        if depth < 2 and chance < 0.32:
            return f"(not ({self.condition(scope, depth + 1)}))"
        same = [v for v in scope.nodes if scope.nodes[v] == "Person"]
        if len(same) > 1 and chance < 0.4:
            a, b = self.rng.sample(same, 2)
            return f"(${a} {self.rng.choice(['=', '!='])} ${b})"
        return self.comparison(scope)

    def comparison(self, scope: Scope) -> str:
        text, kind = self.property(scope)
        chance = self.rng.random()
        if chance < 0.15:
            return f"({text} is {self.rng.choice(['', 'not '])}null)"
        if kind.startswith("["):
            item = self.other(scope, kind.strip("[]"))
            return f"({text} contains {item})" if chance < 0.6 else f"({item} in {text})"
        if kind == "String" and chance < 0.4:
            word = self.rng.choice(["contains", "starts_with"])
            return f"({text} {word} {self.literal('String')})"
        if chance < 0.55 and kind != "Bool":
            members = ", ".join(self.literal(kind) for _ in range(self.rng.randint(1, 3)))
            return f"({text} {self.rng.choice(['', 'not '])}in [{members}])"
        op = self.rng.choice(["=", "!=", "<", "<=", ">", ">="])
        return f"({self.value(scope, text, kind)} {op} {self.other(scope, kind)})"

    def value(self, scope: Scope, text: str, kind: str) -> str:
        chance = self.rng.random()
        if kind in NUMERIC and chance < 0.25:
            other = self.rng.choice(["2", "3", "0", "1.5", "-1", text])
            return f"({text} {self.rng.choice('+-*/%')} {other})"
        if kind in NUMERIC and chance < 0.3:
            wanted = self.rng.choice(["I32", "I64", "U64", "F32", "F64"])
            return self.rng.choice(
                [f"(-{text})", f"cast({text} as {wanted})", f"coalesce({text}, 1.5)"]
            )
        if kind == "String" and chance < 0.3:
            made = [
                f"lower({text})",
                f"upper({text})",
                f"trim({text})",
                f'concat({text}, "b")',
                f"substring({text}, 1, 2)",
                f"substring({text}, 0, 9223372036854775807)",
                f"cast(length({text}) as String)",
            ]
            return self.rng.choice(made)
        return text

    def other(self, scope: Scope, kind: str) -> str:
        if self.rng.random() < 0.3:
            alike = [t for t, k in self.all_properties(scope) if self.fits(k, kind)]
            if alike:
                return self.rng.choice(alike)
        return self.literal(self.rng.choice(["I64", "F64", "U64"]) if kind in NUMERIC else kind)

    def fits(self, one: str, other: str) -> bool:
        return one == other or (one in NUMERIC and other in NUMERIC)

    def literal(self, kind: str) -> str:
        match kind:
            case "String":
                return '"' + self.rng.choice([*WORDS, "red"]) + '"'
            case "I32" | "I64":
                return str(
                    self.rng.choice(
                        [-1, 0, 1, 2, 3, 4, 2**31 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
                    )
                )
            case "U32" | "U64":
                return str(self.rng.choice([0, 1, 2, 3, 4, 2**32 - 1, 2**63, 2**64 - 1]))
            case "F64" | "F32":
                return self.rng.choice(FLOAT_LITERALS)
            case "Bool":
                return self.rng.choice(["true", "false"])
            case "Date" if self.rng.random() < 0.1:
                return f'date("{self.rng.choice(DAYS)}")'
            case "DateTime" if self.rng.random() < 0.1:
                return f'datetime("{self.rng.choice(TIMES).isoformat()}")'
            case "Date":
                return (
                    f'date("{dt.date(2020, 1, 1) + dt.timedelta(days=self.rng.randint(-40, 400))}")'
                )
            case _:
                return f'datetime("2020-0{self.rng.randint(1, 9)}-11T10:00:00Z")'

    def all_properties(self, scope: Scope) -> list[tuple[str, str]]:
        found = []
        for var, kind in (scope.nodes | scope.edges).items():
            found += [(f"${var}.{name}", type_) for name, type_ in PROPERTIES[kind].items()]
        return found

    def property(self, scope: Scope) -> tuple[str, str]:
        return self.rng.choice(self.all_properties(scope))

    # --- results ---

    def returns(self, scope: Scope) -> str:
        if self.rng.random() < 0.45:
            return self.aggregated(scope)
        columns = [self.column(scope) for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.25:
            return self.distinct(scope)
        text = ", ".join(f"{c} as c{i}" for i, c in enumerate(columns))
        if self.rng.random() < 0.4:
            keys = ", ".join(self.ordering(scope) for _ in range(self.rng.randint(1, 2)))
            return f"return {{ {text} }} order {{ {keys} }} {self.cut()}"
        return f"return {{ {text} }}"

    def distinct(self, scope: Scope) -> str:
        plain = [t for t, k in self.all_properties(scope) if not k.startswith("[")]
        columns = self.rng.sample(plain, min(2, len(plain)))
        text = ", ".join(f"{c} as c{i}" for i, c in enumerate(columns))
        order = (
            f"order {{ c0 {self.rng.choice(['asc', 'desc'])} }} {self.cut()}"
            if self.rng.random() < 0.5
            else ""
        )
        return f"return distinct {{ {text} }} {order}"

    def column(self, scope: Scope) -> str:
        chance = self.rng.random()
        if scope.paths and chance < 0.5:
            path = self.rng.choice(scope.paths)
            return self.rng.choice(
                [f"length(${path})", f"nodes(${path})", f"edges(${path})", f"${path}"]
            )
        if chance < 0.3:
            return f"${self.rng.choice(list(scope.nodes))}"
        text, kind = self.property(scope)
        return text if kind.startswith("[") else self.value(scope, text, kind)

    def ordering(self, scope: Scope) -> str:
        plain = [t for t, k in self.all_properties(scope) if not k.startswith("[")]
        return f"{self.rng.choice(plain)} {self.rng.choice(['', 'asc', 'desc'])}"

    def cut(self) -> str:
        skip = f"skip {self.rng.randint(0, 2)}" if self.rng.random() < 0.3 else ""
        limit = f"limit {self.rng.randint(0, 5)}" if self.rng.random() < 0.7 else ""
        return f"{skip} {limit}"

    def aggregated(self, scope: Scope) -> str:
        keys = []
        for _ in range(self.rng.randint(0, 2)):
            text, kind = self.property(scope)
            keys.append(
                f"${self.rng.choice(list(scope.nodes))}"
                if kind.startswith("[") or self.rng.random() < 0.3
                else text
            )
        made = [self.aggregate(scope) for _ in range(self.rng.randint(1, 2))]
        columns = [f"{c} as k{i}" for i, c in enumerate(keys)] + [
            f"{a} as a{i}" for i, a in enumerate(made)
        ]
        text = f"return {{ {', '.join(columns)} }}"
        if self.rng.random() < 0.2 and made[0].startswith("count"):
            text += f" having {{ a0 {self.rng.choice(['>', '<='])} {self.rng.randint(0, 3)} }}"
        if self.rng.random() < 0.5 and not made[0].startswith("collect"):
            text += f" order {{ a0 {self.rng.choice(['asc', 'desc'])} }} {self.cut()}"
        return text

    def aggregate(self, scope: Scope) -> str:
        var = self.rng.choice(list(scope.nodes))
        text, kind = self.property(scope)
        chance = self.rng.random()
        if chance < 0.25:
            return "count(*)"
        if chance < 0.5:
            return f"count({self.rng.choice(['', 'distinct '])}${var})"
        if kind.startswith("["):
            return f"count({text})"
        if chance < 0.6:
            return f"count({self.rng.choice(['', 'distinct '])}{text})"
        if chance < 0.7:
            return f"collect({self.rng.choice(['', 'distinct '])}{text})"
        if text.partition(".")[2] in SUMMED and chance < 0.85:
            return f"{self.rng.choice(['sum', 'avg'])}({self.rng.choice(['', 'distinct '])}{text})"
        if kind == "Bool":
            return "count(*)"
        return f"{self.rng.choice(['min', 'max'])}({text})"
