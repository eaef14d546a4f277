"""`spottrain plan`: from a job's file to a question, and from its answer to a table."""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.api import allowed, clouds, duration, prices
from spottrain.api import spec as specs
from spottrain.cli import words
from spottrain.policy import estimate, forecast, hazard, interval, pools

SAVE, RESTART = 60.0, 300.0
"""Seconds, where nothing is said and nothing was measured."""
HOUR = 3600.0
_SPOT = f"{clouds.Capacity.SPOT}/"
"""How the names of spot pools begin; zone and instance type follow."""


def add_arguments(topics: Any) -> argparse.ArgumentParser:
    """The command's own."""
    text = "Say what a job will take on spot, mixed and on-demand, before anything runs."
    one: argparse.ArgumentParser = topics.add_parser("plan", help=text, description=text)
    one.add_argument("job", metavar="JOB", type=Path, help="file of a SpotTrainingJob, YAML or JSON")
    one.add_argument("--work", type=seconds, help="how long all workers would take, undisturbed (24h)")
    one.add_argument("--save", type=seconds, help="what a save takes (measured by an earlier run, or 1m)")
    one.add_argument("--restart", type=seconds, default=RESTART, help="from a loss until work goes on (5m)")
    one.add_argument("--notice-share", type=part, help="of reclaims announced early enough for a save (0.5)")
    one.add_argument("--window", type=seconds, help="notice before a node goes (spec.spot.window, or 30s)")
    source = one.add_mutually_exclusive_group()
    source.add_argument("--hazard", type=share, help="reclaims per worker and hour, such as 0.05 or 5%%")
    source.add_argument(
        "--pool",
        action="append",
        default=[],
        help="part of a pool's name in --learnt; may be repeated (those that spec.spot.pools allows)",
    )
    one.add_argument(
        "--learnt", type=Path, help="the ConfigMap of what the operator has learnt, or the text in it"
    )
    one.add_argument("--spot-price", type=price, help="of spot, per worker-hour")
    one.add_argument("--on-demand-price", type=price, help="on demand, per worker-hour")
    one.add_argument("--seed", type=int, default=1, help="of the futures that are played (1)")
    one.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return one


def _argument(read: Any) -> Any:
    """A reader whose ValueError argparse shows."""

    def wrapped(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return wrapped


def _share(text: str) -> float:
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"{text} is below 0")
    return value


def _part(text: str) -> float:
    value = _share(text)
    if value > 1:
        raise ValueError(f"{text} is more than all; write a share like 0.5 or 50%")
    return value


seconds = _argument(duration.parse_seconds)
price = _argument(prices.parse)
share = _argument(_share)
part = _argument(_part)


