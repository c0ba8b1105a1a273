#!/usr/bin/env python3
"""Predicts a fault's losses of acknowledged messages, then does it to real servers; see tests/reality/run.py."""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.reality.run import main

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
