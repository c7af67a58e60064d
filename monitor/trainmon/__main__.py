"""`python -m trainmon` is the command `trainmon`."""

from trainmon.cli import main

main()
