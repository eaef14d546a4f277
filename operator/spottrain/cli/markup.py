"""HTML as values: text is escaped unless it is markup already, so that nothing can be forgotten."""

import html

from spottrain.cli import words


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


Content = str | int | float


def tag(name: str, *content: Content, **attributes: Content) -> Markup:
    """An element. `class_` is the attribute class, `aria_label` aria-label."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{said}>{joined(*content)}</{name}>")


def joined(*content: Content) -> Markup:
    """All of it, one after another; what isn't markup is escaped."""
    return Markup("".join(one if isinstance(one, Markup) else _escaped(one) for one in content))


def _escaped(one: Content) -> str:
    return html.escape(words.harmless(str(one)))
