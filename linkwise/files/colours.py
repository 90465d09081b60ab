"""Colours of shapes. They say nothing about the mechanics, so what cannot be read as a colour is none, in silence."""

from __future__ import annotations

import math

from linkwise.files.xml import Element

__all__ = ["RGBA", "named_colours", "rgba", "sdf_colour", "urdf_colour"]

RGBA = tuple[float, float, float, float]


def rgba(text: str) -> RGBA | None:
    """Three or four numbers from 0 to 1."""
    try:
        numbers = [float(each) for each in text.split()]
    except ValueError:
        return None
    if len(numbers) not in (3, 4) or not all(map(math.isfinite, numbers)):
        return None
    r, g, b, a = (min(max(x, 0.0), 1.0) for x in (*numbers, 1.0)[:4])
    return r, g, b, a


def named_colours(root: Element) -> dict[str, RGBA]:
    """The colours of the materials in a URDF file, wherever they are defined."""
    found: dict[str, RGBA] = {}
    for material in (element for element in root.walk() if element.tag == "material"):
        for colour in material.all("color"):
            value = rgba(colour.attributes.get("rgba", ""))
            if value is not None:
                found.setdefault(material.attributes.get("name", ""), value)
    return found


def urdf_colour(visual: Element, named: dict[str, RGBA]) -> RGBA | None:
    """That of the material of a ``<visual>``: its own, or the one that its name stands for."""
    for material in visual.all("material"):
        own = [rgba(colour.attributes.get("rgba", "")) for colour in material.all("color")]
        return own[0] if own else named.get(material.attributes.get("name", ""))
    return None


def sdf_colour(visual: Element) -> RGBA | None:
    """The diffuse colour of the material of a ``<visual>``."""
    return next((rgba(each.text) for material in visual.all("material") for each in material.all("diffuse")), None)
