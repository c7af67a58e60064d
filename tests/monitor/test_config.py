"""The config file and --set: what they change, and what they refuse."""

import json

import pytest
from click.testing import CliRunner

from trainmon import replay
from trainmon.answers import parse_options
from trainmon.cli import main
from trainmon.config import load_settings, read_config
from trainmon.readers.dialects import use_dialects
from trainmon_rules.errors import BadConfig
from trainmon_rules.findings import Severity
from trainmon_rules.vocabulary import answers_help, vocabulary


def write(tmp_path, text):
    path = tmp_path / "trainmon.toml"
    path.write_text(text)
    return str(path)


def rules(settings):
    return {r.name: r for r in settings.rules}


def test_a_role_a_rule_and_an_answer_are_changed(tmp_path):
    file = write(
        tmp_path,
        '[roles]\n"objective/total" = "train_loss"\n[set]\nprecision = "half"\nnum_classes = 10\n'
        '[rules.nonfinite]\nseverity = "info"\nfor = 2\nparameters = {critical_after = 5}\n',
    )
    settings = load_settings(file, ["num_classes=100"])
    assert settings.roles.assign("objective/total", {"objective/total"}) == "train_loss"
    assert settings.answers == {"precision": "fp16", "num_classes": 100}
    rule = rules(settings)["nonfinite"]
    assert (rule.severity, rule.hold, dict(rule.parameters)["critical_after"]) == (Severity.INFO, 2, 5)


def test_a_role_of_the_config_is_judged(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"step": i, "objective": float("nan")}) + "\n" for i in range(20)))
    file = write(tmp_path, '[roles]\nobjective = "train_loss"\n')
    assert replay(log).runs[0].verdict == "insufficient-data"
    assert replay(log, settings=load_settings(file)).runs[0].verdict == "critical"


def test_a_disabled_rule_is_gone(tmp_path):
    settings = load_settings(write(tmp_path, '[rules]\ndisable = ["nonfinite"]\n'))
    assert "nonfinite" not in rules(settings)


