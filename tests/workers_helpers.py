"""Tasks that workers import."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from scrubjay.errors import RoomError


def square(number: int) -> int:
    return number * number


def scaled(values: np.ndarray, number: int) -> np.ndarray:
    return values * number


def refuse_odd(number: int) -> int:
    if number % 2:
        raise RoomError(f"{number} is odd")
    return number


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(folder: str, number: int) -> int:
    """Kills its process the first time, while others work."""
    try:
        (Path(folder) / str(number)).touch(exist_ok=False)
    except FileExistsError:
        return number
    time.sleep(0.05 * number)
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def pid_of(number: int) -> int:
    time.sleep(0.1)
    return os.getpid()
