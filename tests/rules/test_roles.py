"""The role table: what every known name means, the traps, and names it must leave alone.

`data/roles/names.tsv` holds names that frameworks log, one a row: the context (names of one context are logged
together), the name, the directory of its file, the role that a survey of the frameworks gave it, and ours.
"""

import csv
import pickle
from collections import defaultdict
from pathlib import Path

import pytest

from trainmon_rules.engine import Session
from trainmon_rules.errors import BadConfig
from trainmon_rules.points import Batch, Params, chunk
from trainmon_rules.roles import RoleTable
from trainmon_rules.roles.rolefile import table
from trainmon_rules.roles.tags import listed
from trainmon_rules.state import Settings
from trainmon_rules.yamlfile import load_packaged

NAMES = Path(__file__).parents[1] / "data" / "roles" / "names.tsv"
TABLE = RoleTable.load()

# Where our role is another than the survey's: (survey's, ours) → why.
DEVIATIONS = {
    ("activation_sparsity", "activation_scale"): "norms and moments of activations are no share of zeros",
    ("activation_sparsity", "dead_units"): "units that never fire have a symptom of their own",
    ("data_time", "data_share"): "a percentage must not be read as seconds",
    ("entropy", "schedule"): "a coefficient, no entropy",
    ("kl", "schedule"): "a coefficient, no divergence",
    ("eval_metric", ""): "Lightning's hp_metric is a placeholder of -1",
    ("eval_metric", "eval_error"): "falling is good",
    ("eval_metric", "reward_accuracy"): "share of pairs ranked right",
    ("eval_metric", "train_metric"): "measured on training data",
    ("gpu_mem", "alloc_retries"): "a cumulative count grows without a leak",
    ("gpu_mem", "gpu_activity"): "traffic of the memory controller, not memory used",
    ("gpu_mem", "gpu_mem_free"): "the inverse sense",
    ("gpu_util", "gpu_activity"): "one part of the GPU; 30 % is healthy there",
    ("grad_norm", "grad_clip_fraction"): "a share of updates, not a norm",
    ("grad_norm", "grad_norm_component"): "one a parameter; the global one speaks",
    ("grad_norm", "twin"): "MaxText's clipped norm beside the raw one",
    ("learning_rate", "twin"): "the same on the axis of samples",
    ("length", "answer_length"): "of answers, not of episodes",
    ("length", "answers_cut"): "a share, not a length",
    ("perplexity", "val_perplexity"): "on validation data",
    ("reward", "implicit_reward"): "of one side of a pair: falls in healthy preference runs",
    ("reward", "reward_component"): "the total speaks",
    ("reward", "reward_spread"): "a spread, not to be maximised",
    ("reward", "reward_zero_std"): "a share of groups, not a reward",
    ("reward_margin", "reward_accuracy"): "a share, with a ceiling of 1",
    ("step_time", "eval_speed"): "of a validation step",
    ("step_time", "phase_time"): "a part of the step",
    ("step_time", "runtime"): "cumulative",
    ("throughput", "eval_speed"): "of evaluation",
    ("tokens", "batch"): "a batch, not a running total",
    ("train_loss", "final_summary"): "logged once, when training is over",
    ("train_loss", "loss_component"): "the total speaks",
    ("train_loss", "rl_loss"): "signed and near zero: loss rules are off",
    ("train_loss", "twin"): "an epoch's mean or a moving average of another series",
    ("val_loss", "twin"): "best so far",
    ("val_loss", "val_gap"): "validation minus training",
    ("val_loss", "val_loss_component"): "one of several",
    ("value_loss", ""): "explained variance, often NaN in healthy runs",
    ("value_loss", "value_estimate"): "values, no loss",
}


def _names():
    with NAMES.open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def _contexts():
    contexts = defaultdict(list)
    for row in _names():
        contexts[row["context"]].append(row)
    return contexts


