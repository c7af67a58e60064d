"""preference-instability: what leaves its path in preference and RLHF runs, and what healthy ones look like."""

import numpy as np
import pytest

from tests.ailing_outcomes import cut_answers, displaced, lost_margin, policy, preference, runaway_policy
from tests.engine import block_ends, session
from tests.streams import batch, findings, steps
from trainmon_rules.detectors.policy import NO_ANSWERS
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.findings import Severity, State
from trainmon_rules.postmortem import report_runs
from trainmon_rules.state import Settings

SYMPTOM = "preference-instability"


def rng(seed=0):
    return np.random.default_rng(seed)


def of_symptom(columns, answers=None):
    s = Session("run", Settings.default(answers))
    s.open("log")
    s.feed("log", batch(columns))
    return [f for f in s.runs[0].findings.values() if f.symptom == SYMPTOM]


def with_(run, tag, change, since=300):
    """The run with a column changed from a row on: `change` gives the new value from row number and old value."""
    run[tag] = [change(i, v) if i >= since else v for i, v in enumerate(run[tag])]
    return run


# ------------------------------------------------------------------ margins and accuracies
@pytest.mark.parametrize("seed", range(3))
def test_a_margin_below_zero(seed):
    [f] = findings(lost_margin(seed), "preference-margin")
    assert steps([f]) == [(303, 335, None)]
    assert f.severity is Severity.WARNING
    assert "the rejected answers are the likelier ones" in f.summary


def test_an_accuracy_back_at_one_half():
    run = with_(preference(), "rewards/accuracies", lambda i, v: float(rng(i).binomial(16, 0.5)) / 16)
    [f] = findings(run, "preference-margin")
    assert f.tag == "rewards/accuracies"
    assert f.onset_step in range(290, 310)
    assert "no better than a coin" in f.summary


def test_a_margin_that_comes_back_is_resolved():
    run = with_(preference(), "rewards/margins", lambda i, v: v - 2.0 if i < 450 else v)
    [f] = findings(run, "preference-margin")
    assert f.state is State.RESOLVED
    assert 450 < f.resolved_step < 500


def test_a_margin_beyond_what_the_loss_sees_is_listed():
    run = preference()
    run["rewards/margins"] = [30 * m for m in run["rewards/margins"]]
    [f] = findings(run, "preference-margin-high")
    assert f.severity is Severity.INFO


