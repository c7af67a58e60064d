"""Rule and config files that no person writes are refused with file and line, whatever a parser makes of them."""

import pytest

from trainmon.config import load_settings
from trainmon_rules.errors import BadConfig

BIG = ["0x" + "f" * 5000, "0o" + "7" * 5000, "0b" + "1" * 5000, "9" * 5000, "-" + "9" * 5000]


def refused(path, **how):
    with pytest.raises(BadConfig) as caught:
        load_settings(**{k: str(path) for k in how} or {"rules": str(path)})
    [line] = caught.value.problems
    return line.removeprefix(str(path))


@pytest.mark.parametrize(
    "value", [*BIG, "!!bool maybe", "!!int x", "!!float ''", "!!timestamp x", "!own 1", "&here true", "!!set {a}"]
)
def test_a_rule_file(tmp_path, value):
    path = tmp_path / "r.yaml"
    path.write_text(f"- rule: plateau\n  severity: info\n  enabled: {value}\n")
    said = refused(path)
    assert said.startswith(":3: ")
    assert len(said) < 200


@pytest.mark.parametrize("value", BIG)
@pytest.mark.parametrize("table", ["[set]\nnum_classes", "[rules.plateau]\nfor", "[rules.plateau.parameters]\ntimes"])
def test_a_config_file(tmp_path, value, table):
    path = tmp_path / "trainmon.toml"
    path.write_text(f"{table} = {value}\n")
    said = refused(path, file=True)
    assert len(said) < 200
    assert said.startswith(":2: ") or not value.startswith("0")  # the parser names no line of a long decimal
