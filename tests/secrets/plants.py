"""Secrets of many kinds, none of them real: made here, so that no text of this project looks like a leak."""

from __future__ import annotations

import base64
import json
import random
import string
from typing import NamedTuple

_LETTERS = string.ascii_letters + string.digits
_made = random.Random(17)


def made(length: int, alphabet: str = _LETTERS) -> str:
    """Letters and digits, with at least one of each kind that the alphabet has."""
    while True:
        text = "".join(_made.choice(alphabet) for _ in range(length))
        kinds = (string.ascii_uppercase, string.ascii_lowercase, string.digits)
        if all(
            any(c in kind for c in text) for kind in kinds if length > 8 and any(c in kind for c in alphabet)
        ):
            return text


HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + string.digits


class Plant(NamedTuple):
    """A text with a secret in it, and the part that must be found nowhere."""

    text: str
    secret: str


def alone(secret: str) -> Plant:
    return Plant(secret, secret)


def in_(before: str, secret: str, after: str = "") -> Plant:
    return Plant(f"{before}{secret}{after}", secret)


def _base64(text: str) -> Plant:
    packed = base64.b64encode(text.encode()).decode()
    return Plant(f"echo {packed} | base64 -d", packed)


def _jwt() -> str:
    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256'})}.{part({'sub': '123', 'n': 1})}.{made(43)}"


def _pem(kind: str) -> str:
    lines = "\n".join(made(64, _LETTERS + "+/") for _ in range(3))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


_AWS_ID, _AWS_SECRET = "AKIA" + made(16, CAPITALS), made(18) + "/" + made(12) + "+" + made(8)
_ANTHROPIC = "sk-ant-" + "api03-" + made(80, _LETTERS + "_-") + "AA"
_GITHUB = "ghp_" + made(36)

