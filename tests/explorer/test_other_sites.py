"""What a web page somewhere else can do to a server on this machine, tried by a real browser: nothing.

A page on another port, a page under another name, and one whose name was made to lead to the server itself each try
every way a browser has to send a request. Afterwards the graph is as it was, and no page has seen a word of it. Checks
that browsers make of their own before such requests are switched off: not all of them do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response, expect, sync_playwright

import omnigraph
from tests.explorer.browser import CHROMIUM, FLAGS, PATIENCE_MILLISECONDS
from tests.server.process import serving

pytestmark = pytest.mark.xdist_group("explorer")
SECRET = "TOP-SECRET-NAME"  # noqa: S105  a word to look for
REBOUND = "rebound.example"
REFUSALS = {403, 405, 415}
PEOPLE = "match { $p: Person } return { $p.name as name }"

NOT_EVERYWHERE = (
    "LocalNetworkAccessChecks", "BlockInsecurePrivateNetworkRequests", "PrivateNetworkAccessSendPreflights",
    "PrivateNetworkAccessRespectPreflightResults",
)  # fmt: skip

# Every way a page has to make a browser send something, with what it could see of the answers.
ATTACK = """
async ([base, graph]) => {
  const seen = [];
  const line = '{"type": "Person", "data": {"name": "OWNED"}}\\n';
  const row = '{"name": "OWNED"}\\n';
  const mutation = JSON.stringify({query: 'query q() { insert Person { name: "OWNED" } }'});
  const at = path => base + '/graphs/' + graph + path;
  const targets = [
    ['/import?format=ndjson&type=Person&mode=overwrite', row], ['/load/ndjson?mode=overwrite', line],
    ['/load', line], ['/mutate', mutation], ['/exports', ''], ['/branches', '{"name": "owned"}'],
  ];
  const look = async promise => {
    try { const answer = await promise; seen.push(answer.status + ' ' + await answer.text()); }
    catch (error) { seen.push('refused'); }
  };
  const types = [null, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
    'application/json', 'application/x-ndjson', 'application/octet-stream'];
  for (const [path, body] of targets)
    for (const type of types)
      for (const mode of ['cors', 'no-cors'])
        await look(fetch(at(path), {method: 'POST', mode, body, credentials: 'include',
          headers: type ? {'Content-Type': type} : {}}));
  for (const [path, body] of targets) {
    await look(fetch(at(path), {method: 'POST', body: new Blob([body]), credentials: 'include'}));
    const data = new FormData();
    data.append('file', new Blob([body]), 'x.ndjson');
    await look(fetch(at(path), {method: 'POST', body: data, credentials: 'include'}));
    navigator.sendBeacon(at(path), body);
    navigator.sendBeacon(at(path), new Blob([body], {type: 'application/json'}));
  }
  await look(fetch(at('/branches/dev'), {method: 'DELETE'}));
  for (const path of ['/export', '/schema', '/commits', '/snapshot', '/changes'])
    for (const mode of ['cors', 'no-cors', 'same-origin']) await look(fetch(at(path), {mode}));
  await look(fetch(base + '/session'));
  await look(fetch(base + '/openapi.json'));
  for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])
    for (const [path, body] of targets) {
      const frame = document.createElement('iframe');
      frame.name = 'frame' + Math.random();
      const form = document.createElement('form');
      const field = document.createElement('input');
      field.name = body.slice(0, -1) || 'x';
      form.append(field);
      Object.assign(form, {method: 'POST', action: at(path), enctype, target: frame.name});
      document.body.append(frame, form);
      const done = new Promise(resolve => { frame.onload = resolve; setTimeout(resolve, 2000); });
      form.submit();
      await done;
      try { seen.push(frame.contentDocument.body.innerText); } catch (error) { seen.push('refused'); }
    }
  for (const tag of ['img', 'script', 'iframe', 'video', 'embed', 'object'])
    for (const path of ['/export', '/schema']) {
      const element = document.createElement(tag);
      const done = new Promise(resolve => {
        element.onload = () => resolve('loaded'); element.onerror = () => resolve('refused');
        setTimeout(() => resolve('silent'), 1000);
      });
      element[tag === 'object' ? 'data' : 'src'] = at(path);
      document.body.append(element);
      await done;
      try { seen.push(element.contentDocument.body.innerText); } catch (error) { seen.push('refused'); }
    }
  return seen;
}
"""


@dataclass(frozen=True)
class Victim:
    """A server on this machine, and the graph it serves."""

    base: str
    name: str
    graph: omnigraph.Graph
    link: str | None = None  # what `explore` printed

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    def state(self) -> tuple[Any, ...]:
        folder = Path(self.graph.uri)
        jobs = sorted(
            str(path) for part in ("_jobs", "_exports") for path in (folder / part).rglob("*")
        )
        rows = sorted(row["name"] for row in self.graph.query(PEOPLE).rows)
        return rows, self.graph.branches(), [commit.id for commit in self.graph.log()], jobs


@contextmanager
def exploring(store: str) -> Iterator[str]:
    """`omnigraph explore`: the address it prints."""
    command = [sys.executable, "-m", "omnigraph.cli.main", "explore", store, "--no-open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "OMNIGRAPH_FSYNC": "0"},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(params=["serve --unauthenticated", "explore"])
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    graph = omnigraph.init(tmp_path / "people", "node Person { name: String @key }")
    graph.load({"Person": [{"name": SECRET}]})
    graph.create_branch("dev")
    if request.param == "explore":
        with exploring(graph.uri) as link:
            yield Victim(link.partition("/ui/")[0], "people", graph, link)
    else:
        with serving("--store", graph.uri, "--unauthenticated") as running:
            yield Victim(f"http://{running.address}", "default", graph)


class _Empty(BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body></body>")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """The port of a server of somebody else."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Empty)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser in whose world a foreign name leads to this machine."""
    with sync_playwright() as playwright:
        rule = f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"
        trusting = f"--disable-features={','.join(NOT_EVERYWHERE)}"
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, rule, trusting])
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "evil.localhost", REBOUND])
def test_a_page_of_another_origin_changes_nothing_and_sees_nothing(
    name: str, victim: Victim, elsewhere: int, page: Page
) -> None:
    before = victim.state()
    answers = answered(page, victim)
    page.goto(f"http://{name}:{elsewhere}/")
    seen = page.evaluate(ATTACK, [victim.base, victim.name])
    assert len(seen) > 100
    assert not [text for text in seen if SECRET in text or text.startswith("2")]
    assert set(answers) <= REFUSALS
    assert len(answers) > 20, "the requests did arrive"
    assert victim.state() == before


