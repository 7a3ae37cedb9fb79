"""Write all generated pages into a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.generate.pages import PAGES

for name, page in PAGES.items():
    Path(sys.argv[1], name).write_text(page(), encoding="utf-8")