PLANTS: dict[str, Plant] = {
    # Model providers
    "anthropic": alone(_ANTHROPIC),
    "anthropic admin": alone("sk-ant-" + "admin01-" + made(60)),
    "anthropic oauth": alone("sk-ant-" + "oat01-" + made(60)),
    "openai": alone("sk-" + made(48)),
    "openai project": alone("sk-proj-" + made(74, _LETTERS + "_-") + "T3Bl"),
    "openai service account": alone("sk-svcacct-" + made(60)),
    "openai admin": alone("sk-admin-" + made(60)),
    "openrouter": alone("sk-or-v1-" + made(64, HEX)),
    "google": alone("AIza" + made(35)),
    "google gemini": alone("AQ." + "Ab8" + made(44)),
    "google oauth": alone("ya29." + made(60)),
    "google client secret": alone("GOCSPX-" + made(28)),
    "hugging face": alone("hf_" + made(34)),
    "groq": alone("gsk_" + made(52)),
    "xai": alone("xai-" + made(80)),
    "perplexity": alone("pplx-" + made(48)),
    "replicate": alone("r8_" + made(37)),
    "nvidia": alone("nvapi-" + made(64)),
    # Code and packages
    "github personal": alone(_GITHUB),
    "github oauth": alone("gho_" + made(36)),
    "github user": alone("ghu_" + made(36)),
    "github server": alone("ghs_" + made(36)),
    "github refresh": alone("ghr_" + made(76)),
    "github fine-grained": alone("github_pat_" + made(22) + "_" + made(59)),
    "gitlab personal": alone("glpat-" + made(20)),
    "gitlab runner": alone("glrt-" + made(20)),
    "gitlab deploy": alone("gldt-" + made(20)),
    "npm": alone("npm_" + made(36)),
    "npm file": in_("//registry.npmjs.example/:_authToken=", made(36)),
    "pypi": alone("pypi-" + "AgEIcHlwaS5vcmc" + made(70)),
    "docker": alone("dckr_pat_" + made(27)),
    # Services
    "slack bot": alone("xoxb-" + made(12, string.digits) + "-" + made(24)),
    "slack user": alone("xoxp-" + made(12, string.digits) + "-" + made(32)),
    "slack app": alone("xapp-1-" + made(10, CAPITALS) + "-" + made(13, string.digits) + "-" + made(64, HEX)),
    "slack webhook": Plant(
        "https://hooks.slack.com/services/" + (hook := "T" + made(8, CAPITALS) + "/B0/" + made(24)), hook
    ),
    "stripe live": alone("sk_" + "live_" + made(24)),
    "stripe restricted": alone("rk_" + "live_" + made(24)),
    "stripe test": alone("sk_" + "test_" + made(24)),
    "stripe webhook": alone("whsec_" + made(32)),
    "aws id": alone(_AWS_ID),
    "aws temporary id": alone("ASIA" + made(16, CAPITALS)),
    "aws secret": alone(_AWS_SECRET),
    "aws secret, named": in_("aws_secret_access_key = ", made(40)),
    "aws secret, in the environment": in_("AWS_SECRET_ACCESS_KEY=", made(40)),
    "azure storage": in_("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", made(86) + "=="),
    "azure client": alone(made(3) + "8Q~" + made(34)),
    "azure openai": in_('"api-key": "', made(32, HEX), '"'),
    "azure signature": in_("https://a.blob.core.windows.net/c?sv=2026&sig=", made(40) + "%3D"),
    "telegram": alone(made(9, "123456789") + ":AA" + made(33)),
    "sendgrid": alone("SG." + made(22) + "." + made(43)),
    "twilio": alone("SK" + made(32, HEX)),
    "vault": alone("hvs." + made(90)),
    "digitalocean": alone("dop_v1_" + made(64, HEX)),
    # Forms
    "jwt": alone(_jwt()),
    "bearer": in_("Authorization: Bearer ", made(30)),
    "bearer in words": in_("send it with Bearer ", made(24), " please"),
    "pem rsa": alone(_pem("RSA PRIVATE KEY")),
    "pem": alone(_pem("PRIVATE KEY")),
    "pem openssh": alone(_pem("OPENSSH PRIVATE KEY")),
    "pgp": alone(_pem("PGP PRIVATE KEY BLOCK")),
    "pem cut off": alone(_pem("EC PRIVATE KEY").rpartition("\n")[0]),
    "basic auth": in_("Authorization: Basic ", base64.b64encode(b"deploy:" + made(12).encode()).decode()),
    "basic auth in words": in_("-H 'x: Basic ", base64.b64encode(b"me:" + made(12).encode()).decode(), "'"),
    "curl user": in_("curl -u ", "deploy:" + made(12), " https://h.example"),
    "cookie": in_("Cookie: theme=dark; session=", made(32)),
    "set-cookie": in_("set-cookie: sid=", made(32), "; Path=/; HttpOnly"),
    "cookie without its header": in_("connect.sid=", made(32), "; Path=/; Secure"),
    "userinfo": in_("postgres://app:", made(12), "@db.example:5432/app"),
    "userinfo without a name": in_("redis://:", made(14), "@cache.example"),
    "userinfo alone": in_("https://", made(24), "@git.example/a.git"),
    "query": in_("https://h.example/v1?api_key=", made(20), "&page=2"),
    "query token": in_("wss://h.example/?access_token=", made(20)),
    "signed url": in_("https://b.example/k?X-Amz-Expires=60&X-Amz-Signature=", made(64, HEX)),
    "NAME_KEY=": in_("export DEPLOY_KEY=", made(20)),
    "NAME_TOKEN=": in_("CI_JOB_TOKEN='", made(20), "'"),
    "NAME_PASSWORD:": in_("POSTGRES_PASSWORD: ", made(10)),
    "password=": in_("user=me password=", made(10)),
    "password:": in_("login: me\npassword: ", "correct-horse-" + made(4)),
    "password with marks": in_('password = "', "p;& s{" + made(6) + ")w", '"'),
    "password in JSON": in_('{"user": "me", "password": "', made(10), '"}'),
    "password in JSON in JSON": in_(r"{\"user\": \"me\", \"password\": \"", made(10), r"\"}"),
    "password in JSON in JSON in JSON": in_(r"{\\\"password\\\": \\\"", made(10), r"\\\"}"),
    "password in YAML": in_("db:\n  passphrase: '", made(14), "'"),
    "client secret": in_("client_secret => '", made(24), "'"),
    "flag": in_("deploy --api-key ", made(20), " --dry-run"),
    "password is": in_("the password is ", made(10) + "7", "."),
    # Packed
    "base64 of a key": _base64(_ANTHROPIC),
    "base64 of a password": _base64("password=" + made(9)),
    "base64 of aws": _base64(f"{_AWS_ID}:{_AWS_SECRET}"),
    "base64 of a token": _base64("x:" + _GITHUB),
    "base64 of base64": _base64(base64.b64encode(_GITHUB.encode()).decode()),
}
