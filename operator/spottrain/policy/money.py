"""What spot costs, what it saves, and from how many reclaims on it doesn't.

Amounts are sums of worker-hours times a price per worker-hour, in whatever currency the prices are in. They
are decimals: what a bill adds up to the cent must not depend on the order of adding.
"""

import dataclasses
import decimal
from collections.abc import Iterable

Amount = decimal.Decimal
CENT = Amount("0.01")


@dataclasses.dataclass(frozen=True)
class Prices:
    """Of one worker for one hour."""

    spot: Amount
    on_demand: Amount

    @property
    def discount(self) -> float:
        """What spot is cheaper by, as a share (0..1) of the price on demand; below 0 where it is dearer."""
        return float(1 - self.spot / self.on_demand)


def parse(text: str) -> Amount:
    """A price as people write it.

    Raises:
        ValueError: it is no number above 0; the message says what to write.

    """
    try:
        price = Amount(text)
    except decimal.InvalidOperation:
        price = Amount(0)
    if not price.is_finite() or price <= 0:
        raise ValueError(f'"{text}" is not a price per worker-hour; write a number above 0, like 1.10')
    return price


def cost(hours: float | Amount, price: Amount) -> Amount:
    """To the cent; hours are exact to the second, as they are counted."""
    seconds = Amount(round(float(hours) * 3600))
    return (seconds * price / 3600).quantize(CENT, rounding=decimal.ROUND_HALF_EVEN)


def total(amounts: Iterable[Amount]) -> Amount:
    """Of amounts in whole cents: adds up whatever the order."""
    return sum(amounts, Amount(0))


def break_even(*, discount: float, work: float, lost: float) -> float:
    """How many reclaims make spot as dear as on-demand: it pays while r·L/H < d/(1-d).

    `discount` d (0..1), `work` H useful hours, `lost` L hours lost at each reclaim.
    """
    if discount >= 1 or lost <= 0:
        return float("inf")
    return max(0.0, discount) / (1 - discount) * work / lost
