"""A collective without PyTorch: every worker is connected to worker 0; whoever loses one exits 1 at once.

Worker 0 ends it well, for all, when its pod is annotated with `test/end`, so that the test says when.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path

RANK = int(os.environ["PET_NODE_RANK"])
PEERS = int(os.environ["PET_NNODES"]) - 1
ADDRESS = os.environ["PET_MASTER_ADDR"]
PORT = int(os.environ["PET_MASTER_PORT"])
SILENCE = 3.0
ANNOTATIONS = Path(os.environ["SPOTTRAIN_GO_FILE"])


def meet() -> list[socket.socket]:
    """Worker 0 waits for all others and greets them; they dial until it listens and wait to be greeted."""
    if RANK == 0:
        server = socket.create_server(("", PORT))
        links = [server.accept()[0] for _ in range(PEERS)]
        for link in links:
            link.sendall(b".")
        return links
    while True:
        try:
            link = socket.create_connection((ADDRESS, PORT), timeout=SILENCE)
        except OSError:
            time.sleep(0.2)
            continue
        link.settimeout(None)
        if not link.recv(1):
            sys.exit(1)
        return [link]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
    links = meet()
    for link in links:
        link.settimeout(SILENCE)
    print(f"met rank={RANK}", flush=True)
    while True:
        said = b"."
        if RANK == 0:
            said = b"E" if "test/end=" in ANNOTATIONS.read_text() else b"."
        for link in links:
            link.sendall(said)
        if RANK == 0 and said == b"E":
            return
        for link in links:
            heard = link.recv(64)
            if not heard:
                sys.exit(1)
            if RANK != 0 and b"E" in heard:
                return
        time.sleep(0.1)


try:
    main()
except OSError as error:
    print(f"the collective broke: {error}", flush=True)
    sys.exit(1)
