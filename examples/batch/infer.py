"""Count the words of texts, on spot nodes: one result for each text, however often workers are taken away.

Environment: BATCH_INPUTS (lines of {"id": …, "text": …}), BATCH_ITEM_SECONDS (what an item takes on a GPU),
BATCH_LONGEST (characters; longer texts are left out). Results are read with `spottrain batch cat`.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

from spottrain import batch

INPUTS = Path(os.environ["BATCH_INPUTS"])
PAUSE = float(os.environ.get("BATCH_ITEM_SECONDS", "0"))
LONGEST = int(os.environ.get("BATCH_LONGEST", "1000"))


def infer(text: str) -> dict[str, int]:
    """How often each word occurs: it stands for a model."""
    time.sleep(PAUSE)
    return dict(Counter(text.lower().split()))


def main() -> None:
    """One result for each input."""
    with INPUTS.open() as lines, batch.session(model="words@1", parameters={"longest": LONGEST}) as run:
        for row in run.todo(map(json.loads, lines)):
            if len(row["text"]) > LONGEST:
                run.skip(row)
                continue
            run.write(row, infer(row["text"]))


if __name__ == "__main__":
    main()
