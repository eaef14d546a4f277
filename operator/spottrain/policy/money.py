"""What spot costs, and from how many reclaims on it costs more than it saves.

Amounts are sums of worker-hours times a price per worker-hour, in whatever currency the prices are in.
"""

from spottrain.api import prices


def cost(hours: float, price: prices.Amount) -> prices.Amount:
    """To the cent; hours are exact to the second, as they are counted."""
    return prices.amount(round(hours * 3600) * price)


def break_even(*, discount: float, work: float, lost: float) -> float:
    """How many reclaims make spot as dear as on-demand: it pays while r·L/H < d/(1-d).

    `discount` d (0..1), `work` H useful hours, `lost` L hours lost at each reclaim.
    """
    if discount >= 1 or lost <= 0:
        return float("inf")
    return max(0.0, discount) / (1 - discount) * work / lost
