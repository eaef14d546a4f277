"""Count the words of texts, on one machine and without interruption: what infer.py was before.

Environment: BATCH_INPUTS (lines of {"id": …, "text": …}), BATCH_OUTPUTS (a file), BATCH_ITEM_SECONDS (what an
item takes on a GPU), BATCH_LONGEST (characters; longer texts are left out).
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

INPUTS = Path(os.environ["BATCH_INPUTS"])
OUTPUTS = Path(os.environ.get("BATCH_OUTPUTS", os.devnull))
PAUSE = float(os.environ.get("BATCH_ITEM_SECONDS", "0"))
LONGEST = int(os.environ.get("BATCH_LONGEST", "1000"))


def infer(text: str) -> dict[str, int]:
    """How often each word occurs: it stands for a model."""
    time.sleep(PAUSE)
    return dict(Counter(text.lower().split()))


def main() -> None:
    """One result for each input."""
    with INPUTS.open() as lines, OUTPUTS.open("w") as out:
        for row in map(json.loads, lines):
            if len(row["text"]) > LONGEST:
                continue
            out.write(json.dumps({"id": row["id"], "output": infer(row["text"])}) + "\n")


if __name__ == "__main__":
    main()