def answered(page: Page, victim: Victim) -> list[int]:
    """The status of every answer of the victim, also of those the page does not see."""
    found: list[int] = []

    def keep(response: Response) -> None:
        if response.url.startswith((victim.base, f"http://{REBOUND}:{victim.port}/graphs")):
            found.append(response.status)

    page.on("response", keep)
    return found


def test_a_page_whose_name_was_made_to_lead_to_the_server(victim: Victim, page: Page) -> None:
    """Such a page is of the same origin as the server, as far as the browser knows."""
    before = victim.state()
    base = f"http://{REBOUND}:{victim.port}"
    html = "<!doctype html><title>elsewhere</title><body></body>"
    page.route(f"{base}/start", lambda route: route.fulfill(content_type="text/html", body=html))
    answers = answered(page, victim)
    page.goto(f"{base}/start")
    seen = page.evaluate(ATTACK, [base, victim.name])
    assert not [text for text in seen if SECRET in text or text.startswith("2")]
    assert set(answers) <= REFUSALS
    assert len(answers) > 50, "the requests did arrive"
    assert victim.state() == before
    answer = page.goto(f"{base}/ui")
    assert answer is not None
    assert answer.status == 403


@pytest.mark.parametrize("victim", ["explore"], indirect=True)
def test_the_explorer_works_for_whoever_has_its_address(victim: Victim, page: Page) -> None:
    """The secret leaves the address at once, and stays with the tab when it is loaded again."""
    assert victim.link is not None
    page.goto(victim.link)
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_text("Schema")).to_be_visible(timeout=PATIENCE_MILLISECONDS)
    assert "token" not in page.url
    page.reload()
    expect(pages.get_by_text("Schema")).to_be_visible(timeout=PATIENCE_MILLISECONDS)
    other = page.context.browser.new_context().new_page()  # type: ignore[union-attr]
    answers: list[int] = []
    other.on("response", lambda response: answers.append(response.status))
    other.goto(re.sub(r"#token=[^&]*&", "#", victim.link))
    expect(other.get_by_text("token", exact=False).first).to_be_visible(
        timeout=PATIENCE_MILLISECONDS
    )
    assert 401 in answers
    other.context.close()
