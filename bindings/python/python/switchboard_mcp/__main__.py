"""`python -m switchboard_mcp` runs the program `switchboard`."""

import sys

from switchboard_mcp._program import main

if __name__ == "__main__":
    sys.exit(main())
