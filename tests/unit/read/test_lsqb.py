"""The published counts of the LSQB patterns, on data that is not part of this repository.

`OMNIGRAPH_DATA` names the folder with `lsqb-example` and `lsqb-sf01`; without it these tests are skipped by name.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from omnigraph.lang import ir
from omnigraph.lang.languages import compile_cypher
from omnigraph.lang.query import compile_query
from omnigraph.read import Cache, run_query
from tests.support.snapshots import Graph, make_graph

DATA = Path(os.environ.get("OMNIGRAPH_DATA", "../shared/data"))

SCHEMA = """
interface Message { }
node Country { }
node City { }
node Person { }
node Forum { }
node Post implements Message { }
node Comment implements Message { }
node Tag { }
node TagClass { }
edge CityIn: City -> Country
edge PersonIn: Person -> City
edge Knows: Person -> Person
edge Interest: Person -> Tag
edge Member: Forum -> Person
edge Container: Forum -> Post
edge PostCreator: Post -> Person
edge CommentCreator: Comment -> Person
edge PostTag: Post -> Tag
edge CommentTag: Comment -> Tag
edge LikesPost: Person -> Post
edge LikesComment: Person -> Comment
edge ReplyToPost: Comment -> Post
edge ReplyToComment: Comment -> Comment
edge TagType: Tag -> TagClass
"""

FILES = {
    "CityIn": "City_isPartOf_Country",
    "PersonIn": "Person_isLocatedIn_City",
    "Knows": "Person_knows_Person",
    "Interest": "Person_hasInterest_Tag",
    "Member": "Forum_hasMember_Person",
    "Container": "Forum_containerOf_Post",
    "PostCreator": "Post_hasCreator_Person",
    "CommentCreator": "Comment_hasCreator_Person",
    "PostTag": "Post_hasTag_Tag",
    "CommentTag": "Comment_hasTag_Tag",
    "LikesPost": "Person_likes_Post",
    "LikesComment": "Person_likes_Comment",
    "ReplyToPost": "Comment_replyOf_Post",
    "ReplyToComment": "Comment_replyOf_Comment",
    "TagType": "Tag_hasType_TagClass",
}

ANSWERED = "$m: Message $m postTag|commentTag $t $m postCreator|commentCreator $p"
REPLIED = "$m: Message $m postTag|commentTag $t $c replyToPost|replyToComment $m $c commentTag $u $t != $u"
FRIENDS = "$a: Person $a <knows> $b $b <knows> $c $a != $c $c interest $t"
PATTERNS = {
    1: "$city cityIn $country $person personIn $city $forum member $person $forum container $post "
    "$comment replyToPost $post $comment commentTag $tag $tag tagType $class",
    2: "$c commentCreator $a $c replyToPost $post $post postCreator $b $a <knows> $b",
    3: "$x: Country $i cityIn $x $a personIn $i $j cityIn $x $b personIn $j $k cityIn $x $c personIn $k "
    "$a <knows> $b $b <knows> $c $c <knows> $a",
    4: ANSWERED + " $q likesPost|likesComment $m $c replyToPost|replyToComment $m",
    5: REPLIED,
    6: FRIENDS,
    7: ANSWERED
    + " optional { $q likesPost|likesComment $m } optional { $c replyToPost|replyToComment $m }",
    8: REPLIED + " not { $c commentTag $t }",
    9: FRIENDS + " not { $a <knows> $c }",
}


TAGGED = "(t:Tag)<-[:PostTag|CommentTag]-(m:Message)-[:PostCreator|CommentCreator]->(:Person)"
LIKED, ANSWER = (
    "(m)<-[:LikesPost|LikesComment]-(:Person)",
    "(m)<-[:ReplyToPost|ReplyToComment]-(:Comment)",
)
REPLY = (
    "(t:Tag)<-[:PostTag|CommentTag]-(m:Message)<-[:ReplyToPost|ReplyToComment]-(c:Comment)"
    "-[:CommentTag]->(u:Tag) WHERE t <> u"
)
FRIEND = "(a:Person)-[:Knows]-(b:Person)-[:Knows]-(c:Person)-[:Interest]->(:Tag) WHERE a <> c"
CYPHER = {
    1: "(:Country)<-[:CityIn]-(:City)<-[:PersonIn]-(:Person)<-[:Member]-(:Forum)-[:Container]->(:Post)"
    "<-[:ReplyToPost]-(:Comment)-[:CommentTag]->(:Tag)-[:TagType]->(:TagClass)",
    2: "(a:Person)-[:Knows]-(b:Person), (a)<-[:CommentCreator]-(:Comment)-[:ReplyToPost]->(:Post)"
    "-[:PostCreator]->(b)",
    3: "(x:Country) MATCH (a:Person)-[:PersonIn]->(:City)-[:CityIn]->(x) "
    "MATCH (b:Person)-[:PersonIn]->(:City)-[:CityIn]->(x) "
    "MATCH (c:Person)-[:PersonIn]->(:City)-[:CityIn]->(x) "
    "MATCH (a)-[:Knows]-(b)-[:Knows]-(c)-[:Knows]-(a)",
    4: f"{TAGGED}, {LIKED}, {ANSWER}",
    5: REPLY,
    6: FRIEND,
    7: f"{TAGGED} OPTIONAL MATCH {LIKED} OPTIONAL MATCH {ANSWER}",
    8: f"{REPLY} AND NOT (c)-[:CommentTag]->(t)",
    9: f"{FRIEND} AND NOT (a)-[:Knows]-(c)",
}


def load(data: Path, folder: Path) -> Graph:
    rows = {}
    for name in ("Country", "City", "Person", "Forum", "Post", "Comment", "Tag", "TagClass"):
        rows[name] = read(data / f"{name}.csv.gz", ["id"])
    for name, file in FILES.items():
        path = data / f"{file}.csv.gz"
        if path.exists():
            ends = read(path, ["src", "dst"])
            ids = pa.array([str(i) for i in range(ends.num_rows)])
            rows[name] = ends.add_column(0, "id", ids)
    return make_graph(folder, SCHEMA, rows)


def read(path: Path, names: list[str]) -> pa.Table:
    found = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(column_names=names, skip_rows=1),
        parse_options=pa.csv.ParseOptions(delimiter="|"),
    )
    return found.cast(pa.schema([(name, pa.string()) for name in names]))


def expected(data: Path) -> dict[int, int]:
    with (data / "expected.csv").open() as file:
        return {int(row["query"]): int(row["count"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", ["lsqb-example", "lsqb-sf01"])
def test_published_counts_are_reproduced_in_both_languages(name: str, tmp_path: Path) -> None:
    data = DATA / name
    if not data.exists():
        pytest.skip(f"no {name} in {DATA}")
    graph, cache = load(data, tmp_path), Cache()
    wanted = expected(data)
    for language, count in (("gq", _in_gq), ("cypher", _in_cypher)):
        plans = {number: count(number, graph) for number in wanted}
        found = {
            n: run_query(q, {}, graph.snapshot, cache=cache).scalar() for n, q in plans.items()
        }
        assert found == wanted, language


def _in_gq(number: int, graph: Graph) -> ir.Query:
    text = f"query q() {{ match {{ {PATTERNS[number]} }} return {{ count(*) as n }} }}"
    return compile_query(text, graph.catalog)


def _in_cypher(number: int, graph: Graph) -> ir.Query:
    return compile_cypher(f"MATCH {CYPHER[number]} RETURN count(*) AS n", graph.catalog)
