"""What the workers of `bench.cold` run: examples/digits, with a line when its libraries are loaded.

That program lies beside this one in the pod, as digits.py. Loading PyTorch takes seconds, before there is a
session that could say anything.
"""

import importlib
import time

if __name__ == "__main__":
    digits = importlib.import_module("digits")
    print(f"event=loaded time={time.time():.3f}", flush=True)
    digits.main()
