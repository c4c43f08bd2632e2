"""Masks what looks like a secret in what goes to others: pages, exports, answers.

A log holds whatever the agent read, and only its owner may read it. A page or a test that is made of it goes elsewhere.
Secrets are found there by their looks, in four ways:

1. tokens that a service marks as its own, by the rules of gitleaks (`secret_shapes.json`) and some more;
2. values with a telling name: `password=...`, `"api_key": "..."`, `--token ...`, headers, cookies, pairs, XML;
3. the user-info of a URL, and what signs or opens it in its query;
4. private keys, JSON web tokens, and hashes of passwords.

A quoted value is masked up to its closing quote, also in JSON within JSON. The name stays, so that a reader sees what
was there. A secret that looks like any other word needs a pattern of the user's.

Time is linear in the text. Most patterns are tried only where one of their words stands (`Anchored`), a repetition is
bounded or possessive, and no match begins within another.
"""

import functools
import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

T = TypeVar("T")

MASK = "[secret]"
"""Stands where a secret stood."""
SHAPES: Final[dict[str, str]] = json.loads(Path(__file__).with_name("secret_shapes.json").read_bytes())["shapes"]
"""Patterns of tokens, by the name of their rule."""
_NAME: Final = 256
"""Characters of a name that can say what stands beside it."""
_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class SecretPattern(Protocol):
    """What finds secrets: a compiled regular expression, or an `Anchored`. Its group `keep`, if any, stays."""

    def sub(self, repl: Callable[[re.Match[str]], str], string: str, /) -> str:
        """The text with every match replaced."""
        ...


@functools.lru_cache(maxsize=1)
def _lower(text: str) -> str:
    """The text with ASCII in lower case, and every character where it was."""
    return text.translate(_TO_LOWER)


class Anchored:
    """A pattern that is tried only where one of its words stands, in any case.

    It is compiled when it is first used: most programs that import this never mask anything.
    """

    def __init__(self, words: str, pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> None:
        self._parts = words, pattern, flags

    @functools.cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(self._parts[0])

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(*self._parts[1:])

    def sub(self, repl: Callable[[re.Match[str]], str], text: str, /) -> str:
        """The text with every match replaced."""
        parts, at = [], 0
        for start in self._starts(text):
            found = self._pattern.match(text, start) if start >= at else None
            if found is not None:
                parts += [text[at:start], repl(found)]
                at = found.end()
        return "".join([*parts, text[at:]])

    def _starts(self, text: str) -> Iterator[int]:
        return (word.start() for word in self._words.finditer(_lower(text)))


class Token(Anchored):
    """A pattern that is tried only where a word of some length begins; both take letters as ASCII has them."""

    def __init__(self, pattern: str, least: int, also: Callable[[str], bool]) -> None:
        super().__init__(rf"[A-Za-z0-9_-]{{{least},}}", pattern)
        self._also = also

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join([self._parts[1], *filter(self._also, SHAPES.values())]), re.ASCII)

    def _starts(self, text: str) -> Iterator[int]:
        for word in self._words.finditer(text):
            start = word.start()
            if start and text[start - 1] == "\\" and text[start] in "bfnrt":  # a line break as JSON writes it
                start += 1
            yield start


_PREFIXES = (
    r"(?:(?:sk|pk|rk|wk)[-_]|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[abeoprs]-|xapp-|hf_|npm_|pypi-|dckr_pat_|nfp_|sbp_"
    r"|sb_secret_|gsk_|xai-|r8_|figd_|tskey-|lsv2_[ps][tk]_|pcsk_|whsec_|nvapi-|csk-|tgp_v1_|jina_|tvly-|CFPAT-|AT[AC]TT3"
    r"|ATBB|sntry[su]_|ops_ey|CCIPAT_|bkua_|GOCSPX-|lin_oauth_|apify_api_|shp[a-z]{2}_|vercel_|AIza)[\w-]{16,}+(?:[.=][\w-]++)?"
)
_TOKENS = (
    r"(?:AKIA|ASIA|AROA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])|secret_[A-Za-z0-9]{40,}+|SK[0-9a-f]{32}(?![0-9a-f])"
    r"|[0-9a-f]{32}-us\d\d(?!\d)|[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}+|A{22}[A-Za-z0-9%]{60,}+"
    r"|AAAA[\w-]{7}:[\w-]{100,}+|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{16,}+|[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"
)
_DOTTED = (
    r"ya29\.[\w-]{20,}+|SG\.[\w-]{16,}+\.[\w-]{16,}+|hv[sb]\.[\w-]{16,}+|\d{8,12}:A[\w-]{34}(?![\w-])"
    r"|[\w~.]{3}\dQ~[\w~.-]{31,34}|[a-z0-9]{14}\.atlasv1\.[\w=-]{60,70}+|1//0[\w-]{30,}+"
    r"|ey[\w-]{8,}+\.ey[\w-]{8,}+(?:\.[\w-]*+){0,3}"
)
_SHORT = r"(?:\(\?i?:)*[\w-]{1,11}(?:\\?\.|\))"
"""How a shape begins whose first word is short: it goes on after a dot."""
_HASH = r"\$(?:2[abxy]\$\d\d|[156y]|argon2(?:id?|d)|scrypt|pbkdf2-[a-z0-9]{3,8})\$[./A-Za-z0-9$,=+-]{20,}+"

