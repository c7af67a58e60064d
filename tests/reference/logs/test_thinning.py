"""What is logged of what a trainer tells."""

import pytest

from trainmon_reference.logs import check_log, thinned
from trainmon_reference.record import Record
from trainmon_reference.scenarios import LogSpec, load_scenarios


def told(steps, **values):
    return [Record(s, s / 10, float(s), "train", {k: v * s for k, v in values.items()}) for s in range(1, steps + 1)]


def test_a_loss_is_the_mean_since_the_last_report_and_the_rest_the_last_value():
    spec = LogSpec("wandb", every=3, roles=("train_loss", "adversarial_loss", "grad_norm"))
    values = {"train_loss": 1.0, "adversarial_loss.critic": 2.0, "grad_norm": 1.0, "learning_rate": 1.0}
    found = list(thinned(told(7, **values), spec))
    assert [r.step for r in found] == [3, 6]
    assert found[1].values == {"train_loss": 5.0, "adversarial_loss.critic": 10.0, "grad_norm": 6.0}


def test_an_evaluation_is_always_logged():
    valid = Record(2, 0.2, 2.5, "valid", {"val_loss": 4.0, "eval_metric": 0.5})
    records = told(3, train_loss=1.0)
    found = list(thinned([*records[:2], valid, records[2]], LogSpec("wandb", every=3)))
    assert [(r.step, r.phase) for r in found] == [(2, "valid"), (3, "train")]
    assert found[0].values == valid.values
    assert found[1].values == {"train_loss": 2.0}


@pytest.mark.parametrize("scenario", load_scenarios().values(), ids=lambda s: s.name)
def test_each_scenario_logs_only_what_its_framework_has_a_name_for(scenario):
    check_log(scenario.log)
