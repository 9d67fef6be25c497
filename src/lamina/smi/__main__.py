"""`python -m lamina.smi`."""

import sys

from lamina.smi.main import main

if __name__ == "__main__":
    sys.exit(main())
