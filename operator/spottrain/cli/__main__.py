"""`python -m spottrain.cli` is `spottrain`."""

from spottrain.cli.main import main

main()
