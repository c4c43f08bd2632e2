"""A procrastinate application whose worker carries runs on; the environment says where the database and effects are."""

from __future__ import annotations

import os

import procrastinate

from eventlog.postgres import Postgres
from runner.procrastinate import Queue
from tests.children.scenes import lead
from tests.service import scenes

URL, EFFECTS = os.environ["URL"], os.environ["EFFECTS"]
AGENTS = [scenes.acting(EFFECTS), scenes.patient(EFFECTS), lead("ask a", "b")]
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, max_size=4))
queue = Queue(app, AGENTS, runs=Postgres(URL, lease=6.0))
