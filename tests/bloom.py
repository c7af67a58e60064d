"""The loss spike of BLOOM-176B at iterations 31214–31251, set into a stretch of the same level and noise.

The numbers of `MEASURED` are facts of the public chronicle of that training: bigscience-workshop/bigscience,
train/tr11-176B-ml/chronicles.md, commit 9e64edec2ad1fb9263bf39ba616a84ff64b4d947. The chronicle leaves out iterations
31223 to 31249; here they are filled: what is left of the rise of either falls by a constant factor from the one end of
the gap to the other, with the noise of the stretch. Everything before and after is made.
"""

import numpy as np

MEASURED = (  # iteration, lm loss, grad norm
    (31214, 2.198845, 0.242), (31215, 2.220424, 0.947), (31216, 2.595213, 2.390), (31217, 2.241558, 15.886),
    (31218, 2.345279, 145.119), (31219, 5.098124, 960.351), (31220, 3.492029, 353.201), (31221, 3.213059, 379.330),
    (31222, 2.804948, 650.246), (31250, 2.215699, 0.267), (31251, 2.235667, 0.205),
)  # fmt: skip
GRADIENT_ONSET, LOSS_ONSET, LOSS_PEAK = 31215, 31216, 31219
FIRST, LAST = 30214, 32251
LEVEL, NOISE = 2.21, 0.02  # of the loss: what is left of the rise at either end of the gap is known, the level isn't
NORM, NORM_NOISE = 0.2, 0.12


def bloom(seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the iterations, and loss and gradient norm at each."""
    rng = np.random.default_rng(seed)
    step = np.arange(FIRST, LAST + 1)
    loss = LEVEL + rng.normal(0, NOISE, len(step))
    log_norm = np.log(NORM) + rng.normal(0, NORM_NOISE, len(step))
    gap = (step > 31222) & (step < 31250)
    way = (step[gap] - 31222) / (31250 - 31222)
    loss[gap] += (2.804948 - LEVEL) ** (1 - way) * (2.215699 - LEVEL) ** way
    log_norm[gap] += (1 - way) * np.log(650.246 / NORM) + way * np.log(0.267 / NORM)
    norm = np.exp(log_norm)
    for iteration, lm_loss, grad_norm in MEASURED:
        loss[iteration - FIRST], norm[iteration - FIRST] = lm_loss, grad_norm
    return step, {"lm loss": loss, "grad norm": norm}
