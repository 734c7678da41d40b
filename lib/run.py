"""The stage runner's old door, for one release longer: it forwards to `lib.core.runner`."""

import sys

from .core.runner import main

if __name__ == "__main__":
    print("note: `python -m lib.run` is now `python -m lib.core.runner`", file=sys.stderr)
    sys.exit(main())