def test_the_current_directory_is_looked_in_only_if_no_file_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_config() is None
    write(tmp_path, "[set]\nnum_classes = 7\n")
    assert load_settings().answers == {"num_classes": 7}
    other = tmp_path / "other.toml"
    other.write_text("")
    assert load_settings(str(other)).answers == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[roles]\n\n"my loss" = "trian_loss"\n', "c:3: roles.my loss: unknown role 'trian_loss'; did you mean"),
        ("[roles]\nloss = 1\n", "c:2: roles.loss: must be the name of a role, not 1"),
        ('[rules]\n\ndisable = ["nonfinit"]\n', "c:3: rules.disable: unknown rule 'nonfinit'; did you"),
        ("[rules]\ndisabled = []\n", "c:2: rules.disabled: unknown key 'disabled'; did you mean 'disable'?"),
        ('[rules]\ndisable = "nonfinite"\n', "c:2: rules.disable: must be a list of rules"),
        ("[rules.nan]\n", "c:1: rules.nan: unknown rule 'nan'"),
        ('[rules.nonfinite]\nseverity = "page"\n', "c:2: rules.nonfinite.severity: unknown severity 'page'"),
        ('[rules.nonfinite]\nsevrity = "info"\n', "c:2: rules.nonfinite.sevrity: unknown key 'sevrity'; did you mean "),
        ("[rules.nonfinite]\nfor = -1\n", "c:2: rules.nonfinite.for: must be a number of reports, not -1"),
        ("[rules.nonfinite]\nparameters = {critical_afer = 5}\n", "parameter 'critical_afer'; did you mean 'critical"),
        ("[rules.nonfinite]\nparameters = {critical_after = 2.5}\n", "critical_after: must be a whole number, not 2.5"),
        ("[rules.nonfinite]\nparameters = {critical_after = true}\n", "must be a whole number, not True"),
        ("[rule.nonfinite]\n", "unknown section 'rule'; did you mean 'rules'?"),
        ("roles = 1\n", "c:1: roles: must be a table, [roles]"),
        ("rules = 1\n", "c:1: rules: must be a table, [rules]"),
        ('rules = ""\n', "c:1: rules.file: must be the name of a file, not ''"),
        ("[rules]\nfile = 1\n", "c:2: rules.file: must be the name of a file, not 1"),
        ('rules = "none.yaml"\n', "none.yaml: no such file"),
        ("[rules]\nnonfinite = 3\n", "c:2: rules.nonfinite: must be a table, [rules.nonfinite]"),
        ('[rules.nonfinite]\nrule = "x"\n', "c:2: rules.nonfinite.rule: the table's name names the rule"),
        ("[rules.nonfinite]\nenabled = 0\n", "c:2: rules.nonfinite.enabled: must be true or false, not 0"),
        ("[rules.nonfinite]\n\nroles = ['los']\n", "c:3: rules.nonfinite.roles: unknown role 'los'"),
        ("[set]\nlr = [1]\n", "c:2: set.lr: must be a number, a text, true or false"),
        ("[set]\nprecison = 'fp16'\n", "c:2: set.precison: unknown key 'precison'; did you mean 'precision'?"),
        ("[set]\nlearning_rate = 'low'\n", "c:2: set.learning_rate: learning_rate (peak learning rate) must be"),
        ("[set]\nlr = \n", "c:2: not valid TOML: invalid value"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_with_file_line_and_key(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").write_text(text)
    with pytest.raises(BadConfig) as caught:
        load_settings("c")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("- {rule: flat, for: -1}\n")
    (tmp_path / "c").write_text("[roles]\na = 1\n[set]\nprecison = 1\n[rules]\ndisable = 7\n")
    with pytest.raises(BadConfig) as caught:
        load_settings("c", ["steps"], "mine.yaml")
    assert [p.split(": ")[:2] for p in caught.value.problems] == [
        ["--set steps", "must be KEY=VALUE, as in --set precision=fp16"], ["c:2", "roles.a"], ["c:4", "set.precison"],
        ["c:6", "rules.disable"], ["mine.yaml:1", "flat.for"],
    ]  # fmt: skip
    assert str(caught.value).endswith(" (and 4 more)")
    (tmp_path / "c").write_text('[roles]\na = "los"\n[rules]\nfile = "mine.yaml"\n[rules.flat]\nfor = -2\n')
    with pytest.raises(BadConfig) as caught:
        load_settings("c")
    assert [p.split(": ")[:2] for p in caught.value.problems] == [
        ["c:2", "roles.a"], ["mine.yaml:1", "flat.for"], ["c:6", "rules.flat.for"],
    ]  # fmt: skip


def test_a_table_may_hold_what_an_entry_of_a_rule_file_may(tmp_path):
    text = (
        '[rules.plateau]\nenabled = false\n[rules.reward-nan]\ndetector = "nonfinite"\nroles = ["reward"]\n'
        'symptom = "nonfinite"\nseverity = "critical"\nfamily = "instability"\n'
    )
    settings = load_settings(write(tmp_path, text))
    assert [r.name for r in settings.off] == ["plateau"]
    own = rules(settings)["reward-nan"]
    assert (own.roles, own.severity, own.fixed) == (("reward",), Severity.CRITICAL, True)


def test_a_config_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(BadConfig, match=r"missing\.toml: no such file"):
        load_settings(str(tmp_path / "missing.toml"))
    with pytest.raises(BadConfig, match="is no regular file"):
        load_settings(str(tmp_path))
    (tmp_path / "latin").write_bytes(b'[set]\nname = "\xe9"\n')
    with pytest.raises(BadConfig, match="not UTF-8 at byte 14"):
        load_settings(str(tmp_path / "latin"))


def test_answers_are_read_in_the_names_and_kinds_of_the_vocabulary():
    given = [
        "total_steps=1_000", "lr=1e-3", "shuffle=no", "precision=float16", "optimizer='AdamW'", "model_size=125M",
        "dataset_size=5e6", "gpu_utilization=35%", "early_stopping=10", "poor=Validation", "labels-loaded=true",
    ]  # fmt: skip
    assert parse_options(given) == {
        "total_steps": 1000, "learning_rate": 0.001, "shuffle": False, "precision": "fp16", "optimizer": "adamw",
        "model_size": 125e6, "dataset_size": 5_000_000, "gpu_utilization": 35.0, "early_stopping": 10,
        "poor": "validation", "labels_loaded": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("steps", "must be KEY=VALUE"),
        ("=5", "must be KEY=VALUE"),
        ("foo=bar", "--set foo=bar: unknown key 'foo'; known: learning_rate, "),
        ("learning_rat=1", "did you mean 'learning_rate'?"),
        ("precision=purple", "must be fp32, bf16, fp16 or fp8, not 'purple'"),
        ("precision=", "must be fp32, bf16, fp16 or fp8, not ''"),
        ("learning_rate=abc", "learning_rate (peak learning rate) must be a number, not 'abc'"),
        ("learning_rate=nan", "must be a number, not 'nan'"),
        ("learning_rate=true", "must be a number, not 'True'"),
        ("learning_rate=-1", "can't be negative, as -1 is"),
        ("dataset_size=lots", "must be a whole number, not 'lots'"),
        ("gpu_memory=much", "must be an amount of memory, as 80GB, not 'much'"),
        ("batch_size=2.5", "must be a whole number, not '2.5'"),
        ("labels_loaded=maybe", "must be yes or no, not 'maybe'"),
        ("poor=me", "must be training, validation or both, not 'me'"),
        ("optimizer=5", "must be a name, not '5'"),
    ],
)
def test_an_answer_that_means_nothing_is_refused_in_one_line(option, message):
    with pytest.raises(BadConfig) as caught:
        parse_options([option])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_key_can_be_answered_and_is_told():
    told = {name: (values, about) for name, values, about in answers_help()}
    assert set(told) == set(vocabulary())
    assert told["precision"] == ("fp32, bf16, fp16 or fp8", "number format of the passes")
    example = {"number": "1", "integer": "1", "memory": "80GB", "flag": "yes", "text": "x"}
    for s in vocabulary().values():
        for value in s.choices or (example[s.kind],):
            [(name, _)] = parse_options([f"{s.name}={value}"]).items()
            assert name == s.name


def test_the_command_takes_both_and_ends_with_2_if_they_are_wrong(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"step": i, "objective": float("nan")}) + "\n" for i in range(20)))
    file = write(tmp_path, '[roles]\nobjective = "train_loss"\n')
    run = CliRunner()
    good = run.invoke(main, ["replay", str(log), "--config", file, "--set", "num_classes=10", "--format", "json"])
    assert json.loads(good.stdout)["runs"][0]["verdict"] == "critical"
    bad = run.invoke(main, ["replay", str(log), "--config", write(tmp_path, "[role]\n")])
    assert bad.exit_code == 2
    assert "unknown section 'role'" in bad.stderr
    assert run.invoke(main, ["replay", str(log), "--set", "precision"]).exit_code == 2
    bad = run.invoke(main, ["replay", str(log), "--set", "precision=purple"])
    assert bad.exit_code == 2
    assert "must be fp32, bf16, fp16 or fp8" in bad.stderr


