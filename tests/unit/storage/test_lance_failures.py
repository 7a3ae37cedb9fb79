"""What Lance raises becomes an error whose kind tells the caller what to do."""

from __future__ import annotations

import pytest

from omnigraph.errors import Kind, LimitExceeded
from omnigraph.storage.lance.failures import lance_errors, translated

PLACE = "/home/runner/work/lance/rust/lance-io/src/local.rs:273:40"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f"Dataset at path g/_versions/d9.manifest was not found: Not found, {PLACE}", Kind.CORRUPT),
        (f"LanceError(IO): file size is too small, {PLACE}", Kind.CORRUPT),
        ("External error: LanceError(IO): Invalid range 0..634 for object of size 50", Kind.CORRUPT),
        ("Generic S3 error: Error performing HEAD http://h/b - HTTP error: error sending request", Kind.UNAVAILABLE),
        ("Generic S3 error: Server returned non-2xx status code: 503 Service Unavailable: SlowDown", Kind.UNAVAILABLE),
        ("The operation lacked the necessary privileges: 403 Forbidden: AccessDenied", Kind.DENIED),
        ("Permission denied (os error 13)", Kind.DENIED),
        ("something nobody has seen yet", Kind.INTERNAL),
    ],
)  # fmt: skip
def test_messages_decide_the_kind(message: str, kind: Kind) -> None:
    error = translated(OSError(message), "reading")
    assert error.kind is kind
    assert message in error.message
    assert error.help


def test_errors_of_ours_pass_through() -> None:
    with pytest.raises(LimitExceeded), lance_errors("reading"):
        raise LimitExceeded("too much")


def test_mistakes_in_code_are_not_disguised() -> None:
    with pytest.raises(TypeError), lance_errors("reading"):
        raise TypeError("a bug")
