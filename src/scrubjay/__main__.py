"""`python -m scrubjay`, for torchrun and for machines without scripts on the path."""

import os
import signal
import time

from scrubjay.cli.main import main

BAD_INPUT = 2

try:
    main()
except SystemExit as end:
    if end.code == BAD_INPUT and "TORCHELASTIC_RUN_ID" in os.environ:
        # torchrun would start again, as often as it may, what cannot succeed: its agent, the parent, is told to end.
        # Once, by the first process if it is alive: a second signal would interrupt the agent's own log of the first.
        if os.environ.get("LOCAL_RANK") != "0":
            time.sleep(2)
        os.kill(os.getppid(), signal.SIGTERM)
    raise
