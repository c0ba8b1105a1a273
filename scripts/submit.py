#!/usr/bin/env python3
"""What `spark-submit` is given to run the `quorisk` command:

spark-submit --master local[2] scripts/submit.py run configs/demo.toml --out results/demo
"""

from quorisk.command.main import main

if __name__ == "__main__":
    main()