@pytest.mark.parametrize(("fall", "count"), [(0.5, 0), (1.1, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_half_of_what_the_margin_had_gained_is_the_border(fall, count, seed):
    run = with_(preference(seed=seed), "rewards/margins", lambda i, v: v - fall)  # from 1.5
    assert len(findings(run, "preference-margin")) == count


# ------------------------------------------------------------------ displacement
@pytest.mark.parametrize("seed", range(3))
def test_both_answers_lose_likelihood(seed):
    [f] = findings(displaced(seed), "preference-displacement")
    assert f.severity is Severity.WARNING
    assert f.onset_step in (316, 317)
    assert f.detected_step == 335


def test_a_fall_to_minus_seven_is_only_listed():
    run = with_(preference(), "rewards/chosen", lambda i, v: v - 7.0)
    [f] = findings(run, "preference-displacement")
    assert (f.severity, f.onset_step) == (Severity.INFO, 300)


def test_beta_turns_rewards_into_nats():
    """-2 is 20 nats with a β of 0.1, and 200 with one of 0.01."""
    run = with_(preference(), "rewards/chosen", lambda i, v: v - 2.0)
    assert of_symptom(run, {"preference_beta": 0.1}) == []
    [f] = of_symptom(run, {"preference_beta": 0.01})
    assert f.rule == "preference-displacement"
    assert f.evidence["nats lost"] == pytest.approx(250, rel=0.1)


# ------------------------------------------------------------------ a policy
@pytest.mark.parametrize("seed", range(3))
def test_the_policy_runs_away_from_its_reference(seed):
    [f] = findings(runaway_policy(seed), "policy-kl")
    assert steps([f]) == [(300, 319, None)]
    assert f.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("tag", "before", "after", "severity"),
    [
        ("policy/approxkl_avg", 0.01, 0.3, Severity.WARNING),  # of one update
        ("objective/kl", 3.0, 60.0, Severity.WARNING),  # summed over an answer
        ("objective/kl", 30.0, 150.0, Severity.INFO),  # far, but not a tenfold rise
        ("kl", 1.0, 6.0, Severity.WARNING),
        ("kl", 0.01, -3.0, Severity.WARNING),  # no divergence
    ],
)
def test_each_divergence_by_its_own_unit(tag, before, after, severity):
    run = policy()
    del run["kl"]
    level = np.where(np.arange(700) < 300, before, after)
    run[tag] = (level * np.exp(rng().normal(0, 0.1, 700))).tolist()
    [f] = findings(run, "policy-kl")
    assert (f.onset_step, f.severity) == (300, severity)


@pytest.mark.parametrize(("after", "count"), [(0.6, 0), (1.5, 1)])
def test_ten_times_the_level_counts_from_one_nat_on(after, count):
    run = policy()
    level = np.where(np.arange(700) < 300, 0.01, after)
    run["kl"] = (level * np.exp(rng().normal(0, 0.1, 700))).tolist()
    assert [f.detected_step for f in findings(run, "policy-kl")] == [319] * count


@pytest.mark.parametrize("tag", ["policy/approxkl_avg", "objective/kl", "kl", "objective/non_score_reward"])
def test_quiet_on_usual_divergences(tag):
    usual = {"policy/approxkl_avg": 0.02, "objective/kl": 12.0, "kl": 0.3, "objective/non_score_reward": -2.0}[tag]
    for seed in range(5):
        run = policy(seed=seed)
        del run["kl"]
        rising = usual * (0.05 + np.minimum(1, np.arange(700) / 400)) * np.exp(rng(seed).normal(0, 0.3, 700))
        run[tag] = rising.tolist()
        assert of_symptom(run) == []


@pytest.mark.parametrize(
    ("tag", "rule", "listed", "warned"),
    [
        ("clip_ratio/region_mean", "policy-clipping", 0.4, 0.6),
        ("frac_reward_zero_std", "reward-signal", 0.95, 1.0),
        ("completions/clipped_ratio", "answers-cut", 0.95, 1.0),
        ("entropy", "policy-entropy", 0.05, 0.01),
    ],
)
def test_levels_of_a_policy(tag, rule, listed, warned):
    run = policy()
    if rule == "reward-signal":
        run["reward"] = (0.3 + rng().normal(0, 0.05, 700)).tolist()  # it never rose
    for level, severity in ((listed, Severity.INFO), (warned, Severity.WARNING)):
        [f] = findings(with_(dict(run), tag, lambda i, v, level=level: level), rule)
        assert (steps([f]), f.severity) == ([(300, 319, None)], severity), level


def test_groups_without_spread_are_success_while_the_reward_has_risen():
    run = with_(policy(), "frac_reward_zero_std", lambda i, v: 1.0)
    [f] = findings(run, "reward-signal")
    assert f.severity is Severity.INFO
    assert "the reward rose from" in f.summary


def test_answers_that_grow_with_the_reward_are_listed():
    longer = with_(policy(), "completions/mean_length", lambda i, v: 1200.0)
    [f] = findings(longer, "answers-grow")
    assert f.severity is Severity.INFO
    longer["reward"] = (0.3 + rng().normal(0, 0.05, 700)).tolist()
    assert findings(longer, "answers-grow") == []


def test_answers_cut_at_the_limit():
    [f] = findings(cut_answers(), "answers-cut")
    assert steps([f]) == [(300, 319, None)]


def test_it_is_resolved_when_answers_end_again():
    run = with_(cut_answers(), "completions/clipped_ratio", lambda i, v: 0.2, since=500)
    [f] = findings(run, "answers-cut")
    assert f.state is State.RESOLVED
    assert 500 < f.resolved_step < 530


# ------------------------------------------------------------------ look-alikes
def noisy_preference(n, pairs, seed):
    """A healthy DPO run with so few pairs a report that margins are mostly noise and accuracies 0, ½ or 1."""
    r, t = rng([seed, pairs, n]), np.arange(n)
    level = 1.6 * (1 - np.exp(-t / (n / 5)))
    margin = level + r.normal(0, 1, n) * 3 * (level / 2 + 0.05) / np.sqrt(pairs)
    chosen = -0.8 * (1 - np.exp(-t / (n / 3))) + margin / 2
    return {
        "loss": (np.log1p(np.exp(-level)) + r.normal(0, 0.3 / np.sqrt(pairs), n)).tolist(),
        "rewards/chosen": chosen.tolist(),
        "rewards/rejected": (chosen - margin).tolist(),
        "rewards/margins": margin.tolist(),
        "rewards/accuracies": (r.binomial(pairs, 0.5 + 0.28 * (1 - np.exp(-t / (n / 8)))) / pairs).tolist(),
        "logps/chosen": (-180 + 10 * chosen + r.normal(0, 80 / np.sqrt(pairs), n)).tolist(),
    }


@pytest.mark.parametrize("pairs", [1, 2, 4, 16])
@pytest.mark.parametrize("n", [60, 300, 1000])
def test_quiet_on_few_pairs_a_report(n, pairs):
    for seed in range(8):
        assert of_symptom(noisy_preference(n, pairs, seed)) == [], seed


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_margins_that_overshoot_and_settle(seed):
    """As with label smoothing: up to 3.4, back to 2.9, accuracy 1.0 throughout."""
    t = np.arange(400)
    course = 2.9 / (1 + np.exp(-(t - 60) / 10)) + 0.5 * np.exp(-(((t - 90) / 15) ** 2))
    run = {
        "loss": (0.2 + 0.49 / (1 + np.exp((t - 60) / 10))).tolist(),
        "rewards/margins": (course + rng(seed).normal(0, 0.1, 400)).tolist(),
        "rewards/accuracies": (0.5 + 0.5 / (1 + np.exp(-(t - 40) / 5))).tolist(),
        "rewards/chosen": (-0.07 * course).tolist(),
        "rewards/rejected": (-1.07 * course).tolist(),
    }
    assert of_symptom(run) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_mild_fall_of_both_answers(seed):
    run = with_(preference(seed=seed), "rewards/chosen", lambda i, v: v - 1.5, since=0)
    assert of_symptom(run) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_healthy_policies(seed):
    assert of_symptom(policy(seed=seed)) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_single_updates_with_a_huge_divergence(seed):
    run = policy(seed=seed)
    for i in range(60, 700, 25):
        run["kl"][i] = 3e3
        run["clip_ratio/region_mean"][i] = 0.9
    assert of_symptom(run) == []


@pytest.mark.parametrize("seed", range(3))
def test_quiet_on_agents_and_autoencoders(seed):
    """Entropy goes to 0 where the game is solved, a VAE's KL rises by hundreds: other fields own those."""
    t = np.arange(1000)
    agent = {
        "rollout/ep_rew_mean": (20 + 480 * (1 - np.exp(-t / 200)) + rng(seed).normal(0, 10, 1000)).tolist(),
        "rollout/ep_len_mean": (20 + 480 * (1 - np.exp(-t / 200))).tolist(),
        "losses/entropy": (0.69 * np.exp(-t / 100)).tolist(),
        "losses/approx_kl": (0.4 + 0 * t).tolist(),
        "losses/clipfrac": (0.6 + 0 * t).tolist(),
    }
    vae = {"loss": (300 * np.exp(-t / 200)).tolist(), "kl_loss": np.where(t < 500, 0.01, 25.0).tolist()}
    assert of_symptom(agent) == of_symptom(vae) == []


@pytest.mark.parametrize("seed", range(3))
def test_quiet_on_a_reward_model(seed):
    """Its outputs have no zero: that of the chosen answers may fall."""
    t = np.arange(700)
    run = {
        "loss": (0.69 * np.exp(-t / 300)).tolist(),
        "chosen_reward": (-0.03 * t + rng(seed).normal(0, 0.3, 700)).tolist(),
        "reject_reward": (-0.03 * t - 2 * (1 - np.exp(-t / 100))).tolist(),
        "acc": (0.5 + 0.3 * (1 - np.exp(-t / 100))).tolist(),
    }
    assert of_symptom(run) == []


def test_an_agents_run_is_told_to_be_none_of_answers():
    agent = {"rollout/ep_rew_mean": [1.0] * 60, "losses/entropy": [0.5] * 60, "losses/approx_kl": [0.01] * 60}
    [report] = report_runs(session(agent), Knowledge.load())
    needs = {b.rule: b.needs for b in report.blind}
    assert needs["policy-entropy"] == needs["policy-kl"] == NO_ANSWERS
    answered = session(agent, settings=Settings.default({"preference_method": "grpo"}))
    [report] = report_runs(answered, Knowledge.load())
    assert not {"policy-entropy", "policy-kl"} & {b.rule for b in report.blind}


def test_gaps_and_awkward_numbers_change_nothing():
    for run, rule, tag in (
        (lost_margin(), "preference-margin", "rewards/margins"),
        (displaced(), "preference-displacement", "rewards/chosen"),
        (runaway_policy(), "policy-kl", "kl"),
        (cut_answers(), "answers-cut", "completions/clipped_ratio"),
    ):
        for k, i in enumerate(range(5, 700, 7)):
            run[tag][i] = [None, float("nan"), 1e300][k % 3]
        found = findings(run, rule)
        assert len(found) == 1, rule
        assert found[0].onset_step in range(290, 325), rule
        assert found[0].detected_step < 360, rule


# ------------------------------------------------------------------ each rule: its border, and what looks like it
def shown(tag, values, **beside):
    """A healthy policy's run with another column; the findings of the symptom."""
    run = {**policy(len(values)), **beside}
    run[tag] = np.asarray(values).tolist()
    return of_symptom(run)


@pytest.mark.parametrize(
    ("tag", "quiet", "loud"),
    [
        ("clip_ratio/region_mean", 0.3, 0.4),
        ("frac_reward_zero_std", 0.85, 0.95),
        ("completions/clipped_ratio", 0.85, 0.95),
        ("entropy", 0.12, 0.06),  # 0.9 at first
    ],
)
def test_limits_of_a_policy_are_where_the_rules_put_them(tag, quiet, loud):
    start = policy()[tag][:16]
    for level, count in ((quiet, 0), (loud, 1)):
        assert len(shown(tag, [*start, *([level] * 684)])) == count, level


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("tag", "usual", "rare"),
    [
        ("clip_ratio/region_mean", 0.05, 0.9),
        ("frac_reward_zero_std", 0.4, 1.0),
        ("completions/clipped_ratio", 0.3, 1.0),
        ("entropy", 0.8, 0.001),
        ("kl", 0.05, 50.0),
    ],
)
def test_quiet_on_shares_that_are_extreme_now_and_then(tag, usual, rare, seed):
    """Half of the reports at most, in no order: a few prompts a batch, or a hard part of the data."""
    r = rng(seed)
    values = np.where(r.random(700) < 0.4, rare, usual * np.exp(r.normal(0, 0.1, 700)))
    values[:16] = usual
    assert shown(tag, values) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tag", ["clip_ratio/region_mean", "frac_reward_zero_std", "completions/clipped_ratio"])
def test_quiet_on_a_share_that_climbs_and_levels_off_below_its_limit(tag, seed):
    top = {"clip_ratio/region_mean": 0.25}.get(tag, 0.8)
    values = top * (1 - np.exp(-np.arange(700) / 150)) + rng(seed).normal(0, 0.02, 700)
    assert shown(tag, np.clip(values, 0, 1)) == []


@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_an_entropy_that_falls_to_a_seventh_and_answers_that_double(seed):
    t = np.arange(700)
    assert shown("entropy", (0.13 + 0.77 * np.exp(-t / 100)) * np.exp(rng(seed).normal(0, 0.02, 700))) == []
    assert shown("completions/mean_length", 300 * (1 + t / 700) * np.exp(rng(seed).normal(0, 0.05, 700))) == []
    assert shown("completions/max_length", 300 * (1 + 9 * (t > 300))) == []  # the longest of a batch


@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_a_margin_of_ten_and_on_one_that_is_twenty_for_a_moment(seed):
    run = preference(seed=seed)
    run["rewards/margins"] = [6 * m for m in run["rewards/margins"]]
    run["rewards/margins"][200:208] = [40.0] * 8
    assert findings(run, "preference-margin-high") == []


@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_a_chosen_reward_that_falls_no_further_than_the_margin_gained(seed):
    """A large β: margins of 9, a chosen reward of -6."""
    run = preference(seed=seed)
    run["rewards/margins"] = [6 * m for m in run["rewards/margins"]]
    run["rewards/chosen"] = [12 * c for c in run["rewards/chosen"]]
    assert findings(run, "preference-displacement") == []


# ------------------------------------------------------------------ slow twin of a level beyond its limit
def twin(x):
    """The rule in its obvious form, for answers cut at the limit: (detected, worst, resolved) of each finding."""
    found, limit = [], None
    for end in block_ends(len(x), 20):
        last = np.array(x[end - 20 : end])
        worse = next((v for v in (0.98, 0.9) if np.quantile(last, 0.25) > v), None)
        if limit is not None and np.median(last) < 0.8 * limit:
            found[-1][2], limit = end - 1, None
        elif limit is None and worse is not None:
            found.append([end - 1, worse, None])
            limit = worse
        elif worse is not None and worse > limit:
            found[-1][1] = limit = worse
    return [tuple(f) for f in found]


def shares(seed):
    r = rng(seed)
    level = np.repeat(r.choice([0.5, 0.75, 0.88, 0.95, 1.0], 20), 35)
    return np.clip(level + r.normal(0, r.choice([0.0, 0.02, 0.1]), 700), 0, 1).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_its_slow_twin(seed):
    run = policy() | {"completions/clipped_ratio": shares(seed)}
    border = {Severity.INFO: 0.9, Severity.WARNING: 0.98}
    got = [(f.detected_step, border[f.severity], f.resolved_step) for f in findings(run, "answers-cut")]
    assert got == twin(run["completions/clipped_ratio"])


def test_the_twin_tells_some_and_leaves_some():
    told = [f for seed in range(20) for f in twin(shares(seed))]
    assert len(told) > 10
    assert {0.9, 0.98} == {f[1] for f in told}
    assert any(f[2] is None for f in told)
