"""Names that complete in IPython and Jupyter inside calls on a model: ``model.pose(q, "…`` and ``model.bodies["…``.

IPython asks no object what may stand between its parentheses, and does not look into models by itself, so this is a
matcher of its own, registered where linkwise is imported in such a session. It runs nothing of the user's: names are
looked up, and of what they stand for only the model's own tables and the parameters of its methods are read.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwise.model.model import Model

_OWNER = re.compile(r"(?<![\w.\])])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.([A-Za-z_]\w*)\s*$")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=\s*[\[(]?\s*$")
_TABLES = {
    "body": ("bodies", "frames"),
    "at": ("bodies", "frames"),
    "bodies": ("bodies",),
    "frame": ("frames", "bodies"),
    "joint": ("joints",),
    "joints": ("joints",),
    "locked": ("joints",),
    "closure": ("closures",),
    "closures": ("closures",),
}
"""Tables of a model with the names that a parameter of its methods takes."""


def register() -> None:
    """Add the matcher to the session, once; nothing where there is none, or one too old for matchers."""
    session = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    matchers = getattr(getattr(session, "Completer", None), "custom_matchers", None)
    if session is None or matchers is None or any(getattr(each, "of_linkwise", False) for each in matchers):
        return
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher(identifier="linkwise.names")  # type: ignore[untyped-decorator]
    def matcher(context: Any) -> dict[str, Any]:
        fragment, names = names_at(context.text_until_cursor, session.user_ns)
        completions = [SimpleCompletion(text=name, type="name") for name in names]
        return {"completions": completions, "matched_fragment": fragment, "suppress": bool(names), "ordered": True}

    matcher.of_linkwise = True
    matchers.append(matcher)


def names_at(text: str, namespace: Mapping[str, object]) -> tuple[str, list[str]]:
    """The beginning of a name at the end of a text, and the names that it may become; none where no name is due.

    >>> from linkwise import samples
    >>> names_at('arm.pose(arm.neutral(), "link', {"arm": samples.planar_arm()})
    ('link', ['link1', 'link2', 'link3'])
    """
    brackets, commas, quote = _open_at_end(text)
    while brackets and quote >= 0:
        at, count = brackets.pop(), commas.pop()
        found = _OWNER.search(text[:at])
        if found is None:  # a list or a tuple, which may itself be an argument
            continue
        model = _looked_up(found[1], namespace)
        names = [] if model is None else _names(model, found[2], text[at], count, text[at + 1 : quote])
        part = text[quote + 1 :]
        return part, [name for name in names if name.startswith(part)]
    return "", []


def _open_at_end(text: str) -> tuple[list[int], list[int], int]:
    """Places of the brackets that are open at the end of a text, the commas in each, and the open quote (or -1)."""
    brackets: list[int] = []
    commas: list[int] = []
    quote = -1
    for k, letter in enumerate(text):
        if quote >= 0:
            if letter == text[quote] and text[k - 1] != "\\":
                quote = -1
        elif letter in "\"'":
            quote = k
        elif letter in "([{":
            brackets.append(k)
            commas.append(0)
        elif letter in ")]}" and brackets:
            brackets.pop()
            commas.pop()
        elif letter == "," and commas:
            commas[-1] += 1
    return brackets, commas, quote


def _looked_up(path: str, namespace: Mapping[str, object]) -> Model | None:
    """The model that a dotted name stands for; None where it is none. Attributes are read from ``__dict__`` alone."""
    first, *others = path.split(".")
    thing = namespace.get(first)
    for name in others:
        thing = getattr(thing, "__dict__", {}).get(name)
    known = sys.modules.get("linkwise.model.model")  # who has a model has loaded it
    return thing if known is not None and isinstance(thing, known.Model) else None


def _names(model: Model, attribute: str, bracket: str, count: int, before: str) -> list[str]:
    """Names that may stand in ``model.attribute[`` or, after so many commas, in ``model.attribute(``."""
    if bracket == "[":
        keys = getattr(getattr(model, attribute, None), "_ipython_key_completions_", None)
        return [] if keys is None else list(keys())
    method = getattr(type(model), attribute, None)
    if not callable(method):
        return []
    keyword = _KEYWORD.search(before)
    try:
        parameters = [name for name in inspect.signature(method).parameters if name != "self"]
    except (TypeError, ValueError):
        return []
    parameter = keyword[1] if keyword else parameters[count] if count < len(parameters) else ""
    tables = (getattr(model, table, ()) for table in _TABLES.get(parameter, ()))
    return list(dict.fromkeys(element.name for table in tables for element in table))
