"""Writing a log from records made by hand, and reading it back the way trainmon does."""

import math

from trainmon.replaying import find, read_run
from trainmon_reference.logs import framework, frameworks, open_log
from trainmon_reference.record import Record, role_of
from trainmon_reference.scenarios import LogSpec
from trainmon_rules.state import Settings

EVERY, EPOCH, EVALUATED = 5, 25, 25  # updates a report, an epoch, between evaluations
LAST = 200
HALF = 100  # the checkpoint to which a job goes back
STOP = 150  # its last report before that
SECONDS = 2.0  # an update
TENSORBOARD = tuple(name for name, names in frameworks().items() if names.format == "tensorboard")

PREFERENCE = {"reward_margin", "reward_accuracy", "implicit_reward", "logps"}
SIGNED = {"rl_loss", "reward", "value_loss", "entropy", "kl"}
ADVERSARIAL = {"adversarial_loss"}
SUPERVISED = {"train_loss", "train_metric", "train_error", "val_loss", "eval_metric", "eval_error"}
WANDB = {  # a script's names mean what they do by the kind of run; whose roles each kind lacks
    "wandb": PREFERENCE | SIGNED | ADVERSARIAL,
    "wandb of preferences": SIGNED | ADVERSARIAL | {"train_metric", "train_error", "eval_metric", "eval_error"},
    "wandb of rewards": PREFERENCE | ADVERSARIAL | SUPERVISED,
    "wandb of a GAN": PREFERENCE | SIGNED | {"train_loss", "val_loss"},
}
KINDS = (*(name for name in frameworks() if name != "wandb"), *WANDB)


def name_of(kind):
    """Return the framework of a kind of log."""
    return kind.partition(" ")[0]


def keys_of(kind, phase):
    """Return the keys that a kind of log has for a phase."""
    return [key for key in getattr(framework(name_of(kind)), phase) if role_of(key) not in WANDB.get(kind, ())]


def value_of(key, step):
    """Return a number for a role at a step, that no other role has at no other step."""
    return round(1.0 + (sum(map(ord, key)) % 97) / 97 + 0.3 * math.sin(step / 7) + 1 / (1 + step), 6)


def record(kind, phase, step, again=0, **given):
    """Return a record with all keys that a kind of log has; `again` tells steps that are trained once more."""
    values = {key: value_of(key, step) * (1 + again / 10) for key in keys_of(kind, phase)}
    values |= {key: value for key, value in given.items() if key in values}
    seconds = SECONDS * (step + again * (STOP - HALF)) + (phase == "valid")
    return Record(step, step / EPOCH, seconds, phase, values)


def records(kind, first=EVERY, last=LAST, again=0):
    """Return the records of a run, or of a part of it."""
    found = []
    for step in range(first, last + 1, EVERY):
        found.append(record(kind, "train", step, again))
        if step % EVALUATED == 0:
            found.append(record(kind, "valid", step, again))
    return found


def resumed(kind):
    """Return the two attempts of a job that was stopped and went back to its checkpoint."""
    return records(kind, last=STOP), records(kind, first=HALF + EVERY, again=1)


def written(folder, kind, *attempts, settings=None):
    """Write attempts, each resumed from the report before its first record; return the folder."""
    log = open_log(folder, LogSpec(name_of(kind)), {"total_steps": 1000} if settings is None else settings)
    for number, attempt in enumerate(attempts):
        if number:
            log.resume(attempt[0].step - EVERY)
        for one in attempt:
            log.write(one)
    log.close()
    return folder


def read(folder):
    """Return the session that read the one run which the folder holds."""
    [spec], errors = find([folder])
    assert errors == []
    reading = read_run(spec, Settings.default())
    assert reading.errors == []
    return reading.session


def series(session, tag):
    """Return a tag's series, one an attempt, of the only run; a tag may have a prefix in front."""
    [run] = session.runs
    every = [t.series for attempt in run.attempts for t in attempt.ordered()]
    return [s for s in every if s.tag == tag] or [s for s in every if s.tag.endswith("/" + tag)]
