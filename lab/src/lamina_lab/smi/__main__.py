"""`python -m lamina_lab.smi`."""

import sys

from lamina_lab.smi.main import main

if __name__ == "__main__":
    sys.exit(main())
