"""What S3 answers: a bucket in memory, stricter than the real one.

`Bucket.answer` never changes anything. It returns the response together with the change it would make, so that whoever
serves it decides whether the change happens, and whether the client hears of it. What this stand-in does not know, or
S3 would merely ignore, is refused.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import islice
from urllib.parse import quote, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

KEY_BYTES_MAX = 1024
PAGE_KEYS_MAX = 1000
PART_BYTES_MIN = 5 << 20
PART_NUMBER_MAX = 10_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

KNOWN_QUERIES: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"uploads"}),
    frozenset({"uploadId"}),
    frozenset({"partNumber", "uploadId"}),
    frozenset({"delete"}),
)
LIST_PARAMETERS = frozenset(
    {"list-type", "prefix", "delimiter", "max-keys", "start-after", "continuation-token"}
)
REFUSED_HEADERS = re.compile(
    r"x-amz-(copy-source-if|server-side|tagging|acl|object-lock)|if-(un)?modified"
)
CHECKSUMS: Mapping[str, Callable[[bytes], bytes]] = {
    "x-amz-checksum-sha256": lambda body: hashlib.sha256(body).digest(),
    "x-amz-checksum-crc32": lambda body: zlib.crc32(body).to_bytes(4, "big"),
    "content-md5": lambda body: hashlib.md5(body, usedforsecurity=False).digest(),
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its address taken apart; `actor` is the access key it was signed with."""

    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    actor: str


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer, and the durable change that goes with it (None: nothing changes)."""

    response: Response
    apply: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class StoredObject:
    body: bytes
    etag: str
    modified: datetime


class Refused(Exception):
    """An error answer with its S3 code."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message or code

    def response(self) -> Response:
        body = f"<Error><Code>{self.code}</Code><Message>{escape(self.message)}</Message></Error>"
        return _xml(body, status=self.status)


