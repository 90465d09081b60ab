"""xacro files to the elements that they expand to.

A xacro file is a program: it has macros, conditions, expressions, and reads other files. It is expanded only where the
caller says so, by giving ``arguments`` (``{}`` if there are none), and then by the text here, which runs no Python:

- expressions are walked over by :mod:`linkwise.files.xacro_expressions`: data, functions of a table, bounded time;
- nothing is opened outside the search path (:mod:`linkwise.files.resources`): included files, YAML files, packages
  that ``$(find name)`` names; nothing is written;
- ``$(env NAME)`` is read only where the caller lists the name in ``environment``.

Read are macros with defaults, blocks and ``^``, properties with their scopes, arguments, conditions, includes with
namespaces, ``xacro:call``, ``xacro:element``, ``xacro:attribute`` and ``xacro:insert_block``, by the rules of the
program xacro, version 2: properties are evaluated when they are first used, and a macro sees those of its caller.
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelFileError, ModelWarning
from linkwise.files.resources import SearchPath, exists, read_bytes
from linkwise.files.xacro_functions import Namespace
from linkwise.files.xacro_texts import PropertyScope, Texts, boolean
from linkwise.files.xml import DEEPEST, XmlElement, parse

_DEEPEST = 250
"""Levels of elements, macros and includes within each other."""
_STEPS = 20
"""Steps that an element costs, beside its texts."""
_MOST_MATCHES = 1000
_DEFAULT = r"""\$\{.*?\}|\$\(.*?\)|(?:'[^']*'|"[^"]*"|[^\s'"])++|"""  # possessive: no text takes long to be no default
_PARAMETER = re.compile(rf"\s*([^\s:=]+?)\s*:?=\s*(\^\|?)?({_DEFAULT})(?:\s+|$)")
_WORD = re.compile(r"\s*(\S+)\s*")
_NAME = re.compile(r"[^\W\d][\w:.-]*")


def expand(
    content: bytes,
    file: str,
    arguments: Mapping[str, object] | None,
    places: SearchPath,
    environment: Iterable[str] | Mapping[str, str] = (),
) -> tuple[XmlElement, list[ModelWarning]]:
    """The root element that a xacro file expands to, and warnings of its author.

    The lines of elements are those of this file, also for what others brought in.

    Args:
        content: the file's bytes.
        file: its name.
        arguments: values for its ``<xacro:arg>``; None where the caller did not ask for it to be run.
        places: where the files are that it includes.
        environment: names of variables that it may read, or a dict with their values.
    """
    if arguments is None:
        raise ModelFileError(
            "this is a xacro file, which is a program and is run only if you say so",
            file=file,
            do="load(..., arguments={}) or --arg name:=value runs it, if you trust it",
        )
    if not isinstance(arguments, Mapping):
        raise InputError("arguments must be a dict", got=repr(arguments)[:80], allowed='{"name": value}')
    if isinstance(environment, str) or not all(isinstance(name, str) for name in environment):
        raise InputError(
            "environment must be names", got=repr(environment)[:80], allowed='["NAME"] or {"NAME": "value"}'
        )
    given = environment if isinstance(environment, Mapping) else {name: os.environ.get(name) for name in environment}
    texts = Texts(
        Path(file).resolve(), {str(name): _text(value) for name, value in arguments.items()}, places, dict(given)
    )
    return _Expansion(file, texts).document(parse(content, file, mixed=True)), texts.notes


@dataclass(frozen=True)
class _Macro:
    """A macro as it was written: names of parameters in order, and (name to forward, text) of those with a default."""

    body: XmlElement
    file: str
    parameters: tuple[str, ...]
    defaults: Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True)
class _ExpansionContext:
    """Scopes of properties and macros, the file, and the element of the result in which children stand."""

    scope: PropertyScope
    macros: PropertyScope
    file: str
    parent: XmlElement
    depth: int = 0

    def within(self, parent: XmlElement) -> _ExpansionContext:
        return _ExpansionContext(self.scope, self.macros, self.file, parent, self.depth)


