"""Two things that two places have in different orders."""

from __future__ import annotations

import numpy as np

from quire.pipeline.compiled import compiled


@compiled
def first_inversion(there: np.ndarray, kind: np.ndarray, together: np.ndarray) -> tuple[int, int]:
    """Two messages in the order of one place that another has the other way round, where the order of their kinds matters:
    `there` is where the other has each of them."""
    furthest = np.full(len(together), -1, np.int64)
    at = np.full(len(together), -1, np.int64)
    for index in range(len(there)):
        mine = kind[index]
        for other in range(len(together)):
            if together[mine, other] and furthest[other] > there[index]:
                return at[other], index
        if there[index] > furthest[mine]:
            furthest[mine] = there[index]
            at[mine] = index
    return -1, -1