@pytest.mark.parametrize("context", sorted(_contexts()))
def test_every_surveyed_name_gets_its_role_among_the_names_of_its_framework(context):
    rows = _contexts()[context]
    keys = dict.fromkeys(row["key"] for row in rows)
    got = {row["key"]: TABLE.assign(row["key"], keys, row["directory"]) for row in rows}
    assert got == {row["key"]: row["role"] for row in rows}


def test_the_table_differs_from_the_survey_only_where_it_says_why():
    rows = _names()
    differing = {(row["notes"], row["role"]) for row in rows if row["notes"] != row["role"]}
    assert differing == set(DEVIATIONS)
    assert len(rows) == 475
    assert sum(row["notes"] == row["role"] for row in rows) == 380


def test_every_surveyed_role_is_a_role_here():
    assert {row["notes"] for row in _names()} <= set(TABLE.roles)


# --------------------------------------------------------------------------------------- traps
HF_END = ["loss", "epoch", "train_runtime", "train_samples_per_second", "total_flos", "train_loss"]
GRPO = ["loss", "grad_norm", "reward", "reward_std", "kl", "completions/mean_length", "rewards/format/mean"]
PPO = ["objective/kl", "objective/scores", "loss/policy_avg", "loss/value_avg", "val/clipfrac_avg", "val/ratio", "lr"]
SB3 = ["rollout/ep_rew_mean", "time/fps", "train/approx_kl", "train/loss", "train/policy_gradient_loss"]
DETECTRON = ["data_time", "total_loss", "loss_cls", "loss_box_reg", "loss_rpn_cls", "time", "lr"]
MMDET = [
    "epoch",
    "iter",
    "lr",
    "memory",
    "data_time",
    "s0.loss_cls",
    "loss_rpn_cls",
    "loss_bbox",
    "acc",
    "loss",
    "time",
]
FAIRSEQ = ["loss", "nll_loss", "ppl", "gnorm", "clip", "gb_free", "wall", "wpb", "train_loss", "valid_loss"]
MEGATRON = ["lm loss", "lm loss vs samples", "grad-norm", "grad-norm vs samples", "lm loss validation"]
LLMC = ["s", "trl", "tel", "lr", "norm", "eval"]
FORK = ["train_loss_step", "train_loss_epoch", "val_loss_step", "val_loss_epoch"]
ULTRA = ["epoch", "time", "train/box_loss", "val/box_loss", "metrics/mAP50(B)", "lr/pg0"]
KERAS = [
    "loss",
    "accuracy",
    "acc",
    "precision",
    "mae",
    "val_loss",
    "val_acc",
    "val_accuracy",
    "val_precision",
    "val_mae",
]
VERIFIER = ["mean_reward", "loss", "nan_steps_skipped", "accuracy", "heldout_violation_rate"]