class _Expansion:
    """One run over a file."""

    def __init__(self, file: str, texts: Texts) -> None:
        self.file, self.texts = file, texts
        self.now = (file, 1)
        """File and line of the element that is being expanded, for messages."""
        self.line = 1
        """The line of the file itself that led there."""

    def document(self, root: XmlElement) -> XmlElement:
        """The expanded root."""
        scope = PropertyScope(self.texts, self.texts.names)
        macros = PropertyScope(self.texts, Namespace({}))
        whole = XmlElement("", {}, 1)
        try:
            self.plain(root, _ExpansionContext(scope, macros, self.file, whole))
            return _collapsed(whole.children[0])
        except RecursionError:
            error = _too_deep()
        except ModelFileError as refused:
            if refused.file is not None:
                raise
            error = refused
        file, line = self.now
        raise ModelFileError(
            f"the xacro file could not be expanded: {error.what}",
            file=file,
            line=line,
            **error.parts,
        )

    def children(self, element: XmlElement, place: _ExpansionContext) -> None:
        """Expand the children of an element, in order, into those of the place."""
        if place.depth > _DEEPEST:
            raise _too_deep()
        inner = _ExpansionContext(place.scope, place.macros, place.file, place.parent, place.depth + 1)
        for child in element.children:
            if child.tag:
                self.element(child, inner)
            else:
                place.parent.children.append(
                    XmlElement("", {}, self.line, [], self.texts.text(child.text, place.scope))
                )

    def element(self, element: XmlElement, place: _ExpansionContext) -> None:
        self.texts.allowance.spend(_STEPS)
        self.now = (place.file, element.line)
        if place.file == self.file:
            self.line = element.line
        if not element.tag.startswith("xacro:"):
            self.plain(element, place)
        elif (handler := _HANDLERS.get(element.tag)) is not None:
            handler(self, element, place)
        else:
            self.call(element, place, element.tag.removeprefix("xacro:"), element.attributes)

    def plain(self, element: XmlElement, place: _ExpansionContext) -> None:
        """An element of the result."""
        attributes = {
            name: self.texts.text(value, place.scope)
            for name, value in element.attributes.items()
            if not name.startswith("xacro:") and name != "xmlns:xacro"
        }
        made = XmlElement(element.tag, attributes, self.line)
        place.parent.children.append(made)
        self.children(element, place.within(made))

    def required(self, element: XmlElement, name: str) -> str:
        if name not in element.attributes:
            raise ModelFileError(
                f"<{element.tag}> has no attribute {name!r}",
                got=", ".join(element.attributes)[:80] or "no attributes",
                do=f'write <{element.tag} {name}="..."/>',
            )
        return element.attributes[name]

    def condition(self, element: XmlElement, place: _ExpansionContext) -> None:
        text = self.required(element, "value")
        met = boolean(self.texts.value(text, place.scope), text)
        if met == (element.tag == "xacro:if"):
            self.children(element, place)

    def argument(self, element: XmlElement, place: _ExpansionContext) -> None:
        name, default = self.required(element, "name"), self.required(element, "default")
        if name not in self.texts.arguments:
            self.texts.arguments[name] = self.texts.text(default, place.scope)

    def named(self, element: XmlElement, place: _ExpansionContext) -> None:
        """``xacro:element``: an element whose name is computed."""
        name = self.computed(element, "xacro:name", place)
        attributes = {each: value for each, value in element.attributes.items() if each != "xacro:name"}
        self.element(XmlElement(name, attributes, element.line, element.children), place)

    def computed(self, element: XmlElement, attribute: str, place: _ExpansionContext) -> str:
        name = self.texts.text(self.required(element, attribute), place.scope)
        if not _NAME.fullmatch(name):
            raise ModelFileError(f"<{element.tag}> makes what is no name", got=repr(name[:80]))
        return name

    def attribute(self, element: XmlElement, place: _ExpansionContext) -> None:
        name = self.computed(element, "name", place)
        place.parent.attributes[name] = self.texts.text(self.required(element, "value"), place.scope)

    def property(self, element: XmlElement, place: _ExpansionContext) -> None:
        scope, texts = place.scope, self.texts
        name = texts.value(self.required(element, "name"), scope)
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
            raise ModelFileError("this is no name for a property", got=repr(name)[:80], allowed="letters, digits and _")
        options = {key: element.attributes.get(key) for key in ("value", "default", "remove", "scope", "lazy_eval")}
        value, default = options["value"], options["default"]
        remove = self.flag(options["remove"], "false", scope)
        if (value is not None) + (default is not None) + remove > 1:
            raise ModelFileError(f"the property {name!r} has more than one of value, default and remove")
        if remove:
            scope.remove(name)
            return
        if default is not None:
            if name in scope:
                return
            value = default
        lazy = self.flag(options["lazy_eval"], "true", scope)
        target = scope
        if options["scope"] == "global":
            target, lazy = scope.outermost, False
        elif options["scope"] == "parent":
            target, lazy = self.around(scope), False
        if value is None:  # a block
            target.put("**" + name, element)
        else:
            target.put(name, value if lazy else texts.value(value, scope), lazy=lazy)

    def flag(self, text: str | None, default: str, scope: PropertyScope) -> bool:
        return boolean(self.texts.value(text or default, scope), text or default)

    def around(self, scope: PropertyScope) -> PropertyScope:
        """The scope of the caller of a macro, or around a namespace."""
        found = scope.parent
        while not scope.namespace and isinstance(found, PropertyScope) and found.namespace:
            found = found.parent
        if not isinstance(found, PropertyScope):
            raise ModelFileError("a property outside all macros has no parent scope", do='leave out scope="parent"')
        return found

    def macro(self, element: XmlElement, place: _ExpansionContext) -> None:
        name = self.required(element, "name").removeprefix("xacro:")
        if name == "call" or "." in name:
            raise ModelFileError("this is no name for a macro", got=repr(name[:80]), allowed="no dots, and not 'call'")
        text, at = element.attributes.get("params", ""), 0
        names: list[str] = []
        defaults: dict[str, tuple[str | None, str | None]] = {}
        while at < len(text.rstrip()):
            self.texts.allowance.spend(1 + (len(text) - at) // 4)
            if match := _PARAMETER.match(text, at):
                defaults[match[1]] = (match[1] if match[2] else None, match[3] or None)
            else:
                match = _WORD.match(text, at)
                assert match is not None  # something is left that is no space
            names.append(match[1])
            at = match.end()
        place.macros.put(name, _Macro(element, place.file, tuple(names), defaults))

    def dynamic(self, element: XmlElement, place: _ExpansionContext) -> None:
        """``xacro:call``: a macro whose name is computed."""
        name = self.texts.text(self.required(element, "macro"), place.scope)
        self.call(element, place, name, {key: text for key, text in element.attributes.items() if key != "macro"})

    def call(self, element: XmlElement, place: _ExpansionContext, name: str, given: Mapping[str, str]) -> None:
        """A macro with its parameters: those given by attributes, blocks in order, then defaults."""
        macro, macros, scope = self.resolved(name, place)
        inner = PropertyScope(self.texts, scope)
        missing = list(macro.parameters)
        for key, text in given.items():
            if key not in missing:
                raise ModelFileError(
                    f"the macro {name!r} has no parameter of this name", got=key, allowed=" ".join(macro.parameters)
                )
            missing.remove(key)
            inner.put(key, self.texts.value(text, place.scope))
        blocks = XmlElement("", {}, element.line)
        self.children(element, place.within(blocks))
        left = [block for block in blocks.children if block.tag]
        for key in [each for each in missing if each.startswith("*")]:
            if not left:
                raise ModelFileError(
                    f"the macro {name!r} is not given enough blocks", allowed=" ".join(macro.parameters)
                )
            missing.remove(key)
            inner.put(key, left.pop(0))
        if left:
            raise ModelFileError(f"the macro {name!r} is given a block that it does not use", got=f"<{left[0].tag}>")
        for key in [each for each in missing if each in macro.defaults]:
            forward, default = macro.defaults[key]
            if forward is not None and (default is None or forward in place.scope):
                try:
                    inner.put(key, place.scope.find(forward))
                except KeyError:
                    raise ModelFileError("there is no property to pass on to a macro", got=repr(forward)) from None
            else:
                inner.put(key, self.texts.value(default or "", place.scope))
            missing.remove(key)
        if missing:
            raise ModelFileError(
                f"parameters of the macro {name!r} have no value", got=" ".join(missing)[:200], do="give them"
            )
        self.children(
            macro.body,
            _ExpansionContext(inner, PropertyScope(self.texts, macros), macro.file, place.parent, place.depth),
        )

    def resolved(self, name: str, place: _ExpansionContext) -> tuple[_Macro, PropertyScope, PropertyScope]:
        """A macro, and the scopes in which it is expanded: by its whole name, or inside namespaces."""
        *outer, last = name.split(".")
        macros, scope = place.macros, place.scope
        try:
            for each in outer:
                found, properties = macros.find(each), scope.find(each)
                if not isinstance(found, PropertyScope) or not isinstance(properties, PropertyScope):
                    raise KeyError(each)
                macros, scope = found, properties
            macro = macros.find(last)
        except KeyError:
            macro = None
        if not isinstance(macro, _Macro):
            raise ModelFileError(
                "there is no macro of this name", got=f"<xacro:{name[:80]}>", do="define or include it before this line"
            )
        return macro, macros, scope

    def block(self, element: XmlElement, place: _ExpansionContext) -> None:
        """``xacro:insert_block``: a block given to the macro, or its content."""
        name = self.required(element, "name")
        for stars in ("**", "*"):
            if stars + name in place.scope:
                found = place.scope.find(stars + name)
                assert isinstance(found, XmlElement)  # nothing else is put under names with stars
                if stars == "**":
                    self.children(found, place)
                else:
                    self.element(found, place)
                return
        raise ModelFileError("there is no block of this name", got=repr(name[:80]), do="name it in params as *name")

    def include(self, element: XmlElement, place: _ExpansionContext) -> None:
        texts = self.texts
        name = texts.text(self.required(element, "filename"), place.scope)
        optional = self.flag(element.attributes.get("optional"), "false", place.scope)
        scope, macros = place.scope, place.macros
        if "ns" in element.attributes:
            space = texts.text(element.attributes["ns"], place.scope)
            scope, macros = PropertyScope(texts, scope, namespace=True), PropertyScope(texts, Namespace({}))
            place.scope.put(space, scope)
            place.macros.put(space, macros)
        for path in self.included(name, optional):
            file = str(path)
            content = read_bytes(path, suffixes=(".xacro",))
            texts.allowance.spend(len(content) // 16)
            root = parse(content, file, mixed=True)
            texts.files.append(path)
            self.children(root, _ExpansionContext(scope, macros, file, place.parent, place.depth))
            texts.files.pop()

    def included(self, name: str, optional: bool) -> list[Path]:
        """The files that an include names, perhaps by a pattern."""
        pattern = re.search(r"[*?\[]", name)
        if pattern is None:
            path = self.texts.path(name)
            return [] if optional and self.texts.is_inside(path) and not exists(path) else [self.texts.allowed(path)]
        start = name.rfind("/", 0, pattern.start()) + 1
        self.texts.path(name)  # is a name
        folder, rest = self.texts.allowed(self.texts.path(name[:start])), name[start:]
        if ".." in rest or "**" in rest:
            raise ModelFileError("this pattern is refused", got=repr(name[:80]), allowed="folder/*.xacro")
        found = [path for path, _ in zip(folder.glob(rest), range(_MOST_MATCHES), strict=False)]
        return [self.texts.allowed(path.resolve()) for path in sorted(found)]


def _too_deep() -> ModelFileError:
    return ModelFileError(
        "elements and macros are nested too deeply", allowed=f"{_DEEPEST} levels", do="end the recursion of a macro"
    )


def _collapsed(root: XmlElement) -> XmlElement:
    """The tree with the texts of each element as its one text, as readers of model files take it."""
    level = [root]
    for _ in range(DEEPEST):
        for element in level:
            element.text = "".join(child.text for child in element.children if not child.tag).strip()
            element.children = [child for child in element.children if child.tag]
        level = [child for element in level for child in element.children]
        if not level:
            return root
    raise _too_deep()


_HANDLERS = {
    "xacro:if": _Expansion.condition,
    "xacro:unless": _Expansion.condition,
    "xacro:arg": _Expansion.argument,
    "xacro:property": _Expansion.property,
    "xacro:macro": _Expansion.macro,
    "xacro:call": _Expansion.dynamic,
    "xacro:element": _Expansion.named,
    "xacro:attribute": _Expansion.attribute,
    "xacro:insert_block": _Expansion.block,
    "xacro:include": _Expansion.include,
}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
