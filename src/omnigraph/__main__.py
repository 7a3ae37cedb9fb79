"""`python -m omnigraph` is the command line, for environments whose scripts are not on the path."""

import sys

from omnigraph.cli.main import main

sys.exit(main())