@pytest.mark.parametrize(
    ("tag", "keys", "directory", "role"),
    [
        # Keras: the directory tells; sub-directories of other names too; the tag's own word is stronger
        ("epoch_loss", ["epoch_loss"], "train/", "train_loss"),
        ("epoch_loss", ["epoch_loss"], "validation/", "val_loss"),
        ("epoch_accuracy", ["epoch_accuracy"], "validation/", "eval_metric"),
        ("epoch_accuracy", ["epoch_accuracy"], "train/", "train_metric"),
        ("loss", ["loss"], "val/", "val_loss"),
        ("loss", ["loss"], "eval/", "val_loss"),
        ("loss", ["loss"], "fold1/test/", "val_loss"),
        ("loss", ["loss"], "fold1/", "train_loss"),
        ("val_loss", ["val_loss"], "train/", "val_loss"),
        ("epoch_loss", ["batch_loss", "epoch_loss"], "train/", "twin"),
        ("evaluation_loss_vs_iterations", [], "validation/", "val_loss"),
        # TRL PPO: val/ is the value head, not validation
        ("val/clipfrac_avg", PPO, "", "clip_fraction"),
        ("val/ratio", PPO, "", "offpolicy"),
        ("train/val/ratio", ["train/" + k for k in PPO], "", "offpolicy"),
        ("val/loss", PPO, "", ""),
        ("loss/policy_avg", PPO, "", "rl_loss"),
        ("loss/value_avg", PPO, "", "value_loss"),
        ("val/loss", ["val/loss"], "", "val_loss"),
        # Hugging Face: the summary at the end is no live series
        ("train_loss", HF_END, "", "final_summary"),
        ("train/train_loss", ["train/" + k for k in HF_END], "", "final_summary"),
        ("train_loss", ["train_loss", "train_samples_per_second"], "", "train_loss"),
        ("train_loss", ["loss", "train_loss"], "", "twin"),
        ("eval_wikitext_loss", ["loss", "eval_wikitext_loss"], "", "val_loss"),
        ("eval_g0_loss", ["loss", "eval_g0_loss"], "", "val_loss"),
        ("eval/c4_loss", ["train/loss", "eval/c4_loss"], "", "val_loss"),
        # MFU: one role, whatever the unit
        ("mfu", [], "", "mfu"),
        ("mfu(%)", [], "", "mfu"),
        ("throughput/device/mfu", [], "", "mfu"),
        # signed losses of reinforcement learning
        ("train/policy_gradient_loss", SB3, "", "rl_loss"),
        ("train/loss", SB3, "", "rl_loss"),
        ("train/loss", ["train/loss"], "", "train_loss"),
        ("loss", GRPO, "", "rl_loss"),
        ("train/loss", ["train/" + k for k in GRPO], "", "rl_loss"),
        ("actor/pg_loss", [], "", "rl_loss"),
        ("learners/p0/total_loss", ["env_runners/episode_return_mean"], "", "rl_loss"),
        ("loss", VERIFIER, "", "rl_loss"),
        ("accuracy", VERIFIER, "", "eval_metric"),
        ("heldout_violation_rate", VERIFIER, "", "eval_error"),
        ("episode/MSE Loss", ["episode/Return"], "", "value_loss"),
        # … but a preference or reward model's loss is a loss
        ("loss", ["loss", "rewards/chosen", "rewards/margins", "reward"], "", "train_loss"),
        ("loss", ["loss", "min_reward", "mean_reward", "margin"], "", "train_loss"),
        ("rollout/ep_rew_mean", SB3, "", "reward"),
        ("rewards/rejected", [], "", "implicit_reward"),
        ("eval_rewards/margins", [], "", "eval_metric"),
        # Megatron: twins on the axis of samples, validation behind the name
        ("lm loss", MEGATRON, "", "train_loss"),
        ("lm loss vs samples", MEGATRON, "", "twin"),
        ("grad-norm vs samples", MEGATRON, "", "twin"),
        ("lm loss validation", MEGATRON, "", "val_loss"),
        ("lm loss validation vs samples", MEGATRON, "", "twin"),
        ("lm loss validation ppl", MEGATRON, "", "val_perplexity"),
        # fairseq
        ("gb_free", FAIRSEQ, "", "gpu_mem_free"),
        ("valid_loss", FAIRSEQ, "", "val_loss"),
        ("valid_nll_loss", FAIRSEQ, "", "val_loss_component"),
        ("nll_loss", FAIRSEQ, "", "loss_component"),
        ("nll_loss", ["nll_loss"], "", "train_loss"),
        ("train_loss", FAIRSEQ, "", "twin"),
        ("train_gnorm", ["train_gnorm", "train_loss"], "", "grad_norm"),
        # of several losses the total speaks; components stay components where there is none
        ("total_loss", DETECTRON, "", "train_loss"),
        ("loss_cls", DETECTRON, "", "loss_component"),
        ("time", DETECTRON, "", "step_time"),
        ("loss", MMDET, "", "train_loss"),
        ("s0.loss_cls", MMDET, "", "loss_component"),
        ("loss_rpn_cls", MMDET, "", "loss_component"),
        ("loss_bbox", ["loss_bbox"], "", "loss_component"),
        ("train/box_loss", ULTRA, "", "loss_component"),
        ("val/box_loss", ULTRA, "", "val_loss_component"),
        ("time", ULTRA, "", "runtime"),
        ("time", ["time"], "", ""),
        ("train_loss_ce", ["train_loss", "train_loss_ce"], "", "loss_component"),
        ("test_loss_ce", ["train_loss", "test_loss_ce"], "", "val_loss_component"),
        ("train/CE loss", ["train/CE loss", "train/Z loss"], "", "train_loss"),
        ("ce_loss", ["loss", "ce_loss"], "", "loss_component"),
        ("losses/value_loss", [], "", "value_loss"),
        ("losses/style", [], "", "loss_component"),
        ("G_loss", [], "", "adversarial_loss"),
        # one value, several spellings and means
        ("train_loss_step", FORK, "", "train_loss"),
        ("train_loss_epoch", FORK, "", "twin"),
        ("train_loss_epoch", ["train_loss_epoch"], "", "train_loss"),
        ("val_loss_step", FORK[:3], "", "twin"),
        ("val_loss_epoch", FORK, "", "val_loss"),
        ("average_loss", ["average_loss", "step_loss"], "", "twin"),
        ("average_loss", ["average_loss"], "", "train_loss"),
        ("best_val_loss", ["val_loss", "best_val_loss"], "", "twin"),
        ("val_loss/dataloader_idx_0", FORK, "", "val_loss"),
        ("train.loss", [], "", "train_loss"),
        ("generator/loss", [], "", "adversarial_loss"),
        ("critic/loss", [], "", "value_loss"),
        # short names
        ("trl", LLMC, "", "train_loss"),
        ("tel", LLMC, "", "val_loss"),
        ("norm", LLMC, "", "grad_norm"),
        ("eval", LLMC, "", "eval_metric"),
        ("norm", ["norm"], "", ""),
        ("norm", ["loss", "norm", "lr"], "", "grad_norm"),
        # Keras' log file
        ("loss", KERAS, "", "train_loss"),
        ("accuracy", KERAS, "", "train_metric"),
        ("acc", KERAS, "", "train_metric"),
        ("precision", KERAS, "", "train_metric"),
        ("precision", ["precision"], "", "eval_metric"),
        ("mae", KERAS, "", "train_error"),
        ("val_mae", KERAS, "", "eval_error"),
        ("val_acc", KERAS, "", "eval_metric"),
        # what looks like something else
        ("args/lr", [], "", ""),
        ("hparams/vla/max_grad_norm", [], "", ""),
        ("gradients/layer1.weight", [], "", ""),
        ("train/explained_variance", SB3, "", ""),
        ("layer1/weights/summaries/mean", [], "", ""),
        ("learning/grad_norm", ["learning/grad_norm", "learning/raw_grad_norm"], "", "twin"),
        ("Epoch_FLOPS", ["Epoch_FLOPS"], "", "flops"),
        ("loss_scale", [], "", "loss_scale"),
        ("lr-Adam-momentum", [], "", "optimizer"),
        ("eval_samples_per_second", [], "", "eval_speed"),
    ],
)
def test_traps(tag, keys, directory, role):
    assert TABLE.assign(tag, keys, directory) == role


