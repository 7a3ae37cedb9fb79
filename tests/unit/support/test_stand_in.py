"""The stand-in gives the answers of a real S3 server, so what passes against one means something for the other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from tests.support.faulty_s3 import FaultyS3
from tests.support.s3server import S3Address
from tests.unit.support.clients import Answer, ask

pytestmark = pytest.mark.s3


@dataclass(frozen=True, slots=True)
class Step:
    """A request; `{p}` stands for a prefix and `{tag}` for the tag of the last object written."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


CREATE_ONLY = {"If-None-Match": "*"}
CONVERSATION = (
    Step("GET", "/{p}/a"),
    Step("HEAD", "/{p}/a"),
    Step("PUT", "/{p}/a", b"hello", CREATE_ONLY),
    Step("PUT", "/{p}/a", b"again", CREATE_ONLY),
    Step("GET", "/{p}/a"),
    Step("HEAD", "/{p}/a"),
    Step("GET", "/{p}/a", None, {"Range": "bytes=1-2"}),
    Step("GET", "/{p}/a", None, {"Range": "bytes=-2"}),
    Step("GET", "/{p}/a", None, {"Range": "bytes=3-"}),
    Step("GET", "/{p}/a", None, {"Range": "bytes=99-"}),
    Step("PUT", "/{p}/a", b"wrong", {"If-Match": '"00000000000000000000000000000000"'}),
    Step("PUT", "/{p}/a", b"swapped", {"If-Match": "{tag}"}),
    Step("GET", "/{p}/a"),
    Step("PUT", "/{p}/d/1", b"1"),
    Step("PUT", "/{p}/d/2", b"2"),
    Step("PUT", "/{p}/z%20%26", b"&"),
    Step("GET", "/?list-type=2&prefix={p}/"),
    Step("GET", "/?list-type=2&prefix={p}/&delimiter=/"),
    Step("GET", "/?list-type=2&prefix={p}/d/&start-after={p}/d/1"),
    Step("GET", "/?list-type=2&prefix={p}/&max-keys=2"),
    Step("GET", "/?list-type=2&prefix={p}/none/"),
    Step("DELETE", "/{p}/d/1"),
    Step("DELETE", "/{p}/d/1"),
    Step("GET", "/?list-type=2&prefix={p}/d/"),
)


def converse(address: S3Address, prefix: str) -> list[tuple[str, int, str]]:
    """What each step was answered: status, and content or listing."""
    tag, heard = "", []
    for step in CONVERSATION:
        path = step.path.replace("{p}", prefix)
        headers = {name: value.replace("{tag}", tag) for name, value in step.headers.items()}
        answer = ask(address, step.method, path, step.body, headers)
        if step.method == "PUT" and answer.status == 200:
            tag = answer.headers["etag"]
        heard.append((f"{step.method} {step.path} {step.headers}", answer.status, essence(answer)))
    return heard


def essence(answer: Answer) -> str:
    """The content, or what a listing lists, or nothing: words of errors and times differ."""
    if answer.status >= 300:
        return ""
    if "<ListBucketResult" not in answer.body:
        return answer.body + answer.headers.get("content-range", "")
    listed = re.findall(
        r"<Key>.*?</Key>|<CommonPrefixes><Prefix>.*?</Prefix>|<Size>\d+</Size>|<IsTruncated>\w+",
        answer.body,
    )
    return " ".join(sorted(listed))


def test_the_same_conversation(s3: S3Address, faulty_s3: FaultyS3, prefix: str) -> None:
    assert converse(faulty_s3.address, prefix) == converse(s3, prefix)
