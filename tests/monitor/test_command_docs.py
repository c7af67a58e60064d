"""Every command and option is documented in docs/command-line.md and has a help text."""

from pathlib import Path

import click
import pytest

from trainmon.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")


COMMANDS = {}
for _name, _command in main.commands.items():
    COMMANDS[_name] = _command
    if isinstance(_command, click.Group):
        COMMANDS |= {f"{_name} {sub}": command for sub, command in _command.commands.items()}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_and_option_is_documented(name):
    command = COMMANDS[name]
    assert command.help
    assert f"trainmon {name} " in PAGE
    for param in command.params:
        for option in (*param.opts, *param.secondary_opts):
            if option.startswith("-"):
                assert f"`{option}" in PAGE, f"{option} of {name}"
