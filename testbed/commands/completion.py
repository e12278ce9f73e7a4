"""Completion at the shell: verbs and options from the parser (argcomplete), names of experiments and keys of scenarios from here.

source <(.venv/bin/register-python-argcomplete manet)       # bash; zsh: first `autoload -U bashcompinit && bashcompinit`
"""

import argparse
from collections.abc import Iterator
from typing import Any

NAMES_AND_FILES = ("NAME|FILE|RUN", "NAME|FILE", "PAPER|NAME|FILE", "RUN|NAME|FILE")


def answer(parser: argparse.ArgumentParser) -> None:
    """Answer the shell's request for completions, and end."""
    import argcomplete

    for action in actions_of(parser):
        if not action.option_strings and action.metavar in NAMES_AND_FILES:
            action.completer = names  # type: ignore[attr-defined]
        if action.metavar == "KEY=VALUE":
            action.completer = settings  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its verbs."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from actions_of(verb)


def names(prefix: str, **_: Any) -> list[str]:
    """Experiments, ready-made scenarios, papers, and files."""
    from argcomplete.completers import FilesCompleter

    from testbed.campaigns import library
    from testbed.commands.campaign import ALL, PAPERS

    ready_made = (path.stem for path in library.FOLDER.glob("scenarios/*.toml"))
    candidates = [*library.names(), *ready_made, *PAPERS, ALL]
    return [name for name in candidates if name.startswith(prefix)] + list(FilesCompleter()(prefix))


def settings(prefix: str, **_: Any) -> list[str]:
    """The keys of a scenario, dotted for tables, with `=`; after it the words that a key takes."""
    from scenarios.json_schema import scenario_keys

    keys, definitions = scenario_keys()
    values = dict(_keys("", keys, definitions))
    key, separator, _value = prefix.partition("=")
    return [f"{key}={word}" for word in values.get(key, ())] if separator else [f"{key}=" for key in values]


def _keys(before: str, node: dict[str, Any], definitions: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Each key of a table with the words that it takes, and the keys of the tables in it."""
    for name, value in node.get("properties", {}).items():
        forms = list(_forms(value, definitions))
        yield f"{before}{name}", [word for form in forms for word in form.get("enum", []) if isinstance(word, str)]
        for form in forms if not before else ():  # a table in a table is no key of --set that a person types
            yield from _keys(f"{name}.", form, definitions)


def _forms(node: dict[str, Any], definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema without references, and all that `anyOf` and `oneOf` allow."""
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]]
    yield node
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _forms(option, definitions)
