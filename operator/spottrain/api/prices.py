"""What a worker costs for an hour, and where that is written: a job's spec, a ConfigMap, marks on nodes.

Prices are decimals in whatever currency they are in. What adds up to the cent must not depend on the order of
adding, so a price has few decimals, and sums of it times whole seconds are exact.
"""

import collections.abc as cabc
import dataclasses
import decimal

from spottrain.api import names
from spottrain.api.clouds import Capacity

Amount = decimal.Decimal
CENT = Amount("0.01")
DECIMALS = 6
MOST = Amount(1_000_000)
NOTHING = Amount(0)
ANY = "*"
_ON_DEMAND = {Capacity.ON_DEMAND, Capacity.NOT_SPOT}


@dataclasses.dataclass(frozen=True)
class Prices:
    """Of one worker for one hour."""

    spot: Amount
    on_demand: Amount

    @property
    def discount(self) -> float:
        """What spot is cheaper by, as a share (0..1) of the price on demand; below 0 where it is dearer."""
        return float(1 - self.spot / self.on_demand)

    def rate(self, capacity: Capacity) -> "Rate":
        """Of a worker there. Where nobody knows what a node is bought as, the dearer is assumed."""
        return Rate(self.spot if capacity is Capacity.SPOT else self.on_demand, self.on_demand)


@dataclasses.dataclass(frozen=True)
class Rate:
    """What one worker costs for one hour where it is, and what it would cost there on demand."""

    price: Amount
    on_demand: Amount


def parse(text: str) -> Amount:
    """A price as people write it.

    Raises:
        ValueError: it is no number above 0; the message says what to write.

    """
    try:
        price = Amount(text)
    except decimal.InvalidOperation:
        price = Amount(0)
    if not price.is_finite() or not 0 < price < MOST:
        raise ValueError(f'"{text}" is not a price per worker-hour; write a number above 0, like 1.10')
    if price != round(price, DECIMALS):
        raise ValueError(f'"{text}" has more than {DECIMALS} decimals; round it')
    return price


def amount(priced: Amount) -> Amount:
    """To the cent, from an exact sum of whole seconds times a price per hour: rounded once, here."""
    # A sum a little below 0 is rounded to -0.00; adding 0 takes the sign away.
    return (priced / 3600).quantize(CENT, rounding=decimal.ROUND_HALF_EVEN) + 0


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of a table: what a worker on such a node costs for an hour."""

    capacity: str
    instance_type: str
    zone: str
    price: Amount

    def holds(self, capacity: Capacity, instance_type: str, zone: str) -> bool:
        """It speaks of that node."""
        found = (capacity, instance_type, zone)
        return all(said in {ANY, is_} for said, is_ in zip(self._said, found, strict=True))

    @property
    def _said(self) -> tuple[str, str, str]:
        return self.capacity, self.instance_type, self.zone


@dataclasses.dataclass(frozen=True)
class Table:
    """Lines `CAPACITY INSTANCE-TYPE ZONE PRICE`, of which the first that fits holds; `#` begins a comment.

    CAPACITY is `spot` or `on-demand`; INSTANCE-TYPE and ZONE are as the nodes' labels have them, or `*`.
    """

    lines: tuple[Line, ...] = ()

    def rate(self, capacity: Capacity, instance_type: str, zone: str) -> Rate | None:
        """Of a worker on such a node; None unless its price and the one on demand are both there."""
        bought = Capacity.SPOT if capacity is Capacity.SPOT else Capacity.ON_DEMAND
        price = self._price(bought, instance_type, zone)
        on_demand = self._price(Capacity.ON_DEMAND, instance_type, zone)
        return None if price is None or on_demand is None else Rate(price, on_demand)

    def _price(self, capacity: Capacity, instance_type: str, zone: str) -> Amount | None:
        fitting = (line.price for line in self.lines if line.holds(capacity, instance_type, zone))
        return next(fitting, None)


NO_PRICES = Table()


def table(text: str) -> tuple[Table, list[str]]:
    """The table in a text, and what is wrong with the lines that were left out, each with what to write."""
    lines, problems = [], []
    for number, raw in enumerate(text.splitlines(), start=1):
        words = raw.partition("#")[0].split()
        if not words:
            continue
        try:
            lines.append(_line(words))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    return Table(tuple(lines)), problems


def _line(words: cabc.Sequence[str]) -> Line:
    if len(words) != 4:
        raise ValueError(f'"{" ".join(words)}" is not CAPACITY INSTANCE-TYPE ZONE PRICE; write four words')
    capacity, instance_type, zone, price = words
    if capacity not in {Capacity.SPOT, Capacity.ON_DEMAND}:
        raise ValueError(f'"{capacity}" is no capacity; write spot or on-demand')
    return Line(capacity, instance_type, zone, parse(price))


def marked(marks: cabc.Mapping[str, str], capacity: Capacity) -> Rate | None:
    """What labels or annotations of a node say; None if they say nothing, or only half of it.

    Raises:
        ValueError: what they say is no price; the message says what to write.

    """
    price = _marked(marks, names.MARK_PRICE)
    on_demand = price if capacity in _ON_DEMAND else _marked(marks, names.MARK_ON_DEMAND_PRICE)
    return None if price is None or on_demand is None else Rate(price, on_demand)


def _marked(marks: cabc.Mapping[str, str], key: str) -> Amount | None:
    if key not in marks:
        return None
    try:
        return parse(marks[key])
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error
