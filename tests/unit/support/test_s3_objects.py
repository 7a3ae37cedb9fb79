"""The stand-in answers as S3 does, and refuses what it does not know."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

import pytest

from tests.support.s3_objects import PART_BYTES_MIN, Bucket, Outcome, Request, Response


def ask(
    bucket: Bucket,
    method: str,
    key: str = "",
    body: bytes = b"",
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer and apply."""
    outcome = plan(bucket, method, key, body, query=query, headers=headers)
    if outcome.apply:
        outcome.apply()
    return outcome.response


def plan(
    bucket: Bucket,
    method: str,
    key: str = "",
    body: bytes = b"",
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Outcome:
    length = {"content-length": str(len(body))} if method in ("PUT", "POST") else {}
    fields = {**length, **(headers or {})}
    return bucket.answer(Request(method, "b", key, query or {}, fields, body, "tests"))


def code(response: Response) -> str:
    text = response.body.decode()
    return text.partition("<Code>")[2].partition("</Code>")[0]


@pytest.fixture
def bucket() -> Bucket:
    filled = Bucket("b")
    for key in ("a", "d/1", "d/2", "d/e/3", "z"):
        ask(filled, "PUT", key, key.encode())
    return filled


def listed(bucket: Bucket, **query: str) -> tuple[list[str], list[str]]:
    """Keys and common prefixes over all pages."""
    keys: list[str] = []
    prefixes: list[str] = []
    extra: dict[str, str] = {}
    while True:
        parameters = {name.replace("_", "-"): value for name, value in query.items()}
        text = ask(bucket, "GET", query={"list-type": "2", **parameters, **extra}).body.decode()
        keys += [part.partition("</Key>")[0] for part in text.split("<Key>")[1:]]
        prefixes += [
            part.partition("</Prefix>")[0] for part in text.split("<CommonPrefixes><Prefix>")[1:]
        ]
        token = text.partition("<NextContinuationToken>")[2].partition("<")[0]
        assert ("<IsTruncated>true" in text) == bool(token)
        if not token:
            return keys, prefixes
        extra = {"continuation-token": token}


def test_answering_changes_nothing_until_applied(bucket: Bucket) -> None:
    outcome = plan(bucket, "PUT", "new", b"x")
    assert "new" not in bucket.objects
    assert outcome.apply is not None
    outcome.apply()
    assert bucket.objects["new"].body == b"x"


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
def test_every_page_size_lists_the_same(bucket: Bucket, page: int) -> None:
    bucket.page_keys_max = page
    assert listed(bucket) == (["a", "d/1", "d/2", "d/e/3", "z"], [])
    assert listed(bucket, delimiter="/") == (["a", "z"], ["d/"])
    assert listed(bucket, prefix="d/", delimiter="/") == (["d/1", "d/2"], ["d/e/"])


def test_start_after_and_max_keys(bucket: Bucket) -> None:
    assert listed(bucket, prefix="d/", start_after="d/1")[0] == ["d/2", "d/e/3"]
    first = ask(bucket, "GET", query={"list-type": "2", "max-keys": "1"}).body.decode()
    assert "<Key>a</Key>" in first
    assert "<KeyCount>1</KeyCount>" in first


@pytest.mark.parametrize(
    ("text", "expected"),
    [("bytes=0-0", b"d"), ("bytes=1-", b"/e/3"), ("bytes=-2", b"/3"), ("bytes=3-99", b"/3")],
)
def test_ranges(bucket: Bucket, text: str, expected: bytes) -> None:
    answer = ask(bucket, "GET", "d/e/3", headers={"range": text})
    assert (answer.status, answer.body) == (206, expected)


def test_a_range_behind_the_end_is_refused(bucket: Bucket) -> None:
    assert ask(bucket, "GET", "a", headers={"range": "bytes=9-"}).status == 416


def test_create_only_and_compare_and_swap(bucket: Bucket) -> None:
    assert ask(bucket, "PUT", "a", b"2", headers={"if-none-match": "*"}).status == 412
    assert ask(bucket, "PUT", "n", b"2", headers={"if-none-match": "*"}).status == 200
    etag = bucket.objects["a"].etag
    assert ask(bucket, "PUT", "a", b"3", headers={"if-match": etag}).status == 200
    assert ask(bucket, "PUT", "a", b"4", headers={"if-match": etag}).status == 412
    assert ask(bucket, "PUT", "none", b"4", headers={"if-match": etag}).status == 404
    assert bucket.objects["a"].body == b"3"


def test_conditional_reads(bucket: Bucket) -> None:
    etag = bucket.objects["a"].etag
    assert ask(bucket, "GET", "a", headers={"if-none-match": etag}).status == 304
    assert ask(bucket, "GET", "a", headers={"if-match": '"other"'}).status == 412


def test_head_tells_the_length_without_the_content(bucket: Bucket) -> None:
    answer = ask(bucket, "HEAD", "d/e/3")
    assert (answer.headers["Content-Length"], answer.body) == ("5", b"")


def test_copy_and_its_condition(bucket: Bucket) -> None:
    source = {"x-amz-copy-source": "/b/d/1"}
    assert ask(bucket, "PUT", "copy", headers=source).status == 200
    assert bucket.objects["copy"].body == b"d/1"
    assert ask(bucket, "PUT", "a", headers={**source, "if-none-match": "*"}).status == 412


def test_deleting_what_is_not_there_is_no_durable_write(bucket: Bucket) -> None:
    assert plan(bucket, "DELETE", "a").apply is not None
    assert plan(bucket, "DELETE", "none").apply is None


def test_batch_delete_needs_a_checksum(bucket: Bucket) -> None:
    body = b"<Delete><Object><Key>a</Key></Object><Object><Key>z</Key></Object></Delete>"
    refused = ask(bucket, "POST", body=body, query={"delete": ""})
    assert code(refused) == "InvalidRequest"
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    assert (
        ask(bucket, "POST", "", body, query={"delete": ""}, headers={"content-md5": digest}).status
        == 200
    )
    assert listed(bucket)[0] == ["d/1", "d/2", "d/e/3"]


def upload(bucket: Bucket, *parts: bytes) -> tuple[str, bytes]:
    """Upload parts; the id, and the body that completes it."""
    text = ask(bucket, "POST", "big", query={"uploads": ""}).body.decode()
    identity = text.partition("<UploadId>")[2].partition("<")[0]
    listing = ""
    for number, part in enumerate(parts, 1):
        query = {"uploadId": identity, "partNumber": str(number)}
        etag = ask(bucket, "PUT", "big", part, query=query).headers["ETag"]
        listing += f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
    return identity, f"<CompleteMultipartUpload>{listing}</CompleteMultipartUpload>".encode()


def test_an_upload_in_parts_appears_when_complete(bucket: Bucket) -> None:
    large = b"x" * PART_BYTES_MIN
    identity, listing = upload(bucket, large, b"end")
    assert "big" not in bucket.objects
    assert ask(bucket, "POST", "big", listing, query={"uploadId": identity}).status == 200
    assert bucket.objects["big"].body == large + b"end"
    again = ask(bucket, "POST", "big", listing, query={"uploadId": identity})
    assert code(again) == "NoSuchUpload"


def test_small_parts_are_refused(bucket: Bucket) -> None:
    identity, listing = upload(bucket, b"small", b"end")
    assert (
        code(ask(bucket, "POST", "big", listing, query={"uploadId": identity})) == "EntityTooSmall"
    )


def test_completing_with_another_part_is_refused(bucket: Bucket) -> None:
    identity, listing = upload(bucket, b"end")
    wrong = listing.replace(b"<ETag>", b"<ETag>0")
    assert code(ask(bucket, "POST", "big", wrong, query={"uploadId": identity})) == "InvalidPart"


def test_an_aborted_upload_is_gone(bucket: Bucket) -> None:
    identity, listing = upload(bucket, b"end")
    assert ask(bucket, "DELETE", "big", query={"uploadId": identity}).status == 204
    assert code(ask(bucket, "POST", "big", listing, query={"uploadId": identity})) == "NoSuchUpload"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (("PUT", "k", {"acl": ""}, {}), "NotImplemented"),
        (("GET", "", {"list-type": "1"}, {}), "NotImplemented"),
        (("GET", "", {"list-type": "2", "fetch-owner": "true"}, {}), "NotImplemented"),
        (("PUT", "k", {}, {"x-amz-tagging": "a=b"}), "NotImplemented"),
        (("PUT", "k", {}, {"if-none-match": '"etag"'}), "NotImplemented"),
        (("PUT", "k", {}, {"if-none-match": "*", "if-match": '"e"'}), "InvalidRequest"),
        (("PUT", "k" * 1025, {}, {}), "KeyTooLongError"),
        (("PUT", "k", {}, {"content-md5": "AAAA"}), "BadDigest"),
        (("PUT", "k", {}, {"x-amz-content-sha256": "0" * 64}), "XAmzContentSHA256Mismatch"),
        (("GET", "", {"list-type": "2", "max-keys": "many"}, {}), "InvalidArgument"),
        (("PATCH", "k", {}, {}), "NotImplemented"),
        (("GET", "none", {}, {}), "NoSuchKey"),
    ],
)
def test_what_is_wrong_or_unknown_is_refused_by_name(
    bucket: Bucket, case: tuple[str, str, dict[str, str], dict[str, str]], expected: str
) -> None:
    method, key, query, headers = case
    assert code(ask(bucket, method, key, b"x", query=query, headers=headers)) == expected


def test_a_copy_of_the_bucket_is_independent(bucket: Bucket) -> None:
    before = bucket.copy()
    ask(bucket, "DELETE", "a")
    assert "a" in before.objects
    assert listed(before) != listed(bucket)