_KEY_OF = (
    "api|app|access|auth|secret|private|client|session|refresh|account|shared|signing|encryption|master|admin|service"
    "|webhook|storage|deploy|consumer|license|user"
)
_SURE = rf"pass(?:w(?:or)?d|wort|phrase|_?code)|pwd|(?:{_KEY_OF})[_ -]?key"
_VAGUE = "secret|token|credentials?"
_STRONG = f"{_SURE}|{_VAGUE}"
_SUFFIX = r"(?:[_ -]?(?:access[_ -]?key|key(?:[_ -]?(?:base|data))?|hash|value|data|\d))?"
_WEAK = r"(?<=[a-z0-9][_-])key|auth|pass|sig|signature|session|session_?id|sid|jwt|pat|dsn"
_ESC = r"\\{0,15}+"
_SET = rf"{_ESC}[\"'`]?\s{{0,20}}+(?::=|=>|[:=])\s{{0,20}}+"
_PAIR = rf"{_ESC}[\"']\s{{0,20}}+,\s{{0,20}}+(?=\\{{0,15}}[\"'])(?!\\{{0,15}}[\"']value\\{{0,15}}[\"'])"
_NAME_VALUE = rf"{_ESC}[\"']?\s{{0,20}}+,?\s{{0,60}}+{_ESC}[\"']?value{_SET}"
_OPEN = r"(?P<slash>\\{0,15}+)(?P<quote>[\"'`])"
_QUOTED = r"(?!(?P=slash)(?P=quote))(?:(?!(?P=quote))[^\\\n]|(?!(?P=slash)(?P=quote))\\++(?P=quote)?+)++"
_BARE = r"[^\s\"'`\\,;&<>)}\]]"
_NO_VALUE = (
    r"(?!\[secret\]|\$[{(]|\{\{|<|%\(|\*\*\*|(?:none|null|true|false|str(?:ing)?|bytes|number|int(?:eger)?|required"
    r"|optional|missing|invalid|expired|empty|unset|redacted|hidden|undefined|(?:os|process|env|self|settings)\.)\b)"
)
_QUERY = r"x-(?:amz|goog)-(?:signature|security-token|credential)|sig|signature|key|auth|pass|pwd|code"

