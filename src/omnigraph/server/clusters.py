"""Serving a cluster: its newest revision as settings, and polling for newer ones."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import tempfile
import threading
from functools import cache
from pathlib import Path

from omnigraph.cluster.files import root_of
from omnigraph.cluster.ledger import Ledger
from omnigraph.cluster.serving import served
from omnigraph.errors import OmnigraphError
from omnigraph.server.settings import GraphSettings, Settings

LOOK_SECONDS = 2.0  # between two polls of the ledger, which are one request each

log = logging.getLogger("omnigraph.server")


@cache
def _folder() -> Path:
    """The folder of the ledger's texts while this process runs."""
    made = tempfile.mkdtemp(prefix="omnigraph-cluster-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def cluster_settings(place: str) -> Settings:
    """The settings that serve the revision in force of a cluster."""
    found = served(place, _folder())
    graphs = {
        id: GraphSettings(graph.uri, list(graph.queries), graph.policy, graph.embedding)
        for id, graph in found.graphs.items()
    }
    return Settings(graphs=graphs, policy=found.policy, cluster=root_of(place))


def watch(place: str) -> None:
    """Have this process reload its settings, as on SIGHUP, whenever something was applied to a cluster."""
    ledger = Ledger(root_of(place))
    thread = threading.Thread(target=_watch, args=(ledger,), name="cluster", daemon=True)
    thread.start()


def _watch(ledger: Ledger) -> None:
    known = ledger.number()
    waiting = threading.Event()
    while not waiting.wait(LOOK_SECONDS):
        try:
            newest = ledger.number(known)
            if newest == known:
                continue
            known = newest
            if ledger.at(newest).state != "applying":
                os.kill(os.getpid(), signal.SIGHUP)
        except OmnigraphError as error:
            log.warning("the ledger of the cluster cannot be read: %s", error.message)
