"""URLs and data sources in sentences of ours name a place, and nothing else. Patterns are compiled when one is said."""

import re

_URL = (
    r"(?i)(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{1,20}://)"
    r"(?:[^\s\"'<>?#/@]{0,300}:[^\s\"'<>?#]{0,500}@|[^\s\"'<>?#/]{1,500}@)?([^\s\"'<>?#]{0,2000}+)(?:[?#][^\s\"'<>)]*+)?"
)


_DSN = (
    r"(?i)(?<![a-z0-9])((?:ssl_?)?(?:password|passwd|pwd)|(?:shared)?(?:access|account)[_ ]?key)(\s{0,5}=\s{0,5})"
    r"('[^'\n]*+'|[^\s;'\"]++)"
)


def bare_urls(text: str) -> str:
    """A text whose URLs name the place alone: without who asks, without a query and a fragment, which may hold keys.

    In `host=db password=...`, as databases write a source, the password is cut.
    """
    return re.sub(_DSN, r"\1\2[secret]", re.sub(_URL, r"\1\2", text))
