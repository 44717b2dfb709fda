"""What looks like a secret in a text: the forms that providers give their keys, and names before a value.

The forms are their issuers' published ones. A test holds them against ``detect-secrets``, a set of rules that
many keep; it is too slow and too heavy to be asked for each request.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import msgspec

#: What stands for a secret. It is as long as the secret was, but never shorter than this.
REDACTED = "REDACTED"

Span: TypeAlias = tuple[int, int]


def mask(length: int) -> str:
    """What stands for a secret of a length."""
    return REDACTED + "x" * (length - len(REDACTED))


class Rule(msgspec.Struct, frozen=True):
    """A form of secret: group ``s`` of the pattern, or all that it finds. ``is_one`` may refuse it.

    A rule is asked only where one of its ``anchors`` stands in the text: in lower case, or ``exact``.
    """

    pattern: re.Pattern[str]
    is_one: Callable[[str], bool] | None = None
    anchors: tuple[str, ...] = ()
    exact: bool = False

    def applies(self, text: str, lower: str) -> bool:
        """Whether an anchor stands in a text."""
        where = text if self.exact else lower
        return any(anchor in where for anchor in self.anchors)

    def spans(self, text: str) -> Iterator[Span]:
        """Where secrets of this form stand."""
        group = "s" if "s" in self.pattern.groupindex else 0
        for found in self.pattern.finditer(text):
            if found.end(group) > found.start(group) and (self.is_one is None or self.is_one(found[group])):
                yield found.span(group)


def _words(text: str) -> tuple[str, ...]:
    """The words of a list that would take a page with a quote around each."""
    return tuple(text.split())


def _has_digit(text: str) -> bool:
    """Whether it has digits and letters, as words of a language have not."""
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _is_no_phrase(text: str) -> bool:
    """Whether it is more than everyday words joined by marks, as in ``sk-or-two-more-things``."""
    return not all(part.isalpha() and part.islower() and len(part) < 12 for part in re.split(r"[-_.]", text))


# Runs of letters, digits and marks that begin as their issuer makes them begin

#: What a run is made of, and how long it is at least.
RUN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/=~"
SHORTEST_RUN = 12

#: Beginnings of keys that begin nothing else.
_PREFIXES = _words(
    "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf- pk-lf- "
    "ghp_ gho_ ghu_ ghs_ ghr_ ghp- gho- github_pat_ "
    "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt- GR1348941 "
    "hf_ api_org_ gsk_ xai- pplx- nvapi- r8_ csk- tvly- lsv2_pt_ lsv2_sk_ pcsk_ jina_ "
    "npm_ rubygems_ dckr_pat_ dckr_oat_ clojars_ "
    "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ sk_org_ whsec_ "
    "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp- xwfp- "
    "ya29. GOCSPX- AIza AQ. 1//0 "
    "dop_v1_ doo_v1_ dor_v1_ shpat_ shpca_ shppa_ shpss_ lin_api_ ntn_ figd_ figo_ figu_ ATATT3 ATCTT3 "
    "PMAK- dp.pt. dp.st. dp.ct. hvs. hvb. hvr. glc_ glsa_ sntrys_ sntryu_ NRAK- NRII- sq0atp- sq0csp- "
    "sbp_ sb_secret_ sb_publishable_ vck_ pscale_tkn_ pscale_oauth_ pscale_pw_ pnu_ HRKU- tskey- sgp_ phx_ "
    "AGE-SECRET-KEY-1 "
)
#: Beginnings of keys and of other things: a key goes on for long and has a digit.
_WEAK_PREFIXES = _words("sk- pk- rk- sk_ pk_ rk_ key- sess- fw_ dapi pul- pypi- SG. cio phc_ voy-")


def _begins(prefixes: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, sorted(prefixes, key=len, reverse=True)))


def _kinds(text: str) -> int:
    """The fewest of capitals, small letters and digits."""
    return min(sum(map(kind, text)) for kind in (str.isupper, str.islower, str.isdigit))


def _entropy(text: str) -> float:
    """Bits for each character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _is_aws_secret(text: str) -> bool:
    """Forty letters, digits, ``/`` and ``+`` as AWS makes them, and no path, digest or name."""
    return _kinds(text) >= 2 and _entropy(text) >= 4.3