@pytest.mark.parametrize(
    ("tag", "axis"),
    [
        ("Train/Samples/train_loss", "samples"),
        ("lm loss vs samples", "samples"),
        ("rollout/ep_rew_mean", "timesteps"),
        ("objective/rlhf_reward", "episodes"),
        ("train/loss", ""),
    ],
)
def test_the_axis_of_a_tag_is_known_where_it_is_no_step(tag, axis):
    assert TABLE.axis(tag) == axis


def test_deepspeed_by_samples_is_a_training_run_like_any_other():
    assert TABLE.assign("Train/Samples/train_loss", ()) == "train_loss"
    assert TABLE.assign("Train/Samples/eval_loss", ()) == "val_loss"
    assert TABLE.assign("Train/Samples/loss_scale", ()) == "loss_scale"


# --------------------------------------------------------------------------------------- without any context
COMMON = {
    "train_loss": "loss train_loss train/loss training_loss Loss total_loss loss/train reduced_train_loss trl",
    "val_loss": "val_loss eval_loss eval/loss val/loss valid_loss validation_loss test_loss loss/val Loss/test",
    "grad_norm": "grad_norm grad-norm train/grad_norm gnorm gradient_norm global_grad_norm total_grad_norm",
    "learning_rate": "lr learning_rate train/learning_rate learning-rate lr-AdamW x/lr0 lr/pg0 train_lr",
    "eval_metric": "val_acc eval_accuracy test_acc1 val/mAP eval/f1 bleu mAP AUC",
    "eval_error": "val_wer eval_wer fid val_mae",
    "train_metric": "accuracy acc train_acc train/accuracy",
    "reward": "reward mean_reward return episode_reward train/return episode/Return ep_rew_mean",
    "loss_component": "loss_cls train/box_loss loss_bbox recon_loss",
    "rl_loss": "policy_loss train/actor_loss",
    "kl": "kl approx_kl",
    "entropy": "entropy train/entropy_loss",
    "loss_scale": "loss-scale grad_scaler",
    "throughput": "samples_per_second tokens_per_sec it/s",
    "tokens": "num_tokens consumed_tokens",
    "epoch": "epoch train/epoch",
    "step": "global_step iteration",
    "perplexity": "ppl perplexity",
    "val_perplexity": "val_ppl eval_perplexity",
}


