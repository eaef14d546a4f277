"""`python -m lab`: the lab from the command line."""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import config, metadata, state
from lab.cluster import Lab
from lab.config import Config, Timings
from lab.errors import LabError

_TIMINGS = {
    "status_update": "seconds between a kubelet's reports",
    "lease": "seconds a node's lease lasts",
    "monitor_grace": "seconds of silence until a node counts as unreachable",
    "monitor_period": "seconds between two looks at that",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. What cannot be done is one sentence on stderr and 1."""
    try:
        options = _parser().parse_args(argv)
        options.run(Lab(options.name), options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: stopped; the next `up` or `down` clears what is half done", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab", description="a real Kubernetes cluster on this machine"
    )
    parser.add_argument(
        "--name", default=config.MAIN, help="which lab; several can run side by side (default: %(default)s)"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_up(commands)
    down = _command(commands, "down", _down, "end it; nothing stays in the kernel")
    down.add_argument("--keep-store", action="store_true", help="keep the objects of the S3 server")
    _command(commands, "remove", lambda lab, _: lab.remove(), "down, and forget its keys and networks")
    _command(commands, "status", _status, "nodes and where things are")
    _command(commands, "env", _env, 'print shell exports: eval "$(python -m lab env)"')
    _command(commands, "kubeconfig", lambda lab, _: print(lab.kubeconfig), "print the kubeconfig's path")
    _command(commands, "list", lambda *_: _list(), "names of the labs that are up or half up, one a line")
    _add_node(commands)
    _add_api(commands)
    _add_store(commands)
    _add_image(commands)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[Lab, argparse.Namespace], object],
    summary: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run)
    return parser


def _add_up(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    up = _command(commands, "up", _up, "build what is missing and start it; a lab that runs is used again")
    up.add_argument(
        "--nodes",
        nargs="*",
        type=config.parse_node,
        default=config.DEFAULT_NODES,
        metavar="NAME=CAPACITY/ZONE",
        help="such as spot-1=spot/zone-a; none: control plane, store and kwok alone",
    )
    up.add_argument("--audit", action="store_true", help="note writes to the API server in log/audit.jsonl")
    for name, summary in _TIMINGS.items():
        flag = f"--{name.replace('_', '-')}-seconds"
        default = getattr(Timings(), name)
        up.add_argument(flag, dest=name, type=int, default=default, help=f"{summary} (default: {default})")


def _add_node(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    node = commands.add_parser("node", help="do something to a node").add_subparsers(
        required=True, metavar="ACTION"
    )
    actions: dict[str, tuple[Callable[[Lab, argparse.Namespace], object], str]] = {
        "kill": (
            lambda lab, o: lab.node_kill(o.node),
            "sudden death: every process of the machine ends at once",
        ),
        "start": (
            lambda lab, o: lab.node_start(o.node, wipe=o.wipe),
            "start a dead machine, on its old disk",
        ),
        "drain": (lambda lab, o: lab.node_drain(o.node), "cordon it and evict its pods"),
        "back": (
            lambda lab, o: lab.node_back(o.node),
            "replace it by a new machine of the same name: new Node object, empty disk",
        ),
        "partition": (
            lambda lab, o: lab.node_partition(o.node),
            "cut it off from the network; it goes on running",
        ),
        "heal": (lambda lab, o: lab.node_heal(o.node), "end what `partition` did"),
    }
    for name, (run, summary) in actions.items():
        action = _command(node, name, run, summary)
        action.add_argument("node", metavar="NAME")
        if name == "start":
            action.add_argument("--wipe", action="store_true", help="with an empty disk, as a new machine")
    _add_clouds(node)


def _add_clouds(node: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    cloud = _command(node, "cloud", _cloud, "make it a machine of a cloud, whose metadata service is quiet")
    notice = _command(
        node, "notice", _notice, "its cloud tells it that it is taken, and takes it; ends when it is dead"
    )
    for action in (cloud, notice):
        action.add_argument("node", metavar="NAME")
        action.add_argument(
            "--cloud", choices=metadata.PROVIDER_IDS, default="aws", help="default: %(default)s"
        )
    notice.add_argument("--window", type=float, default=120, help="seconds until then (default: %(default)s)")


def _add_api(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    api = commands.add_parser("api", help="do something to the API server").add_subparsers(
        required=True, metavar="ACTION"
    )
    _command(api, "stop", lambda lab, _: lab.api_stop(), "end it; connections are refused")
    _command(api, "start", lambda lab, _: lab.api_start(), "start it again, with all its objects")
    _command(api, "pause", lambda lab, _: lab.api_pause(), "freeze it: connections stay, nothing is answered")
    _command(api, "resume", lambda lab, _: lab.api_resume(), "end what `pause` did")


def _add_store(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    store = commands.add_parser("store", help="do something to the object store").add_subparsers(
        required=True, metavar="ACTION"
    )
    _command(store, "stop", lambda lab, _: lab.store_stop(), "end it; connections are refused")
    _command(store, "start", lambda lab, _: lab.store_start(), "start it again, with all its objects")


def _add_image(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    image = commands.add_parser("image", help="images").add_subparsers(required=True, metavar="ACTION")
    build = _command(image, "build", _build_image, "build a Dockerfile on the lab's base and load it")
    build.add_argument("--tag", default="docker.io/spottrain/operator:0.1.0", help="default: %(default)s")
    build.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="holds the Dockerfile (default: here)"
    )
    load = _command(
        image, "load", lambda lab, o: lab.load_image(o.archive), "load an archive made by `docker save`"
    )
    load.add_argument("archive", metavar="TAR", type=Path)
    remove = _command(image, "remove", lambda lab, o: lab.remove_image(o.reference), "give it to no new node")
    remove.add_argument("reference", metavar="REF")


def _cloud(lab: Lab, options: argparse.Namespace) -> None:
    lab.node_cloud(options.node, options.cloud)


def _notice(lab: Lab, options: argparse.Namespace) -> None:
    notice = lab.notice(options.node, options.cloud, options.window)
    print(f"node {options.node} is told that it has {options.window:g} s", flush=True)
    try:
        notice.wait()
    except KeyboardInterrupt:
        notice.withdraw()
        raise
    print(f"node {options.node} is dead: `{config.command(lab.name)} node back {options.node}` replaces it")


def _list() -> None:
    for name in state.left_over():
        print(name)


def _up(lab: Lab, options: argparse.Namespace) -> None:
    timings = Timings(**{name: getattr(options, name) for name in _TIMINGS})
    print(lab.up(Config(nodes=tuple(options.nodes), timings=timings, audit=options.audit)))


def _down(lab: Lab, options: argparse.Namespace) -> None:
    lab.down(keep_store=options.keep_store)
    print(f"lab {lab.name} is down")


def _status(lab: Lab, _: argparse.Namespace) -> None:
    if lab.config() is None:
        print(f"lab {lab.name} is down")
        return
    for row in lab.status():
        print(
            "{node:12}{capacity:12}{zone:10}{machine:10}{state}".format(
                **row, state=_word(ready=row["ready"])
            )
        )
    print(f"kubeconfig  {lab.kubeconfig}\nobject store  {lab.s3_endpoint}\nlogs  {lab.state.log}")


def _word(*, ready: bool) -> str:
    return "Ready" if ready else "not Ready"


def _env(lab: Lab, _: argparse.Namespace) -> None:
    for name, value in lab.env().items():
        print(f"export {name}={shlex.quote(value)}")


def _build_image(lab: Lab, options: argparse.Namespace) -> None:
    print(lab.build_image(options.folder.resolve(), options.tag))


if __name__ == "__main__":
    sys.exit(main())
