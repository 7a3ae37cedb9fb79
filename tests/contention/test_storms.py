"""Who may meet whom, on a real S3 server with latency and a cap on requests: no history shows an anomaly.

Defends G1 to G4 and G7. Every read and write of every client is logged; the checkers compare what clients saw with
each other (isolation), with what they were told (acknowledgements), and with the chain replayed write by write.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.graph import open_graph
from tests.contention.storm import Part, rage, scenarios
from tests.support import rings
from tests.support.proxy import Proxy
from tests.support.record import record
from tests.support.verdict import judged

COMMITS = int(os.environ.get("OMNIGRAPH_STORM_COMMITS", "2000"))  # more where there is an hour
COUNT = rings.count(8, 40)
LATENCIES = [0.0] if not rings.is_nightly() else [0.0, 0.02]
VISIBLE = {"main": ["dev"]}


@pytest.mark.parametrize("latency", LATENCIES, ids=lambda seconds: f"{seconds * 1e3:g} ms")
@pytest.mark.parametrize("name", scenarios(1))
def test_no_history_shows_an_anomaly(
    name: str, latency: float, proxied_s3: Proxy, prefix: str, tmp_path: Path
) -> None:
    proxied_s3.keep_log(False)
    uri = proxied_s3.address.uri(prefix)
    with proxied_s3.latency(latency):
        storm = rage(uri, scenarios(COUNT)[name], tmp_path, timeout=3600)
    graph = open_graph(uri)
    assert judged(graph._repo, storm.logged, VISIBLE) == []
    assert graph.doctor().findings == ()
    record(
        f"contention: {name}, {latency * 1e3:g} ms",
        {"commits": storm.acknowledged, "commits a second": storm.rate, "anomalies": 0},
    )


@pytest.mark.nightly
def test_many_commits_of_eight_writers_on_one_branch(s3_root: str, tmp_path: Path) -> None:
    """Two processes of four threads; collections keep the store small meanwhile."""
    write = Part("writer", count=COMMITS // 8)
    scenario = [[write] * 4, [write] * 4, [Part("collector")]]
    storm = rage(s3_root, scenario, tmp_path, timeout=8 * 3600)
    assert storm.acknowledged == COMMITS, "a writer was refused"
    assert judged(open_graph(s3_root)._repo, storm.logged) == []
    record(
        "contention: eight writers on one branch",
        {"commits": storm.acknowledged, "commits a second": storm.rate, "anomalies": 0},
    )
