"""Scripts that complete commands and options in a shell, made from the parser itself."""

from __future__ import annotations

import argparse

from linkwise.cli.parser import make_parser

Options = dict[str, list[tuple[str, str]]]


def script(shell: str) -> str:
    """The script for bash, zsh or fish."""
    options, summaries = _options(make_parser())
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](options, summaries)


def _options(parser: argparse.ArgumentParser) -> tuple[Options, dict[str, str]]:
    """For each command its options with their help; and the commands' own."""
    sub = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    summaries = {choice.dest: choice.help or "" for choice in sub._choices_actions}
    found: Options = {}
    for name, command in sub.choices.items():
        found[name] = [
            (flag, action.help or "")
            for action in command._actions
            for flag in action.option_strings
            if action.help is not argparse.SUPPRESS
        ]
        for action in command._actions:
            if not action.option_strings and action.choices is not None:
                found[name] += [(str(choice), "") for choice in action.choices]
    return found, summaries


def _bash(options: Options, summaries: dict[str, str]) -> str:
    cases = "\n".join(
        f'        {name}) words="{" ".join(flag for flag, _ in flags)}" ;;' for name, flags in options.items()
    )
    return f"""\
# bash completion for linkwise
_linkwise() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{" ".join(summaries)} --help --version" -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ "${{current#-}}" = "$current" ]; then
        COMPREPLY+=($(compgen -W "planar_arm stanford_arm" -- "$current") $(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _linkwise linkwise
"""


def _zsh(options: Options, summaries: dict[str, str]) -> str:
    commands = "\n".join(f"        {_quoted(f'{name}:{text}')}" for name, text in summaries.items())
    cases = "\n".join(
        f"        {name}) _values -w option "
        + " ".join(_quoted(f"{flag}[{_no_brackets(text)}]") for flag, text in flags)
        + " ;;"
        for name, flags in options.items()
    )
    return f"""\
#compdef linkwise
_linkwise() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    if [[ "$words[CURRENT]" != -* && "$words[2]" != completion ]]; then
        _files
        return
    fi
    case "$words[2]" in
{cases}
    esac
}}
_linkwise "$@"
"""


def _fish(options: Options, summaries: dict[str, str]) -> str:
    lines = ["# fish completion for linkwise"]
    lines += [
        f"complete -c linkwise -n __fish_use_subcommand -f -a {name} -d {_quoted(text)}"
        for name, text in summaries.items()
    ]
    for name, flags in options.items():
        here = f"complete -c linkwise -n '__fish_seen_subcommand_from {name}'"
        for flag, text in flags:
            if flag.startswith("--"):
                lines.append(f"{here} -l {flag[2:]} -d {_quoted(text)}")
            elif flag.startswith("-"):
                lines.append(f"{here} -s {flag[1:]} -d {_quoted(text)}")
            else:
                lines.append(f"{here} -f -a {flag}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "’").replace("\\", "") + "'"


def _no_brackets(text: str) -> str:
    return text.replace("[", "(").replace("]", ")").replace(":", ",")
