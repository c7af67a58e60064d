"""The command line as a user runs it: a real process, real files, real pipes."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[1] / "data" / "samples" / "nan-after-explosion.jsonl"
CLEAN = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}


def trainmon(*args, stdin=None, cwd=None, **environ):
    return subprocess.run(
        [sys.executable, "-m", "trainmon", *map(str, args)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        cwd=cwd,
        env={**CLEAN, **environ},
        timeout=120,
        check=False,
    )


def one_line(done, *words, status=2):
    """Assert that there is one clear line on standard error, and no traceback."""
    text = done.stderr.decode()
    assert done.returncode == status, text
    assert "Traceback" not in text
    [line] = text.splitlines()
    assert line.startswith("trainmon: ")
    for word in words:
        assert word in line


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.jsonl"
    path.write_text("".join(json.dumps({"step": i, "loss": 3 - i / 100}) + "\n" for i in range(100)))
    return path


# ---------------------------------------------------------------------- what it says
def test_the_report_when_piped_is_plain():
    done = trainmon("replay", SAMPLE)
    assert done.returncode == 0
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    assert text.startswith("CRITICAL  nan-after-explosion.jsonl  steps 0 to 1590")
    assert "CRITICAL nonfinite  since step 1190" in text
    assert "\nFirst: Clip the global gradient norm at 1.0" in text
    assert max(map(len, text.splitlines())) <= 100


def test_columns_sets_the_width():
    assert max(map(len, trainmon("replay", SAMPLE, COLUMNS="60").stdout.decode().splitlines())) <= 60


def test_json_is_strict():
    def refuse(name):
        raise ValueError(name)

    done = trainmon("replay", "--format", "json", SAMPLE)
    data = json.loads(done.stdout, parse_constant=refuse)
    assert data["runs"][0]["incidents"][0]["evidence"]["value"] == "NaN"


def test_json_lines_and_markdown():
    [line] = trainmon("replay", "--format", "jsonl", SAMPLE).stdout.splitlines()
    assert json.loads(line)["verdict"] == "critical"
    assert trainmon("replay", "--format", "markdown", SAMPLE).stdout.startswith(
        b"## critical: `nan-after-explosion.jsonl`"
    )


def test_standard_input_and_gzip():
    done = trainmon("replay", "-", stdin=gzip.compress(SAMPLE.read_bytes()))
    assert done.stdout.decode().startswith("CRITICAL  stdin")


@pytest.mark.parametrize("fmt", ["text", "json", "markdown"])
def test_names_beyond_the_locale_are_no_crash(tmp_path, fmt):
    path = tmp_path / "größe-日本.jsonl"
    path.write_bytes(SAMPLE.read_bytes())
    done = trainmon("replay", path, "--format", fmt, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    if fmt == "json":
        assert json.loads(done.stdout)["runs"][0]["run"] == "größe-日本.jsonl"


def test_a_name_that_is_not_utf8_is_no_crash(tmp_path):
    path = os.fsencode(tmp_path) + b"/bad\xff\x1b[31m.jsonl"
    Path(os.fsdecode(path)).write_bytes(SAMPLE.read_bytes())
    for fmt in ("text", "json", "jsonl", "markdown"):
        done = subprocess.run(
            [os.fsencode(sys.executable), b"-m", b"trainmon", b"replay", b"--format", fmt.encode(), path],
            capture_output=True,
            env=CLEAN,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert b"\x1b[31m" not in done.stdout


# ---------------------------------------------------------------------- -o and --fail-on
def test_a_report_goes_to_a_file_whole(tmp_path):
    out = tmp_path / "report.json"
    out.write_text("old")
    out.chmod(0o640)
    done = trainmon("replay", "--format", "json", "-o", out, SAMPLE)
    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads(out.read_text())["schema"] == "trainmon.report/1"
    assert out.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert trainmon("replay", "-o", tmp_path / "link", SAMPLE).returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("CRITICAL")
    for stdout in ("/dev/stdout", "-"):
        assert trainmon("replay", "-o", stdout, SAMPLE).stdout.startswith(b"CRITICAL")


def test_a_file_that_can_not_be_written_is_one_line(tmp_path, good):
    one_line(trainmon("replay", "-o", tmp_path, good), "can't be written: is a directory")
    one_line(trainmon("replay", "-o", tmp_path / "no" / "x", good), "its directory does not exist")
    one_line(trainmon("replay", "-o", "/dev/full", good), "/dev/full: can't be written: no space left on device")


def test_what_is_read_is_never_written_over(good, tmp_path):
    texts = {
        "r.yaml": "- rule: plateau\n  enabled: false\n",
        "more.yaml": "- rule: slow\n  enabled: false\n",
        "trainmon.toml": "rules = 'more.yaml'\n",
        "b.jsonl": good.read_text(),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to(good)
    (tmp_path / "hard").hardlink_to(good)
    call = ("replay", good, "--against", tmp_path / "b.jsonl", "--rules", tmp_path / "r.yaml")
    for name in ("good.jsonl", "link", "hard", *texts):
        one_line(trainmon(*call, "-o", name, cwd=tmp_path), f"{name}: can't be written: it is one of the files read")
    one_line(trainmon("replay", ".", "-o", "b.jsonl", cwd=tmp_path), "it is one of the files read")
    with good.open() as stdin:
        shell = [sys.executable, "-m", "trainmon", "replay", "-", "-o", str(good)]
        one_line(subprocess.run(shell, stdin=stdin, capture_output=True, timeout=120, check=False), "files read")
    assert good.read_text() == texts["b.jsonl"]
    assert {name: (tmp_path / name).read_text() for name in texts} == texts
    assert trainmon("replay", good, "-o", tmp_path / "new.txt").returncode == 0


def test_a_full_or_closed_standard_output_is_one_line(good):
    command = [sys.executable, "-m", "trainmon", "replay", str(good)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=CLEAN, timeout=120, check=False)
    one_line(done, "standard output: can't be written: no space left on device")
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(closed, stderr=subprocess.PIPE, env=CLEAN, timeout=120, check=False)
    one_line(done, "standard output: can't be written: it is closed")


@pytest.mark.parametrize(("level", "status"), [("info", 1), ("warning", 1), ("critical", 1)])
def test_fail_on(level, status):
    assert trainmon("replay", "--fail-on", level, SAMPLE).returncode == status


def test_fail_on_is_0_on_a_healthy_run_and_2_if_something_was_unreadable(good, tmp_path):
    assert trainmon("replay", "--fail-on", "info", good).returncode == 0
    assert trainmon("replay", "--fail-on", "info", SAMPLE, tmp_path / "gone").returncode == 2


# ---------------------------------------------------------------------- bad input
def test_bad_paths_are_a_line_each_and_the_others_are_replayed(tmp_path, good):
    (tmp_path / "empty-dir").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 64)
    (tmp_path / "empty").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo")
    bad = ["gone", "empty-dir", "binary", "empty", "fifo", "x" * 300, "good.jsonl/below"]
    done = trainmon("replay", "--format", "json", *bad, good, cwd=tmp_path)
    assert done.returncode == 2
    data = json.loads(done.stdout)
    assert [r["run"] for r in data["runs"]] == ["good.jsonl"]
    lines = done.stderr.decode().splitlines()
    assert len(lines) == len(bad) == len(data["errors"])
    for name in bad:
        assert any(line.startswith(f"trainmon: {name[:50]}") for line in lines), name


def test_one_bad_path_is_one_line(tmp_path):
    one_line(trainmon("replay", "gone.jsonl", cwd=tmp_path), "gone.jsonl: no such file or directory")


def test_a_corrupt_record_is_listed_and_leaves_0(tmp_path):
    path = tmp_path / "run.jsonl"
    rows = [json.dumps({"step": i, "loss": 3 - i / 100}) for i in range(50)]
    rows[20] = '{"step": 20, "loss": '
    path.write_text("\n".join(rows) + "\n")
    one_line(trainmon("replay", path), "run.jsonl:21: ", status=0)


def test_of_many_errors_twenty_are_printed(tmp_path):
    done = trainmon("replay", *(f"gone{i}" for i in range(25)), cwd=tmp_path)
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 21
    assert lines[-1] == "trainmon: 5 more; --format json lists all"


def test_an_unreadable_file_is_one_line(good):
    locked = good.with_name("locked.jsonl")
    locked.write_bytes(good.read_bytes())
    locked.chmod(0)
    good.parent.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY],
        capture_output=True,
        cwd=good.parent,
        env=CLEAN,
        timeout=120,
        check=False,
    )
    one_line(done, "locked.jsonl: can't be opened: permission denied")


# Root may read everything, so root can't test this; and nobody may not read the interpreter's folders on every machine,
# so everything is imported by a first replay, then the process becomes nobody.
AS_NOBODY = """
import os
from trainmon.cli import main
main(["replay", "good.jsonl"], standalone_mode=False)
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
main(["replay", "locked.jsonl"])
"""

UNUSABLE = [
    (),
    ("replay",),
    ("replya", "x"),
    ("replay", "--fromat", "json"),
    ("replay", "--format", "xml", "x"),
]


@pytest.mark.parametrize("args", UNUSABLE)
def test_unusable_arguments_are_said_with_status_2(args):
    done = trainmon(*args)
    text = done.stderr.decode()
    assert done.returncode == 2
    assert "Traceback" not in text
    assert "Usage: " in text


# ---------------------------------------------------------------------- signals and pipes
def start(*args, **pipes):
    return subprocess.Popen([sys.executable, "-m", "trainmon", *args], env=CLEAN, **pipes)


def test_a_reader_that_goes_away_is_silent(tmp_path):
    path = tmp_path / "many.jsonl"
    rows = [{"step": i, **{f"tag{k}": i for k in range(5000)}} for i in range(2)]  # a report beyond a pipe's buffer
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    with start("replay", "--format", "json", str(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_the_status_stands_when_nobody_hears_the_errors(tmp_path):
    command = 'exec "$@" >/dev/full 2>/dev/full'
    done = subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-m", "trainmon", "replay", tmp_path / "gone"],
        env=CLEAN,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2


def test_ctrl_c_ends_a_stream_and_what_was_read_is_reported():
    line = b'{"step": 1, "loss": 1.0}\n'
    with start("replay", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(line * (1_000_000 // len(line)))  # more than a pipe holds: it is reading now
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (err, process.returncode) == (b"", 0)
    assert b"stdin" in out.splitlines()[0]


# ---------------------------------------------------------------------- help and completion
def test_help_imports_nothing_heavy():
    code = "import sys, trainmon.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: pass\nprint(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=CLEAN, timeout=60, check=True)
    loaded = done.stdout.decode().splitlines()[-1]
    for heavy in ("numpy", "scipy", "rich", "pydantic", "ruamel", "msgspec", "tensorboard"):
        assert f"'{heavy}'" not in loaded


def test_explain_prints_a_page_a_list_or_the_closest_names():
    page = trainmon("explain", "gradient")
    assert (page.returncode, page.stderr) == (0, b"")
    assert page.stdout.startswith(b"# Gradient management\n")
    assert b"Sheets: " in trainmon("explain").stdout
    wrong = trainmon("explain", "divergance")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert wrong.stderr == b"trainmon: nothing is called 'divergance'; did you mean divergence, val-divergence?\n"


def test_explain_shows_a_rule_as_it_is_configured(tmp_path):
    config = tmp_path / "trainmon.toml"
    config.write_text("[rules.nonfinite]\nparameters = {critical_after = 7}\n")
    assert b"- `critical_after`: 7 (shipped: 3)\n" in trainmon("explain", "nonfinite", "--config", config).stdout


# ---------------------------------------------------------------------- rules
MINE = "- {rule: nonfinite, severity: info, parameters: {critical_after: 7}}\n- {rule: plateau, enabled: false}\n"


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


def test_a_rule_file_is_taken_by_every_command_that_uses_rules(mine, tmp_path):
    report = json.loads(trainmon("replay", SAMPLE, "--rules", mine, "--format", "json").stdout)["runs"][0]
    assert "critical" not in {i["severity"] for i in report["incidents"] if i["rule"] == "nonfinite"}
    blind = json.loads(trainmon("inspect", SAMPLE, "--rules", mine, "--format", "json").stdout)["runs"][0]["blind"]
    assert "plateau" not in {b["rule"] for b in blind}
    page = trainmon("explain", "nonfinite", "--rules", "mine.yaml", cwd=tmp_path).stdout.decode()
    assert "- `critical_after`: 7 (shipped: 3)\n" in page
    assert "- severity: info, as mine.yaml says\n" in page
    assert (
        "- **disabled** by mine.yaml\n"
        in trainmon("explain", "plateau", "--rules", mine.name, cwd=tmp_path).stdout.decode()
    )
    listed = trainmon("rules", "list", "--rules", "mine.yaml", cwd=tmp_path, COLUMNS="80").stdout.decode()
    assert "changed by mine.yaml: severity warning -> info, critical_after 3 -> 7\n" in listed
    assert "disabled by mine.yaml\n" in listed
    assert max(map(len, listed.splitlines())) <= 80


def test_the_config_names_a_rule_file_beside_it_and_its_own_tables_go_on_top(mine, tmp_path):
    folder = tmp_path / "conf"
    folder.mkdir()
    mine.rename(folder / "mine.yaml")
    (folder / "trainmon.toml").write_text('rules = "mine.yaml"\n')
    (folder / "more.toml").write_text('[rules]\nfile = "mine.yaml"\n[rules.nonfinite]\nseverity = "warning"\n')
    (tmp_path / "last.yaml").write_text("- {rule: nonfinite, parameters: {critical_after: 9}}\n")

    def listed(*args):
        data = json.loads(trainmon("rules", "list", "--format", "json", *args, cwd=tmp_path).stdout)
        assert data["schema"] == "trainmon.rules/1"
        return {r["rule"]: r for r in data["rules"]}

    one = listed("--config", "conf/trainmon.toml")
    assert one["nonfinite"]["changed"] == {"severity": ["warning", "info"], "parameters.critical_after": [3, 7]}
    assert (one["plateau"]["enabled"], one["plateau"]["file"]) == (False, "conf/mine.yaml")
    assert listed("--config", "conf/more.toml")["nonfinite"]["changed"] == {"parameters.critical_after": [3, 7]}
    last = listed("--config", "conf/trainmon.toml", "--rules", "last.yaml")["nonfinite"]
    assert last["changed"] == {"severity": ["warning", "info"], "parameters.critical_after": [3, 9]}
    assert last["file"] == "last.yaml"


def test_rules_check_says_how_many_rules_or_all_that_is_wrong(mine, tmp_path):
    (tmp_path / "trainmon.toml").write_text('rules = "mine.yaml"\n[set]\nprecision = "bf16"\n')
    done = trainmon("rules", "check", "mine.yaml", "trainmon.toml", cwd=tmp_path)
    assert done.stdout.decode() == (
        "mine.yaml: 2 rules, ok (1 changed, 1 disabled)\ntrainmon.toml: 2 rules, ok (1 changed, 1 disabled)\n"
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    mine.write_text("- {rule: nonfinit}\n- {rule: flat, for: -1}\n")
    done = trainmon("rules", "check", "mine.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == [
        "trainmon: mine.yaml:1: nonfinit: unknown rule 'nonfinit'; did you mean 'nonfinite'?",
        "trainmon: mine.yaml:2: flat.for: must be a number of reports, not -1",
    ]


def test_a_bad_rule_file_is_said_before_anything_is_read(tmp_path, good):
    (tmp_path / "bad.yaml").write_bytes(b"\xff\x1b[31m")
    for command in (["replay", good], ["inspect", good], ["explain", "flat"], ["rules", "list"]):
        done = trainmon(*command, "--rules", "bad.yaml", cwd=tmp_path)
        one_line(done, "bad.yaml: not UTF-8 at byte 0")
        assert done.stdout == b""
    one_line(trainmon("rules", "check", tmp_path / "none"), "none: no such file")


def test_the_settings_that_set_takes_are_a_page():
    page = trainmon("explain", "settings").stdout.decode()
    assert "- `precision` (fp32, bf16, fp16 or fp8): number format of the passes\n" in page
    assert b"trainmon explain settings" in trainmon("replay", "--help").stdout


def test_version_and_help():
    assert trainmon("--version").stdout.startswith(b"trainmon, version ")
    assert b"--fail-on" in trainmon("replay", "-h").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    done = trainmon("completion", shell)
    assert done.returncode == 0
    assert b"_TRAINMON_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("trainmon rep", b"plain,replay\n"),
        ("trainmon rules c", b"plain,check\n"),
        ("trainmon explain loss-s", b"plain,loss-spike\nplain,loss-scale-collapse\nplain,loss-scale\n"),
        ("trainmon replay x --set prec", b"plain,precision=\n"),
        ("trainmon rules list --rules my", b"file,my\n"),
    ],
)
def test_completion_knows_commands_names_and_keys(typed, offered):
    code = "from trainmon.cli import main; main(prog_name='trainmon')"
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    environ = {**CLEAN, "_TRAINMON_COMPLETE": "bash_complete", **words}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environ, timeout=60, check=False)
    assert done.stdout == offered


# ---------------------------------------------------------------------- config
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[roles]\nloss = "train_los"\n', "train_los"),
        ("[rules.nonfinit]\nseverity = 'info'\n", "nonfinit"),
        ("[rules", "bad.toml"),
    ],
)
def test_a_bad_config_is_one_line_before_anything_is_read(tmp_path, good, text, said):
    (tmp_path / "bad.toml").write_text(text)
    for command in ("replay", "inspect"):
        done = trainmon(command, "--config", "bad.toml", good, cwd=tmp_path)
        one_line(done, said)
        assert done.stdout == b""


def test_inspect_says_bad_paths_in_the_same_way(tmp_path, good):
    done = trainmon("inspect", "gone", good, cwd=tmp_path)
    one_line(done, "gone: no such file or directory")
    assert b"good.jsonl" in done.stdout


@pytest.mark.parametrize(
    "command", [["replay", SAMPLE], ["inspect", SAMPLE], ["rules", "list"], ["explain", "nonfinite"], ["route", "NaN"]]
)
def test_a_reader_that_has_gone_is_no_error(command):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "trainmon", *map(str, command)],
        stdout=write, stderr=subprocess.PIPE, env=CLEAN, timeout=120, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