#: Forms without a name before them. Each is looked for in runs only.
RUNS: tuple[Rule, ...] = (
    Rule(re.compile(rf"(?<![A-Za-z0-9])(?:{_begins(_PREFIXES)})[\w\-.]{{8,}}"), _is_no_phrase),
    Rule(re.compile(rf"(?<![A-Za-z0-9])(?:{_begins(_WEAK_PREFIXES)})[\w\-.]{{14,}}"), _has_digit),
    Rule(re.compile(r"(?<![A-Za-z0-9])(?:A3T[A-Z0-9]|A[KS]IA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])")),
    Rule(re.compile(r"(?<![A-Za-z0-9+/])(?P<s>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=_-])"), _is_aws_secret),
    Rule(re.compile(r"(?<![A-Za-z0-9])ABSK[A-Za-z0-9+/]{60,}={0,2}")),
    Rule(re.compile(r"(?<![\w~.\-])[A-Za-z0-9_~.\-]{3}[0-9A-Za-z]Q~[A-Za-z0-9_~.\-]{28,36}")),
    Rule(re.compile(r"(?<![A-Za-z0-9+/])(?<!sha512-)[A-Za-z0-9+/]{86}==")),
    Rule(re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{40,60}JQQJ99[A-Za-z0-9]{10,40}")),
    Rule(re.compile(r"(?<![A-Za-z0-9])eyJ[\w\-]{8,}\.[\w\-]{4,}(?:\.[\w\-]*){0,3}")),
    Rule(re.compile(r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[\w/+\-]+")),
    Rule(re.compile(r"discord(?:app)?\.com/api/webhooks/\d+/[\w\-]+")),
    Rule(re.compile(r"[\w\-]+\.webhook\.office\.com/[\w/\-.]+")),
    Rule(re.compile(r"(?<![A-Za-z0-9])(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])")),
    Rule(re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])")),
    Rule(re.compile(r"(?<![A-Za-z0-9])secret_[A-Za-z0-9]{40,}")),
    Rule(re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w\-=]{40,}")),
)


# Names before a value


def _is_basic(text: str) -> bool:
    """Whether it is a name and a password in base64."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if "-" in text else None)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded


def _is_argument(text: str) -> bool:
    return not text.startswith("-")


#: A word for something secret, in the name of a field.
_WORDS = _words(
    "password passwd passphrase passcode pwd secret api_key api-key api.key apikey access_key access-key "
    "accesskey auth_key auth-key authkey account_key account-key accountkey private_key private-key "
    "privatekey "
    "signing_key signing-key encryption_key encryption-key subscription_key subscription-key "
    "sharedaccesskey auth_token auth-token authtoken access_token access-token accesstoken refresh_token "
    "refresh-token refreshtoken id_token session_token session-token sessiontoken security_token "
    "security-token "
    "bot_token bearer_token csrf_token csrf-token private_token private-token connection_string "
    "connectionstring credential webhook_url webhookurl"
)
_WORD = "(?:" + "|".join(re.escape(word).replace(r"\.", "[ .]?") for word in _WORDS) + ")"
_ENV_WORDS = _words(
    "_KEY _TOKEN _SECRET _PASSWORD _PASSWD _PASS _PWD _CREDENTIAL _CREDENTIALS _AUTH _COOKIE _DSN _PAT"
)
_ENV = rf"[A-Z][A-Z0-9_]*(?:{'|'.join(_ENV_WORDS)})(?:_[A-Z0-9_]*)?"
_IS = r"(?:\\*[\"'`])?[ \t]*(?:=>|:=|==?|:)[ \t]*"
#: A value in quotes at any depth of escapes, else up to where a bare one ends.
_VALUE = (
    r"(?:(?P<e>\\*)(?P<q>[\"'`])(?P<s>(?:(?!(?<!\\)(?P=e)(?P=q))[^\n]){1,4096})"
    r"|(?P<bare>(?!\\*[\"'`])(?:(?!&[\w.\-]+=)[^\s\"'`<>\\]){1,4096}))"
)
_PASSWORD = re.compile(r"(?i)pass(?:word|wd|phrase|code)|pwd")
_PLACEHOLDER = re.compile(
    r"(?i)--[a-z]|\$\{|\$[A-Z_]+$|\{\{|<|\*{3}|%\(|None$|null$|true$|false$|os\.|process\.env|env\.|getenv"
    r"|str(?:ing)?$|[\[({]$|\.\.\.$|…$"
)


#: A name in a program, as in ``api_key=self.key``, or a word too short to be a secret.
_NAME = re.compile(r"[A-Za-z]{0,3}|[a-z]+(?:[._][a-z]+)+|\d+")
_COUNT = re.compile(r"\d{1,3}")


class Named(Rule, frozen=True):
    """A name for something secret, and the value after it.

    ``settings``: the name is that of a variable, so what follows is a value; else it may be prose.
    """

    settings: bool = False

    def spans(self, text: str) -> Iterator[Span]:
        for found in self.pattern.finditer(text):
            group = "s" if found["s"] is not None else "bare"
            value = found[group].rstrip(",;.)}]" if group == "bare" else None)
            if not value or _PLACEHOLDER.match(value):
                continue
            if group == "bare" and (
                _COUNT.fullmatch(value) if self.settings else not _is_value(found, value)
            ):
                continue
            yield found.start(group), found.start(group) + len(value)


def _is_value(found: re.Match[str], value: str) -> bool:
    """Whether a bare word after a name is a value, and does not go on with a sentence."""
    head = found[0][: found.start("bare") - found.start()]
    if _PASSWORD.search(head):
        return not value.isalpha() or len(value) >= 4
    if "=" in head:
        return not _NAME.fullmatch(value)
    return len(value) >= 6 and (_has_digit(value) or (value.isalpha() and not value.islower()))


#: Forms with a name or a mark before them.
ANCHORED: tuple[Rule, ...] = (
    Named(re.compile(rf"(?i){_WORD}[\w\-]{{0,24}}?{_IS}{_VALUE}"), anchors=(*_WORDS, "api key")),
    Named(
        re.compile(rf"(?<![A-Za-z0-9]){_ENV}{_IS}{_VALUE}"),
        anchors=_ENV_WORDS,
        exact=True,
        settings=True,
    ),
    Rule(
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\\+[rn]|\s|[A-Z][\w\-]+: \S+)*[A-Za-z0-9+/=]{20,})*)",
            re.DOTALL,
        ),
        anchors=("private key",),
    ),
    Rule(
        re.compile(r"PuTTY-User-Key-File-\d.*?Private-MAC: \w+", re.DOTALL), anchors=("putty-user-key-file",)
    ),
    Rule(re.compile(r"\b\d{8,10}:AA[\w\-]{32,}"), anchors=(":aa",)),
    Rule(
        re.compile(r"(?i)\b(?:bearer|token)\s+(?P<s>[\w.~+/\-]{8,}=*)"),
        _has_digit,
        anchors=("bearer", "token "),
    ),
    Rule(re.compile(r"(?i)\bbearer\s+(?P<s>[\w.~+/\-]{20,}=*)"), anchors=("bearer",)),
    Rule(re.compile(r"(?i)\bbasic\s+(?P<s>[A-Za-z0-9+/_\-]{6,}={0,2})"), _is_basic, anchors=("basic ",)),
    Rule(re.compile(r"://(?P<s>[^\s/?#\"'<>@:\\]*:[^\s/\"'<>\\]*)@"), anchors=("://",)),
    Rule(re.compile(r"://(?P<s>[^\s/?#\"'<>@:\\]{6,})@"), anchors=("://",)),
    Rule(
        re.compile(
            r"(?i)[?&;#](?:amp;)?(?:[\w.\-]*(?:key|token|secret|credential|signature|password|passwd|pass|pwd)"
            r"|sig|sas|auth|code|sid|session)=(?P<s>[^\s&#\"'<>\\]{4,})",
        ),
        anchors=(
            *("key=", "token=", "sig=", "signature=", "secret=", "code=", "auth=", "credential="),
            *("pass=", "passwd=", "password=", "pwd=", "sas=", "sid=", "session="),
        ),
    ),
    Rule(
        re.compile(r"(?<!\S)(?:-u|--user)[ =]+\\*[\"']?(?P<s>[^\s:\"']+:[^\s\"'\\]+)"),
        anchors=("-u ", "--user"),
    ),
    Rule(
        re.compile(
            r"(?i)\b(?:password|passphrase|token|key|secret)\s+(?:is|was)\s*:?\s*[\"'`]?(?P<s>[^\s\"'`,;]{6,})"
        ),
        _has_digit,
        anchors=tuple(
            f"{name} {verb}"
            for name in ("word", "phrase", "token", "key", "secret")
            for verb in ("is", "was")
        ),
    ),
    Rule(
        re.compile(
            r"--(?:[\w\-]*(?:password|token|secret|(?:api|access|auth|private|account)-?key))[ =]+"
            r"[\"']?(?P<s>[^\s\"'\\]{4,})"
        ),
        _is_argument,
        anchors=("--",),
    ),
    Rule(
        re.compile(
            r"(?i)(?<!\w)(?:proxy-authorization|authorization|set-cookie2?|cookie|x-api-key|api-key|x-auth-token"
            r"|x-auth-key|private-token|job-token|x-amz-security-token|x-goog-api-key"
            r"|ocp-apim-subscription-key)\\*[\"']?\s*[:=]\s*\[?\\*[\"']?(?P<s>[^\"'\r\n\\\]]{4,})"
        ),
        anchors=(
            *("authorization", "cookie", "api-key", "x-auth", "private-token", "job-token"),
            *("x-amz-sec", "x-goog-api", "ocp-apim"),
        ),
    ),
    Rule(
        re.compile(
            r"(?i)[\w.\-]+=(?P<s>[^;\s\"'\\]{6,})"
            r"(?=;\s*(?:path|domain|httponly|secure|samesite|expires|max-age))"
        ),
        anchors=("path=/", "httponly", "samesite", "max-age", "; secure", "; expires"),
    ),
    Rule(
        re.compile(
            r"(?i)\b(?:__host-|__secure-)?(?:[\w.\-]*session(?:_?id)?|\w*sessid|connect\.sid|sid|csrftoken"
            r"|xsrf-token|_auth(?:token)?)=(?P<s>[^;\s\"'\\&]{8,})"
        ),
        _has_digit,
        anchors=("session=", "sessionid=", "session_id=", "sessid=", "sid=", "token=", "_auth="),
    ),
    Rule(
        re.compile(r"(?i)aws.{0,40}?[\"'\s:=]+(?P<s>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
        _is_aws_secret,
        anchors=("aws",),
    ),
)

# Names of fields

_FIELD = re.compile(rf"(?i){_WORD}s?(?:[-_]?(?:\d+|hash|value|confirm\w*|old|new))?$")
_ENV_FIELD = re.compile(rf"{_ENV}$")
_WHOLE_FIELDS = frozenset(
    (
        *("authorization", "proxy-authorization", "cookie", "cookies", "set-cookie", "set-cookie2"),
        *("x-api-key", "x-goog-api-key", "x-auth-token", "x-amz-security-token", "ocp-apim-subscription-key"),
        *("jwt", "secrets", "_authtoken", "_auth"),
    )
)
#: Fields that name a person, an organisation or a request: no secrets, but nothing to be recorded.
IDENTITY = frozenset(
    (
        *("user_id", "user", "safety_identifier", "organization", "organisation", "organization_id"),
        *("organisation_id", "org_id", "account", "account_id", "account_uuid", "workspace_id", "project_id"),
        *("request_id", "request-id", "x-request-id", "session_id", "device_id"),
    )
)
#: Values that name one, in texts.
IDENTITIES = Rule(
    re.compile(r"\b(?:org|req|acct|user)[-_](?=[a-z]*[A-Z0-9])[A-Za-z0-9]{12,}"),
    anchors=("org-", "org_", "req-", "req_", "acct-", "acct_", "user-", "user_"),
)


#: What stands in the lower-case text of a value that has a field of such a name.
FIELD_ANCHORS = ('"jwt":', *(f'"{name}":' for name in sorted(IDENTITY)))


@lru_cache(maxsize=4096)
def is_secret_field(name: str) -> bool:
    """Whether a field of this name holds a secret."""
    lower = name.lower()
    return lower in _WHOLE_FIELDS or _FIELD.search(name) is not None or _ENV_FIELD.match(name) is not None
