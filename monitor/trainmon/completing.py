"""What the shell may offer where a word is being typed: names of pages and scenarios, keys of settings."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def names(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names that `trainmon explain` has a page for."""
    from trainmon_rules.diagnosis.manual import names as known  # noqa: PLC0415
    from trainmon_rules.state import Settings  # noqa: PLC0415

    every = (name for found in known(Settings.default().rules).values() for name in found)
    return [CompletionItem(name) for name in dict.fromkeys(every) if name.startswith(typed)]


def answers(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the keys that `--set` takes, with what they mean where the shell shows it."""
    from trainmon_rules.vocabulary import answers_help  # noqa: PLC0415

    return [CompletionItem(f"{name}=", help=about) for name, _, about in answers_help() if name.startswith(typed)]


def scenarios(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the scenarios that `trainmon simulate` trains, with what each is about."""
    from trainmon_reference.scenarios import load_scenarios  # noqa: PLC0415

    return [CompletionItem(s.name, help=s.about) for s in load_scenarios().values() if s.name.startswith(typed)]
