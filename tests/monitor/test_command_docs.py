"""Every command and option is documented in docs/command-line.md and has a help text."""

from pathlib import Path

import pytest

from trainmon.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(main.commands))
def test_each_command_and_option_is_documented(name):
    command = main.commands[name]
    assert command.help
    assert f"trainmon {name} " in PAGE
    for param in command.params:
        for option in (*param.opts, *param.secondary_opts):
            if option.startswith("-"):
                assert f"`{option}" in PAGE, f"{option} of {name}"
