"""`python -m scrubjay`, for torchrun and for machines without scripts on the path."""

from scrubjay.cli.main import main

main()
