"""`python -m scrubjay`, for torchrun and for machines without scripts on the path."""

import os
import signal

from scrubjay.cli.main import main

BAD_INPUT = 2

try:
    main()
except SystemExit as end:
    if end.code == BAD_INPUT and "TORCHELASTIC_RUN_ID" in os.environ:
        # torchrun would start again, as often as it may, what cannot succeed: its agent, the parent, is told to end.
        os.kill(os.getppid(), signal.SIGTERM)
    raise
