"""Texts of the query language for property tests: valid ones from the grammar, and damaged ones."""

from __future__ import annotations

import re

from hypothesis import strategies as st

NUMBERS = ["1", "-2", "2.5", "1e3", "-0.5", "0"]
TEXTS = ['"a"', '"x\\"y"', '"two words"', '""']
NUMERIC = ["$v.teu", "$v.imo", "$p.depth", "$low", "length($v.name)", "year($v.built)"]
STRINGS = ["$v.name", "$v.flag", "$p.code", "$name", "lower($v.name)", "$p.id"]
COMMENTS = ["", "", "", " // why\n", " /* here */ ", "\n", "\n\n\n", "\n// before\n"]


@st.composite
def numeric(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*NUMERIC, *NUMBERS]))
    op = draw(st.sampled_from("+-*/%"))
    left, right = draw(numeric(depth - 1)), draw(numeric(depth - 1))
    return draw(
        st.sampled_from(
            [f"{left} {op} {right}", f"({left} {op} {right})", f"-({left})", f"coalesce({left}, 1)"]
        )
    )


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.integers(0, 9 if depth else 6))
    number, text = draw(numeric()), draw(st.sampled_from([*STRINGS, *TEXTS]))
    op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    match kind:
        case 0 | 1:
            return f"{number} {op} {draw(numeric())}"
        case 2:
            return f"{text} {op} {draw(st.sampled_from(STRINGS))}"
        case 3:
            return f"$v.name {draw(st.sampled_from(['contains', 'starts_with']))} {text}"
        case 4:
            return f"$v.flag is {draw(st.sampled_from(['', 'not ']))}null"
        case 5:
            return f"$v.teu {draw(st.sampled_from(['in', 'not in']))} [1, -2, $low]"
        case 6:
            return 'search($v.notes, "a")'
        case 7:
            return f"not {draw(conditions(depth - 1))}"
        case _:
            word = draw(st.sampled_from(["and", "or"]))
            return f"({draw(conditions(depth - 1))} {word} {draw(conditions(depth - 1))})"


@st.composite
def clauses(draw: st.DrawFn, depth: int = 1) -> str:
    fixed = [
        "$p lane $q",
        "$p lane{1,3} $q",
        "$q <lane> $p",
        "$p lane $_",
        "$w: Vessel { active: true }",
        '$p: Port { region: "east" }',
        "$v: Vessel { flag: $name, }",
    ]
    if depth and draw(st.integers(0, 3)) == 0:
        word = draw(st.sampled_from(["not", "exists", "optional"]))
        inner = draw(st.sampled_from(["$v calls $p", "$p lane $_", "$z calls $p $z.teu > 1"]))
        return f"{word} {{ {inner} {draw(conditions(1))} }}".replace(
            "$z calls $p $z.teu > 1", "$x calls $p" if word == "optional" else "$y calls $p"
        )
    return draw(st.one_of(st.sampled_from(fixed), conditions()))


@st.composite
def reads(draw: st.DrawFn) -> str:
    parts = draw(st.lists(clauses(), max_size=5))
    gaps = [draw(st.sampled_from(COMMENTS)) for _ in range(len(parts) + 1)]
    body = "".join(f"{gap} {part} " for gap, part in zip(gaps, parts, strict=False))
    columns = draw(
        st.sampled_from(
            [
                "$v.name as n",
                "$v.name as n, $p.code $p.depth + 1 as k",
                "$p.region as n, count($v) as c, min($v.built)",
                "$p.*, lower($v.name) as n",
                "entity($v) as e, $v.name as n, 1",
                'bm25($v.notes, "a") as s, $v.name as n',
            ]
        )
    )
    distinct = draw(st.sampled_from(["", "distinct "]))
    order = draw(st.sampled_from(["", " order { n desc }", " order { n, n asc }"]))
    tail = draw(st.sampled_from(["", " limit 3", " skip 2 limit $low", " limit 0"]))
    note = draw(st.sampled_from(["", ' @description("d")']))
    return (
        f"query q($name: String, $low: I64){note} {{ match {{ $v: Vessel $v calls $p {body}}} "
        f"return {distinct}{{ {columns} }}{gaps[-1]}{order}{tail} }}"
    )


@st.composite
def mutations(draw: st.DrawFn) -> str:
    statements = [
        'insert Crew { badge: "a" rank: 1 }, { badge: $name }',
        'insert Lane { from: $name, to: "b", nm: -3 }',
        "update Crew set { rank: rank + 1 } where rank > 2 and badge != $name",
        'update Lane set { toll: null, nm: $low } where from = "a" or nm is null',
    ]
    chosen = draw(st.lists(st.sampled_from(statements), min_size=1, max_size=3))
    gap = draw(st.sampled_from(COMMENTS))
    return f"query m($name: String, $low: I64) {{{gap} {f'{gap} '.join(chosen)}{gap} }}"


def query_texts() -> st.SearchStrategy[str]:
    """Texts that parse; most of them check as well."""
    one = st.one_of(reads(), mutations())
    return st.builds(lambda a, b, c: f"{c}{a}{c}{b}", one, one, st.sampled_from(COMMENTS))


WORD = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*\n|/\*.*?\*/|[^\s"]+', re.DOTALL)
LONG = '"' + "long " * 12 + '"'
BETWEEN = [*COMMENTS[3:], "\n// }\n", "\n/* of\ntwo */\n", "\n\n// far\n\n"]


@st.composite
def spaced_texts(draw: st.DrawFn) -> str:
    """The same with comments and line breaks between any two words, and values that do not fit on one line."""
    words = WORD.findall(draw(query_texts()).replace('"b"', LONG).replace('"a"', LONG))
    places = draw(st.dictionaries(st.integers(0, len(words)), st.sampled_from(BETWEEN), max_size=6))
    return "".join(word + places.get(number, " ") for number, word in enumerate(words))


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """A text from the grammar with a piece cut out, doubled or replaced."""
    text = draw(st.one_of(reads(), mutations()))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 12)))
    piece = draw(
        st.sampled_from(
            ["", "{", "}", "(", "$", "$x", "not", "or", "-", '"', "1", text[start:end] * 2]
        )
    )
    return text[:start] + piece + text[end:]


SOUP = (
    "query q ( ) { } [ ] match return $a $b $p $low : Port Crew lane calls | < > = != not exists optional in is null "
    'and or contains starts_with , . code id * - + / % 1 2.5 "x" as order limit skip having union all distinct path '
    "insert update delete set where now count sum lower search nearest bm25 rrf @description true date {1,2} // /* */"
)
WORDS = SOUP.split()


@st.composite
def word_soups(draw: st.DrawFn) -> str:
    """Words of the language in any order, alone or where a clause, a column or a statement is expected."""
    soup = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=25)))
    frame = draw(
        st.sampled_from(
            [
                "%s",
                "query q($low: I64) { match { $p: Port %s } return { $p.code } }",
                "query q($low: I64) { match { $p: Port } return { %s } }",
                "query q($low: I64) { %s }",
            ]
        )
    )
    return frame % soup
