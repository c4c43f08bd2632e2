"""URLs and data sources in sentences of ours name a place, and nothing else."""

import re

_URL = re.compile(
    r"(?i)(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{1,20}://)"
    r"(?:[^\s\"'<>?#/@]{0,300}:[^\s\"'<>?#]{0,500}@|[^\s\"'<>?#/]{1,500}@)?([^\s\"'<>?#]{0,2000}+)(?:[?#][^\s\"'<>)]*+)?"
)


_DSN = re.compile(
    r"(?i)(?<![a-z0-9])((?:ssl_?)?(?:password|passwd|pwd)|(?:shared)?(?:access|account)[_ ]?key)(\s{0,5}=\s{0,5})"
    r"('[^'\n]*+'|[^\s;'\"]++)"
)


def bare_urls(text: str) -> str:
    """A text whose URLs name the place alone: without who asks, without a query and a fragment, which may hold keys.

    In `host=db password=...`, as databases write a source, the password is cut.
    """
    return _DSN.sub(r"\1\2[secret]", _URL.sub(r"\1\2", text))