def test_common_names_are_right_with_nothing_else_known():
    names = [(name, role) for role, some in COMMON.items() for name in some.split()]
    assert len(names) >= 60
    assert {name: TABLE.assign(name, [name]) for name, _ in names} == dict(names)


@pytest.mark.parametrize(
    "tag",
    ["foo", "novelty", "lax/bar_1", "comparison/tp", "rpn/num_pos_anchors", "val", "train", "x", "", "/", "_", "%"],
)
def test_unknown_names_have_no_role(tag):
    assert TABLE.assign(tag, [tag]) == ""


HOSTILE = [
    "a" * 1_000_000,
    "loss" * 64,
    "_loss_" * 42,
    "/" * 250,
    "lr_" * 85,
    "(a+)+$" * 40,
    "[^*?]{9999}\\",
    "损失/训练",
    "Ａ\u0301\u202eloss",
    "\x00\n\t",
    "\ud800loss",
    "grad_norm_" * 25 + "x",
]


@pytest.mark.parametrize("tag", HOSTILE)
def test_hostile_names_are_judged_like_any_other(tag):
    role = TABLE.assign(tag, [tag], tag)
    assert role == "" or role in TABLE.roles
    assert TABLE.axis(tag) in ("", "samples")


def test_a_tag_longer_than_any_metric_has_no_role():
    assert TABLE.assign("x/" * 126 + "loss", ()) == "train_loss"
    assert TABLE.assign("x/" * 127 + "loss", ()) == ""


# --------------------------------------------------------------------------------------- overrides and the file
def test_a_users_config_is_asked_first():
    table = RoleTable.load({"val/my_tag": "train_loss", "score": "eval_error", "probe/*": "", "loss": "rl_loss"})
    assert table.assign("my_tag", (), "val/") == "train_loss"
    assert table.assign("my_tag", ()) == ""
    assert table.assign("score", (), "a/") == "eval_error"
    assert table.assign("probe/loss", ()) == ""
    assert table.assign("loss", ()) == "rl_loss"


