#!/usr/bin/env python3
"""Script by which `spark-submit` runs the `quorisk` command:

spark-submit --master local[2] scripts/submit.py run configs/demo.toml --out results/demo
"""

from quorisk.command.main import main

if __name__ == "__main__":
    main()
