"""`python -m omnigraph` is the command line, for environments whose scripts are not on the path."""

import sys

from omnigraph.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
