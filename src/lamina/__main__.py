"""`python -m lamina` is the command line."""

from lamina.cli.main import main

main()