SECRET_PATTERNS: tuple[SecretPattern, ...] = (
    Anchored(
        "-----begin ",
        r"-----BEGIN [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----(?s:.)*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
    ),
    Token(f"{_PREFIXES}|{_TOKENS}", 12, lambda shape: not re.match(_SHORT, shape)),
    Token(_DOTTED, 2, lambda shape: bool(re.match(_SHORT, shape))),
    Anchored(r"\$(?:2|[156y]\$|argon|scrypt|pbkdf)", _HASH, re.NOFLAG),
    Anchored(
        r"hooks\.slack\.com/|/api/webhooks/|/bot\d|\.webhook\.office",
        r"(?P<keep>hooks\.slack\.com/[a-z]{1,20}/|/api/webhooks/\d{1,25}/|/bot(?=\d{5,16}:)|\.webhook\.office\.com/)"
        r"[\w/:@-]{16,}+",
    ),
    Anchored(
        "://",
        r"(?P<keep>://(?P<user>[^\s/@\"'<>:]{0,200}:)?+)(?!\[secret\])(?(user)[^\s/@\"'<>]{1,500}|[^\s/@:\"'<>]{16,500})(?=@)",
    ),
    Anchored(
        f"[?&](?:amp;)?(?:{_QUERY})=", rf"(?P<keep>[?&](?:amp;)?(?:{_QUERY})=)(?!\[secret\])[^&\s\"'<>#\\]{{6,}}+"
    ),
    Anchored("bearer|basic|digest", r"(?P<keep>(?:bearer|basic|digest)\s{1,20}+)[A-Za-z0-9._~+/=-]{12,}+"),
    Anchored(
        "authorization",
        rf"(?P<keep>authorization{_SET}[\"'`]?(?:[a-z]{{1,20}}\s{{1,20}}+)?+)(?!\[secret\])[^\s\"'\\]{{6,}}+",
    ),
    Anchored("cookie", rf"(?P<keep>cookie{_SET}[\"'`]?)(?!\[secret\])[^\s\"'\\][^\r\n\"'\\]{{8,}}+"),
    Anchored(
        _STRONG,
        rf"(?P<keep>(?:(?P<vague>{_VAGUE})|{_SURE}){_SUFFIX}(?:(?:{_SET}|{_NAME_VALUE}|{_PAIR})(?:{_OPEN})?|(?P<tag>(?:\s[^<>]{{0,40}}+)?>)))"
        rf"{_NO_VALUE}(?(tag)[^<>\s][^<>]{{1,200}}+(?=</)|(?(quote){_QUOTED}|(?![\w.]{{1,60}}\()"
        rf"(?(vague)(?={_BARE}{{0,40}}?\d|{_BARE}{{20}})){_BARE}{{4,}}+))",
    ),
    Anchored(
        f"(?<![a-z0-9])(?:{_WEAK})",
        rf"(?P<keep>(?:{_WEAK}){_SET}(?:{_OPEN})?)(?!\[secret\])(?={_BARE}{{16}})(?={_BARE}{{0,24}}?\d)"
        rf"(?(quote){_QUOTED}|{_BARE}++)",
    ),
    Anchored(
        "(?<![a-z0-9-])--[a-z]",
        rf"(?P<keep>--(?:[a-z]{{1,20}}-){{0,4}}(?:{_STRONG})(?:\s{{1,20}}+|=)[\"']?)(?!\[secret\]|-)[^\s\"']{{4,}}+",
    ),
    Anchored(
        r"(?<![a-z0-9-])(?:-u|--user|--proxy-user)\s",
        r"(?P<keep>--?[a-z-]{1,10}\s{1,20}+[\"']?[^\s:\"'/]{1,100}:)(?!\[secret\])[^\s\"']{3,}+",
    ),
    Anchored(
        "sshpass|mysql",
        r"(?P<keep>(?:sshpass\s{1,9}-p\s?|mysql[a-z]{0,8}\s(?:[^\n]{0,80}?\s)??-p))(?!\[secret\])[^\s\"']{3,}+",
    ),
    Anchored("login", r"(?P<keep>login\s{1,20}+\S{1,200}+\s{1,20}+password\s{1,20}+)(?!\[secret\])\S{3,}+"),
    Anchored('"(?:[dpqk]|d[pq]|qi)"', r"(?P<keep>\"(?:d|p|q|dp|dq|qi|k)\"\s{0,20}:\s{0,20}\")[\w-]{40,}+", re.NOFLAG),
)
"""What `redact` masks unless it is given other patterns."""


def named(names: Iterable[str]) -> tuple[SecretPattern, ...]:
    """Patterns of the values that stand beside these names, however a text writes them."""
    words = "|".join(
        r"[_ -]?".join(map(re.escape, re.split(r"[_ -]", name.translate(_TO_LOWER)))) for name in names if name
    )
    if not words:
        return ()
    head = rf"(?P<keep>(?:{words})(?:(?:{_SET}|{_NAME_VALUE}|{_PAIR})(?:{_OPEN})?|(?P<tag>>)))(?!\[secret\])"
    value = rf"(?(tag)[^<>\s][^<>]{{0,2000}}+(?=</)|(?(quote){_QUOTED}|(?:[\[({{][^\n]{{0,8000}}+|{_BARE}++)))"
    return (Anchored(rf"(?:(?<![a-z0-9])|(?<=\\[bfnrt]))(?:{words})", head + value),)


def redact(value: T, patterns: Sequence[SecretPattern] = SECRET_PATTERNS) -> T:
    """Masks every match of the patterns. Masking again changes nothing more.

    Args:
        value: A text; or a JSON value, of which every text and name is masked. A name in it may say that what stands
            beside it is a secret.
        patterns: What is masked. A group named `keep` stays.
    """
    if not all(hasattr(pattern, "sub") for pattern in patterns):
        raise TypeError(f"patterns is {patterns!r:.200}, not several compiled regular expressions")
    return cast("T", _redacted("", value, patterns))


def _redacted(name: str, value: Any, patterns: Sequence[SecretPattern]) -> Any:
    if isinstance(value, dict):
        shown: dict[str, Any] = {}
        for key, member in value.items():
            name = _masked(key, patterns)
            distinct = name if name not in shown else f"{name} {len(shown) + 1}"  # two secrets look alike now
            shown[distinct] = _redacted(key[-_NAME:], member, patterns)
        return shown
    if isinstance(value, list):
        return [_redacted(name, member, patterns) for member in value]
    if not isinstance(value, str):
        return value
    if name and (found := _masked(f"{name}={value}", patterns)).startswith(f"{name}="):
        return found.removeprefix(f"{name}=")
    return _masked(value, patterns)


def _masked(text: str, patterns: Sequence[SecretPattern]) -> str:
    for pattern in patterns:
        text = pattern.sub(lambda found: f"{found.groupdict().get('keep') or ''}{MASK}", text)
    return text