def test_an_unknown_role_in_the_config_is_refused_with_the_closest_name():
    with pytest.raises(BadConfig, match=r"'train_los' for tag 'x' is unknown; did you mean 'train_loss'"):
        RoleTable.load({"x": "train_los"})


def test_the_table_pickles_as_its_overrides():
    table = RoleTable.load({"a": "kl"})
    assert pickle.loads(pickle.dumps(table)) == table
    assert len(pickle.dumps(table)) < 300


def test_frameworks_are_recognised():
    assert "TRL PPO" in TABLE.frameworks(["train/objective/kl", "lr"])
    assert "fairseq" in TABLE.frameworks(FAIRSEQ)
    assert TABLE.frameworks(["loss", "lr"]) == []


def test_every_role_the_file_gives_is_one_it_defines():
    known = table()
    meanings = [*known.paths, *known.names, *known.fallback]
    given = {role for m in meanings for role in (m.role, m.train, m.val, m.beside, m.val_beside)}
    given |= {role for who in known.claims for _, role in who}
    assert given - {""} <= set(known.roles)
    assert set(known.roles) - given == set()
    assert all(r.about and not r.about.endswith(".") for r in known.roles.values())


def test_no_name_is_listed_twice_with_different_meanings():
    seen = {}
    for entry in load_packaged("roles.yaml")["general"]:
        for name in listed(entry["names"]):
            assert name not in seen, f"{name} is listed under {seen[name]} and {entry['role']}"
            seen[name] = entry["role"]


def test_directions_say_which_way_is_bad():
    directions = {name: TABLE.roles[name].direction for name in ("train_loss", "eval_error", "reward", "rl_loss", "kl")}
    assert directions == {"train_loss": 1, "eval_error": 1, "reward": -1, "rl_loss": 0, "kl": 0}
    totals = {name: r.total for name, r in TABLE.roles.items() if r.total}
    assert totals["loss_component"] == "train_loss"
    assert set(totals.values()) <= set(TABLE.roles)
    assert [name for name, r in TABLE.roles.items() if r.log and "grad" in name] == ["grad_norm", "grad_norm_component"]


# --------------------------------------------------------------------------------------- in the engine
def _roles(batch):
    session = Session("run", Settings.default())
    session.feed("log", batch)
    return session.runs[0].tags_by_role(["log"])


def test_hyper_parameters_in_the_log_give_the_framework_away_before_its_keys_do():
    """In an event file TRL's GRPO logs `train/loss` first; `num_generations` in the arguments stands before it."""
    points = [chunk("train/loss", [1], [0.0], row=[1]), chunk("train/reward", [1], [0.3], row=[2])]
    assert _roles(Batch(points)) == {"train_loss": ["train/loss"], "reward": ["train/reward"]}
    settings = [Params(0, {"args/num_generations": 8, "learning_rate": 1e-6})]
    assert _roles(Batch(points, settings)) == {"rl_loss": ["train/loss"], "reward": ["train/reward"]}


def test_a_role_is_judged_from_the_keys_up_to_its_record_only():
    late = Batch([chunk("loss", [1], [1.0], row=[0]), chunk("reward", [1], [1.0], row=[1])])
    same = Batch([chunk("loss", [1], [1.0], row=[0]), chunk("reward", [1], [1.0], row=[0])])
    assert "train_loss" in _roles(late)
    assert "rl_loss" in _roles(same)


def test_ten_thousand_tags_of_one_model_are_components():
    keys = {f"grad_norm/layers.{i}.weight": None for i in range(10_000)}
    assert {TABLE.assign(k, keys) for k in keys} == {"grad_norm_component"}


def test_a_closing_summary_is_no_live_series():
    assert {TABLE.assign(t, {t}) for t in ("final/train_loss", "final/train_samples_per_second")} == {"final_summary"}