def test_a_users_dialect_file_is_used_from_the_config_on(tmp_path, monkeypatch):
    (tmp_path / "mine.yaml").write_text(
        "version: 1\ndialects:\n- name: mine\n  lines:\n  - match: '^@(?P<step>\\d+) cost=(?P<loss>{num})$'\n"
    )
    (tmp_path / "trainmon.toml").write_text('[text]\ndialects = "mine.yaml"\n')
    (tmp_path / "job.log").write_text("".join(f"@{i} cost={2 - i / 100}\n" for i in range(50)))
    monkeypatch.chdir(tmp_path)
    try:
        [run] = replay("job.log", settings=load_settings()).runs
    finally:
        use_dialects(None)
    assert (run.points, run.roles) == (50, {"train_loss": ["loss"]})


def test_a_severity_of_the_users_is_the_last_word(tmp_path, monkeypatch):
    (tmp_path / "trainmon.toml").write_text('[rules.nonfinite]\nseverity = "info"\n')
    (tmp_path / "run.jsonl").write_text("".join(f'{{"step": {i}, "loss": NaN}}\n' for i in range(20)))
    monkeypatch.chdir(tmp_path)
    [run] = replay("run.jsonl", settings=load_settings()).runs
    assert [(i.symptom, i.severity) for i in run.incidents] == [("nonfinite", "info")]


@pytest.mark.parametrize(
    ("rule", "parameter", "value"),
    [
        ("overfit", "last", "0"),
        ("overfit", "last", "-3"),
        ("overfit", "patience", "9223372036854775807"),
        ("grad-explosion", "ratio", "0.0"),
        ("grad-explosion", "ratio", "-1.0"),
        ("grad-explosion", "ratio", "1e308"),
        ("grad-explosion", "ratio", "inf"),
        ("grad-explosion", "ratio", "nan"),
    ],
)
def test_absurd_parameters_are_refused(tmp_path, rule, parameter, value):
    file = write(tmp_path, f"[rules.{rule}]\nparameters = {{{parameter} = {value}}}\n")
    with pytest.raises(BadConfig, match=f":2: .*{parameter}: must be above 0 and at most 1,000,000, not"):
        load_settings(file)


def test_a_hold_without_end_is_refused(tmp_path):
    with pytest.raises(BadConfig, match="must be a number of reports"):
        load_settings(write(tmp_path, f"[rules.nonfinite]\nfor = {10**9}\n"))


def test_a_number_of_more_digits_than_python_reads_is_no_fault_of_ours(tmp_path):
    with pytest.raises(BadConfig, match="not valid TOML"):
        load_settings(write(tmp_path, f"[set]\nx = {'9' * 5000}\n"))


def test_a_file_of_nonsense_is_refused_by_its_size(tmp_path):
    with pytest.raises(BadConfig, match="larger than 65536 bytes"):
        load_settings(write(tmp_path, f"[{'.'.join('b' * 40_000)}]\n"))