def ask(given: argparse.Namespace, now: float) -> estimate.Question:
    """The question that the arguments and the job's file ask, `now` in hours since 1970.

    Raises:
        errors.ConfigError: something is missing or can't be read; the message says what to write.

    """
    job = _read(given.job)
    raw, status = job.get("spec") or {}, job.get("status") or {}
    try:
        spec = specs.parse(raw)
    except specs.InvalidSpecError as error:
        raise errors.ConfigError(f"{given.job}: {error}") from error
    window = given.window or spec.spot.window or clouds.DEFAULT_WINDOW
    known = {} if given.hazard is not None else _pools(given.learnt, given.pool, spec.spot.pools)
    rate = given.hazard
    if rate is None and not known:
        rate = HOUR / interval.PRIOR_MEAN_SECONDS
    saved = (status.get("checkpoint") or {}).get("saveSeconds")
    return estimate.Question(
        work=(given.work or _work_left(status)) / HOUR,
        workers=spec.at_once,
        save=(given.save or saved or SAVE) / HOUR,
        restart=given.restart / HOUR,
        usable=clouds.usable(window) / HOUR,
        gang=not spec.independent,
        floor=spec.spot.floor,
        notice_share=given.notice_share,
        fixed_interval=spec.checkpoint.interval and spec.checkpoint.interval / HOUR,
        rate=rate,
        pools=known,
        now=now,
        prices=_prices(given, spec.prices),
        seed=given.seed,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except OSError as error:
        raise errors.ConfigError(f"{path}: {error.strerror}; name a file") from error
    found = _parsed(text, path)
    if not isinstance(found, dict):
        raise errors.ConfigError(f"{path} holds no object: name the file of one")
    return found


def _parsed(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        import yaml  # noqa: PLC0415 - JSON can be read without it
    except ImportError as error:
        advice = "`pip install '.[cli]'` in a checkout of spottrain, to read YAML"
        raise errors.ConfigError(f"{path} isn't JSON: {advice}") from error

    class Loader(yaml.SafeLoader):
        """As the API server reads YAML: a time without quotes, such as completeBy, stays a string."""

    Loader.yaml_implicit_resolvers = {
        first: [one for one in known if one[0] != "tag:yaml.org,2002:timestamp"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(text, Loader)  # noqa: S506 - it is a safe one
    except yaml.YAMLError as error:
        raise errors.ConfigError(f"{path} is neither YAML nor JSON: {error}") from error


def _work_left(status: Mapping[str, Any]) -> float:
    """Seconds, by what an earlier or the present run has told of its progress."""
    told = status.get("progress") or {}
    total, speed = told.get("total"), told.get("perSecond")
    if not total or not speed:
        raise errors.ConfigError(
            "how much there is to do isn't known: give --work, or the file of a job that has told its step "
            "(kubectl get stj NAME -o yaml)"
        )
    return float(total - (told.get("step") or 0)) / float(speed)


def _pools(path: Path | None, wanted: Sequence[str], entries: allowed.Entries) -> dict[str, hazard.Record]:
    if path is None:
        if wanted:
            raise errors.ConfigError("--pool names what --learnt holds: give that file too, or --hazard")
        return {}
    raw = _read(path)
    try:
        known = pools.decode((raw.get("data") or {}).get(pools.KEY) or json.dumps(raw))
    except ValueError as error:
        raise errors.ConfigError(f"{path} {error}") from error
    spot = {name: one for name, one in known.items() if name.startswith(_SPOT)}
    if not wanted and entries:
        return _allowed(spot, entries)
    if wanted:
        spot = {name: one for name, one in spot.items() if any(part in name for part in wanted)}
    if not spot:
        there = ", ".join(known) or "none"
        raise errors.ConfigError(f"{path} has no such spot pool; those that are there: {there}")
    return spot


def _allowed(spot: Mapping[str, hazard.Record], entries: allowed.Entries) -> dict[str, hazard.Record]:
    """Those that `spot.pools` covers; what it names and nobody has met is a pool like any other."""
    places = {name: _place(name) for name in spot}
    found = {name: spot[name] for name, place in places.items() if allowed.weight(entries, *place)}
    unseen = allowed.unseen(entries, places.values())
    return found | {_SPOT + "/".join(entry.place): hazard.Record() for entry in unseen}


def _place(name: str) -> tuple[str, str]:
    """Zone and instance type of a spot pool, by its name."""
    zone, _, instance_type = name.removeprefix(_SPOT).partition("/")
    return zone, instance_type


def _prices(given: argparse.Namespace, said: prices.Prices | None) -> prices.Prices | None:
    spot = given.spot_price or (said.spot if said else None)
    bought = given.on_demand_price or (said.on_demand if said else None)
    if spot is None and bought is None:
        return None
    if spot is None or bought is None:
        raise errors.ConfigError("one price says nothing: give --spot-price and --on-demand-price")
    return prices.Prices(spot, bought)


def table(answer: estimate.Answer) -> str:
    """For people."""
    question = answer.question
    ways = (("spot", answer.spot), ("mixed", answer.mixed), ("on-demand", answer.on_demand))
    heads = ["", "WALL TIME", "80 %", "RECLAIMS", "80 %"]
    rows = [[name, *_spreads(one)] for name, one in ways]
    if question.prices:
        heads += ["COST", "80 %"]
    facts = [
        f"interval   {_time(answer.interval)}",
        f"reclaims   every {_time(answer.mean_time)} on average; {_time(answer.lost)} lost at each",
        f"overhead   {1 - answer.goodput:.1%} of the time on spot: saves, lost work, restarts",
        f"save       {_time(question.save)}; {_time(question.usable)} of the notice can be used",
    ]
    if answer.break_even is not None and answer.break_even_rate is not None:
        facts.append(
            f"spot pays  up to {answer.break_even:.0f} reclaims, {answer.break_even_rate:.3f} per worker-hour"
        )
    warned = [f"warning: {one}" for one in warnings(answer)]
    return "\n".join([*facts, "", words.table(heads, rows), *(["", *warned] if warned else [])])


def _time(hours: float) -> str:
    return duration.format_seconds(round(hours * HOUR)) if hours < math.inf else "never"


def _spreads(way: estimate.Way) -> Iterator[str]:
    """Mean and spread of each figure; where futures aren't done the mean is the least that it can be."""
    least = ">= " if way.at_least else ""
    shown: list[tuple[forecast.Spread | None, Any]] = [
        (way.wall, _time),
        (way.reclaims, "{:.1f}".format),
        (way.cost, "{:.2f}".format),
    ]
    for found, show in shown:
        if found is not None:
            yield f"{least}{show(found.mean)}"
            yield f"{show(found.low)} to {show(found.high)}"


def warnings(answer: estimate.Answer) -> list[str]:
    """Where the design is wrong, each with what to do."""
    question, found = answer.question, []
    if 1 - answer.goodput > estimate.TOO_MUCH:
        found.append(
            f"it is interrupted every {_time(answer.mean_time)} on average and a save takes "
            f"{_time(question.save)}: {1 - answer.goodput:.0%} of the time on spot is overhead. Save faster "
            "(in the background, sharded), use fewer and larger nodes, calmer pools, or on-demand"
        )
    if not question.save_fits:
        found.append(
            f"a save takes {_time(question.save)} and {_time(question.usable)} of the notice can be used: "
            "every reclaim loses what was done since the last save. Save faster, or set spec.spot.window "
            "where the nodes give more notice"
        )
    unmet = [name for name, record in question.pools.items() if record == hazard.Record()]
    if unmet:
        found.append(
            f"nothing was ever learnt of {', '.join(unmet)}, so the rates of public traces are taken: "
            "unless no job has run there yet, compare the names in spec.spot.pools with the nodes' labels"
        )
    for name, way in (("spot", answer.spot), ("mixed", answer.mixed)):
        if way.at_least:
            found.append(
                f"{name}: in {1 - way.done:.0%} of the futures it is not done in {forecast.NEVER:.0f} "
                "times its work"
            )
    if answer.spot.cost and answer.on_demand.cost and answer.spot.cost.mean >= answer.on_demand.cost.mean:
        found.append("spot alone costs more than on-demand here: use on-demand")
    return found


def plain(answer: estimate.Answer) -> dict[str, Any]:
    """For programs: seconds, shares, amounts; null where something isn't known. `atLeast` is of the means."""
    return {
        "intervalSeconds": round(answer.interval * HOUR, 1),
        "secondsBetweenReclaims": round(answer.mean_time * HOUR, 1),
        "secondsLostAtEach": round(answer.lost * HOUR, 1),
        "overhead": round(1 - answer.goodput, 4),
        "saveSeconds": round(answer.question.save * HOUR, 1),
        "usableNoticeSeconds": round(answer.question.usable * HOUR, 1),
        "saveFits": answer.question.save_fits,
        "spot": _plain_way(answer.spot),
        "mixed": _plain_way(answer.mixed),
        "onDemand": _plain_way(answer.on_demand),
        "breakEvenReclaims": answer.break_even,
        "breakEvenPerWorkerHour": answer.break_even_rate,
        "warnings": warnings(answer),
    }


def _plain_way(way: estimate.Way) -> dict[str, Any]:
    return {
        "wallSeconds": _plain_spread(way.wall, HOUR),
        "reclaims": _plain_spread(way.reclaims, 1),
        "cost": _plain_spread(way.cost, 1) if way.cost else None,
        "done": way.done,
        "atLeast": way.at_least,
    }


def _plain_spread(found: forecast.Spread, factor: float) -> dict[str, float]:
    return {name: round(getattr(found, name) * factor, 2) for name in ("mean", "low", "high")}
