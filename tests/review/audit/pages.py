"""What a page holds, as a browser's parser sees it: its tags, its text, its links and what it would run."""

import base64
import hashlib
from html.parser import HTMLParser


class Page(HTMLParser):
    """A parsed page. `tags` are every tag with the names of its attributes, in order; `ids` what can be linked to."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.policy = ""
        self.inline: dict[str, list[str]] = {"style": [], "script": []}
        self._text: list[str] = []
        self._within = ""
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        """All that can be read."""
        return "".join(self._text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag."""
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        values = dict(attrs)
        if "id" in values:
            self.ids.append(str(values["id"]))
        self.links += [str(values[name]) for name in ("href", "src", "action", "data") if name in values]
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(values["content"])
        self._within = tag if tag in self.inline else ""

    def handle_endtag(self, tag: str) -> None:
        """What comes is text again."""
        self._within = "" if tag in self.inline else self._within

    def handle_data(self, data: str) -> None:
        """Remember text; of a style or a script apart."""
        if self._within:
            self.inline[self._within].append(data)
        else:
            self._text.append(data)


def digest(text: str) -> str:
    """The name by which a policy allows a style or a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