@dataclass(slots=True)
class Bucket:
    """All objects and unfinished uploads. The clock is logical: one second per write."""

    name: str
    objects: dict[str, StoredObject] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    writes: int = 0
    page_keys_max: int = PAGE_KEYS_MAX
    ignores_conditions: bool = False  # as stores do that know nothing of If-Match and If-None-Match

    def copy(self) -> Bucket:
        parts = {upload: dict(parts) for upload, parts in self.uploads.items()}
        return replace(self, objects=dict(self.objects), uploads=parts)

    def answer(self, request: Request) -> Outcome:
        try:
            _validate(request, self.name)
            return self._dispatch(request)
        except Refused as refusal:
            return Outcome(refusal.response())

    def _dispatch(self, request: Request) -> Outcome:
        match request.method, frozenset(request.query):
            case "GET", parameters if not request.key and "list-type" in parameters:
                return Outcome(self._list(request.query))
            case "GET" | "HEAD", parameters if not parameters and request.key:
                return Outcome(self._get(request))
            case "PUT", parameters if not parameters and "x-amz-copy-source" in request.headers:
                return self._copy_object(request)
            case "PUT", parameters if not parameters:
                return self._put(request, request.body)
            case "DELETE", parameters if not parameters:
                return self._delete(request)
            case "POST", parameters if parameters == {"delete"}:
                return self._delete_many(request)
            case "POST", parameters if parameters == {"uploads"}:
                return self._start_upload(request)
            case "PUT", parameters if parameters == {"partNumber", "uploadId"}:
                return self._put_part(request)
            case "POST", parameters if parameters == {"uploadId"}:
                return self._complete_upload(request)
            case "DELETE", parameters if parameters == {"uploadId"}:
                return self._abort_upload(request)
        raise Refused(501, "NotImplemented", f"{request.method} with {sorted(request.query)}")

    # --- reading

    def _get(self, request: Request) -> Response:
        stored = self._existing(request.key)
        headers = {
            "ETag": stored.etag,
            "Last-Modified": format_datetime(stored.modified, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        if request.headers.get("if-match", stored.etag) not in (stored.etag, "*"):
            raise Refused(412, "PreconditionFailed")
        if request.headers.get("if-none-match") in (stored.etag, "*"):
            return Response(304, headers)
        size = len(stored.body)
        if request.method == "HEAD":
            return Response(200, {**headers, "Content-Length": str(size)})
        if "range" not in request.headers:
            return Response(200, headers, stored.body)
        first, last = _byte_range(request.headers["range"], size)
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        return Response(206, headers, stored.body[first : last + 1])

    def _existing(self, key: str) -> StoredObject:
        if key not in self.objects:
            raise Refused(404, "NoSuchKey")
        return self.objects[key]

    def _list(self, query: Mapping[str, str]) -> Response:
        """One page of a listing. A common prefix counts as one entry and is never repeated on a later page."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        limit = min(_number(query.get("max-keys", "1000"), 0, 1 << 31), self.page_keys_max)
        after = unquote(query.get("continuation-token", query.get("start-after", "")))
        entries = list(islice(self._entries(prefix, delimiter, after), limit + 1))
        page, truncated = entries[:limit], len(entries) > limit
        parts = [_xml_entry(name, self.objects.get(name)) for name in page]
        if truncated and page:
            parts.append(f"<NextContinuationToken>{quote(page[-1])}</NextContinuationToken>")
        return _xml(
            f"<ListBucketResult><Name>{self.name}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(page)}</KeyCount><MaxKeys>{limit}</MaxKeys>"
            f"<IsTruncated>{str(truncated and bool(page)).lower()}</IsTruncated>{''.join(parts)}</ListBucketResult>"
        )

    def _entries(self, prefix: str, delimiter: str, after: str) -> Iterator[str]:
        """Keys and common prefixes behind `after` in byte order."""
        last = None
        for key in sorted(k for k in self.objects if k.startswith(prefix) and k > after):
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            entry = prefix + head + delimiter if found else key
            # A page that ended with a common prefix continues behind everything under it.
            if entry != last and not (found and after.startswith(entry)):
                last = entry
                yield entry

    # --- writing

    def _put(self, request: Request, body: bytes, answer: Response | None = None) -> Outcome:
        self._check_condition(request)
        etag = _etag(body)

        def apply() -> None:
            modified = EPOCH + timedelta(seconds=self.writes)
            self.objects[request.key] = StoredObject(body, etag, modified)
            self.writes += 1

        return Outcome(answer or Response(200, {"ETag": etag}), apply)

    def _check_condition(self, request: Request) -> None:
        stored = self.objects.get(request.key)
        if self.ignores_conditions:
            return
        if "if-none-match" in request.headers and stored is not None:
            raise Refused(412, "PreconditionFailed")
        if "if-match" in request.headers:
            if stored is None:
                raise Refused(404, "NoSuchKey")
            if stored.etag != request.headers["if-match"]:
                raise Refused(412, "PreconditionFailed")

    def _copy_object(self, request: Request) -> Outcome:
        bucket, _, key = unquote(request.headers["x-amz-copy-source"]).lstrip("/").partition("/")
        if bucket != self.name:
            raise Refused(404, "NoSuchBucket")
        source = self._existing(key)
        answer = f"<CopyObjectResult><ETag>{escape(source.etag)}</ETag></CopyObjectResult>"
        return self._put(request, source.body, _xml(answer))

    def _delete(self, request: Request) -> Outcome:
        if "if-match" in request.headers:
            self._check_condition(request)
        return Outcome(Response(204), self._removal([request.key]))

    def _delete_many(self, request: Request) -> Outcome:
        if not any(name in request.headers for name in CHECKSUMS):
            raise Refused(400, "InvalidRequest", "a batch delete needs a checksum of its body")
        keys = [node.text or "" for node in _parse_xml(request.body).iterfind("{*}Object/{*}Key")]
        if not 0 < len(keys) <= PAGE_KEYS_MAX:
            raise Refused(400, "MalformedXML", f"{len(keys)} keys to delete")
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return Outcome(_xml(f"<DeleteResult>{deleted}</DeleteResult>"), self._removal(keys))

    def _removal(self, keys: list[str]) -> Callable[[], None] | None:
        present = [key for key in keys if key in self.objects]

        def apply() -> None:
            for key in present:
                del self.objects[key]

        return apply if present else None

    # --- uploads in parts

    def _start_upload(self, request: Request) -> Outcome:
        upload = f"upload-{self.writes}-{len(self.uploads)}"

        def apply() -> None:
            self.uploads[upload] = {}
            self.writes += 1

        answer = f"<Bucket>{self.name}</Bucket><Key>{escape(request.key)}</Key><UploadId>{upload}</UploadId>"
        return Outcome(
            _xml(f"<InitiateMultipartUploadResult>{answer}</InitiateMultipartUploadResult>"), apply
        )

    def _parts(self, request: Request) -> dict[int, bytes]:
        if request.query["uploadId"] not in self.uploads:
            raise Refused(404, "NoSuchUpload")
        return self.uploads[request.query["uploadId"]]

    def _put_part(self, request: Request) -> Outcome:
        parts = self._parts(request)
        number = _number(request.query["partNumber"], 1, PART_NUMBER_MAX)
        answer = Response(200, {"ETag": _etag(request.body)})
        return Outcome(answer, lambda: parts.update({number: request.body}))

    def _complete_upload(self, request: Request) -> Outcome:
        body = b"".join(_chosen_parts(self._parts(request), request.body))
        etag = f"<ETag>{escape(_etag(body))}</ETag>"
        put = self._put(
            request,
            body,
            _xml(f"<CompleteMultipartUploadResult>{etag}</CompleteMultipartUploadResult>"),
        )

        def apply() -> None:
            assert put.apply is not None
            put.apply()
            del self.uploads[request.query["uploadId"]]

        return Outcome(put.response, apply)

    def _abort_upload(self, request: Request) -> Outcome:
        self._parts(request)

        def apply() -> None:
            del self.uploads[request.query["uploadId"]]

        return Outcome(Response(204), apply)


def _chosen_parts(parts: Mapping[int, bytes], listing: bytes) -> Iterator[bytes]:
    """The parts a client names to complete an upload, which must be what it uploaded, ascending and large enough."""
    named = [
        (_number(_text(node, "PartNumber"), 1, PART_NUMBER_MAX), _text(node, "ETag"))
        for node in _parse_xml(listing).iterfind("{*}Part")
    ]
    numbers = [number for number, _ in named]
    if not named or numbers != sorted(set(numbers)):
        raise Refused(400, "InvalidPartOrder")
    for number, etag in named:
        body = parts.get(number)
        if body is None or _etag(body).strip('"') != etag.strip('"'):
            raise Refused(400, "InvalidPart", f"part {number}")
        if len(body) < PART_BYTES_MIN and number != numbers[-1]:
            raise Refused(400, "EntityTooSmall", f"part {number}")
        yield body


def _validate(request: Request, bucket: str) -> None:
    """Refuse what S3 refuses, and what this stand-in would otherwise silently ignore."""
    if request.bucket != bucket:
        raise Refused(404, "NoSuchBucket")
    if len(request.key.encode()) > KEY_BYTES_MAX:
        raise Refused(400, "KeyTooLongError")
    _validate_query(request)
    _validate_headers(request)
    _validate_checksums(request)


def _validate_query(request: Request) -> None:
    known = LIST_PARAMETERS if "list-type" in request.query else None
    if known is None and frozenset(request.query) not in KNOWN_QUERIES:
        raise Refused(501, "NotImplemented", f"query {sorted(request.query)}")
    if known is not None and not known >= frozenset(request.query):
        raise Refused(501, "NotImplemented", f"listing by {sorted(request.query)}")
    if request.query.get("list-type", "2") != "2":
        raise Refused(501, "NotImplemented", "only the second version of listings")


def _validate_headers(request: Request) -> None:
    headers = request.headers
    if refused := [name for name in headers if REFUSED_HEADERS.match(name)]:
        raise Refused(501, "NotImplemented", f"headers {refused}")
    has_body = request.method == "PUT" and "x-amz-copy-source" not in headers
    if has_body and "content-length" not in headers:
        raise Refused(411, "MissingContentLength")
    if request.method in ("PUT", "POST") and headers.get("if-none-match", "*") != "*":
        raise Refused(501, "NotImplemented", "If-None-Match takes only * here")
    if {"if-match", "if-none-match"} <= headers.keys():
        raise Refused(400, "InvalidRequest", "two conditions at once")


def _validate_checksums(request: Request) -> None:
    for name, digest in CHECKSUMS.items():
        claimed = request.headers.get(name)
        if claimed is not None and base64.b64decode(claimed) != digest(request.body):
            raise Refused(400, "BadDigest", name)
    signed = request.headers.get("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    if re.fullmatch("[0-9a-f]{64}", signed) and signed != hashlib.sha256(request.body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch")
    if signed.startswith("STREAMING"):
        raise Refused(501, "NotImplemented", "signed chunks")


def _byte_range(text: str, size: int) -> tuple[int, int]:
    """First and last byte of `bytes=a-b`, `bytes=a-` or `bytes=-n`."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", text)
    if match is None or match.groups() == ("", ""):
        raise Refused(400, "InvalidArgument", f"range {text}")
    start, end = match.groups()
    first = int(start) if start else max(0, size - int(end))
    last = min(int(end), size - 1) if start and end else size - 1
    if first > last:
        raise Refused(416, "InvalidRange")
    return first, last


def _number(text: str, least: int, most: int) -> int:
    if not text.isdigit() or not least <= int(text) <= most:
        raise Refused(400, "InvalidArgument", f"{text!r} is not a number from {least} to {most}")
    return int(text)


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _xml(body: str, *, status: int = 200) -> Response:
    document = f'<?xml version="1.0" encoding="UTF-8"?>{body}'
    return Response(status, {"Content-Type": "application/xml"}, document.encode())


def _xml_entry(name: str, stored: StoredObject | None) -> str:
    if stored is None:
        return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
    modified = stored.modified.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return (
        f"<Contents><Key>{escape(name)}</Key><LastModified>{modified}</LastModified>"
        f"<ETag>{escape(stored.etag)}</ETag><Size>{len(stored.body)}</Size></Contents>"
    )


def _parse_xml(body: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(body)  # noqa: S314 the only writers of it are our own tests
    except ElementTree.ParseError as error:
        raise Refused(400, "MalformedXML") from error


def _text(node: ElementTree.Element, name: str) -> str:
    return node.findtext(f"{{*}}{name}") or ""
