"""Secrets in texts and values: each kind goes, wherever it stands; ordinary words stay."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from evalkit.secrets.cleaning import clean_text, clean_value, keep_secret
from evalkit.secrets.urls import clean_url, credentials_of
from tests.secrets.plants import PLANTS, Plant

ROOT = Path(__file__).parents[2]


def test_there_are_many_kinds() -> None:
    assert len(PLANTS) >= 60
    assert all(secret in text for text, secret in PLANTS.values())


@pytest.mark.parametrize("kind", PLANTS)
class TestEachKind:
    def test_in_words(self, kind: str) -> None:
        text, secret = PLANTS[kind]
        cleaned = clean_text(f"It says:\n{text}\nand no more.")
        assert secret not in cleaned
        assert cleaned.startswith("It says:\n")
        assert cleaned.endswith("\nand no more.")
        assert clean_text(cleaned) == cleaned

    def test_in_values_and_in_json_in_strings(self, kind: str) -> None:
        text, secret = PLANTS[kind]
        deep = {"a": [text, {"b": json.dumps({"c": text}), "d": json.dumps(json.dumps([text]))}]}
        assert not_in(clean_value(deep), secret)
        assert secret.splitlines()[0] not in clean_text(json.dumps(deep))

    def test_as_a_name(self, kind: str) -> None:
        text, secret = PLANTS[kind]
        assert not_in(clean_value({text: 1}), secret)

    def test_in_base64(self, kind: str) -> None:
        text, _ = PLANTS[kind]
        for before in ("", "a", "ab"):
            packed = base64.b64encode(f"{before} {text}".encode()).decode()
            assert packed not in clean_text(f"data:text/plain;base64,{packed}")
            wrapped = base64.encodebytes(f"{before} {text} {'.' * 80}".encode()).decode()
            assert wrapped.splitlines()[0] not in clean_text(wrapped)


def not_in(value: object, secret: str) -> bool:
    text = json.dumps(value)
    return secret not in text and json.dumps(secret)[1:-1] not in text


@pytest.mark.parametrize(
    "text",
    [
        "Ask Bearer of news; the user wrote sk-8.",
        "The task-list has sk-or-two-more things, a user_message_of_the_day and a key-value database.",
        "The token is refreshed and the secret is out: nobody knows the password to success.",
        "max_tokens: 4096, input_tokens=3, MAX_TOKENS=100, idempotency_key: item-1",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904 of https://example.com/a/b.git?page=2#top",
        "http://127.0.0.1:8080/e/abc/v1/messages and me@example.com",
        '{"type": "object", "properties": {"password": {"type": "string"}}}',
        "export API_KEY=${API_KEY} PASSWORD=$PASSWORD",
        "api_key=self.api_key, secrets: tuple[str, ...]",
        "/usr/lib/python3/dist-packages/Crypto2/Util/number.py",
        "toolu_01A09q90qw90lq917835lq9 msg_013Zva2CMHLNnXjNJJKqJ2EF req-1",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize("folder", ["scenarios", "cassettes", "docs", "reports/example"])
def test_nothing_in_what_is_shipped_looks_like_a_secret(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*")):
        if file.suffix in (".yaml", ".json", ".md", ".csv", ".html", ".txt"):
            text = file.read_text(encoding="utf-8")
            assert clean_text(text) == text, file


def test_a_known_secret_goes_however_it_is_written() -> None:
    for text in (
        'my "Žluť" word',
        'my \\"Žluť\\" word',
        "q=%22%C5%BDlu%C5%A5%22",
        'my \\"\\u017dlu\\u0165\\"',
    ):
        assert "lu" not in clean_text(text, ('"Žluť"',))
    packed = base64.b64encode(b"x hunter-two y").decode()
    assert packed not in clean_text(packed, ("hunter-two",))


def test_a_kept_secret_is_never_written_again() -> None:
    keep_secret("an-odd-value-of-a-test")
    assert "an-odd-value" not in clean_text("see an-odd-value-of-a-test here")


def test_urls_are_shown_without_what_is_secret_in_them() -> None:
    assert clean_url("https://me:pw@h.example:1/v1?api_key=abcd1234&x=1") == (
        "https://h.example:1/v1?api_key=REDACTED&x=1"
    )
    assert credentials_of("https://me:pw@h.example") == ("me:pw", "pw")
    assert credentials_of("https://h.example/a@b") == ()


def test_what_a_set_of_rules_that_many_keep_finds_is_found() -> None:
    """``detect-secrets`` finds nothing in what was cleaned of the plants that it knows."""
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import transient_settings

    plugins = [
        {"name": name}
        for name in (
            *("AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "GitHubTokenDetector"),
            *("GitLabTokenDetector", "JwtTokenDetector", "KeywordDetector", "NpmDetector", "OpenAIDetector"),
            *("PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector"),
            *("StripeDetector", "TelegramBotTokenDetector", "TwilioKeyDetector", "DiscordBotTokenDetector"),
        )
    ]

    def found(plant: Plant, *, cleaned: bool) -> list[str]:
        text = clean_text(plant.text) if cleaned else plant.text
        secrets = [secret for line in text.splitlines() for secret in scan_line(line)]
        return [s.secret_value or "" for s in secrets if "REDACTED" not in (s.secret_value or "")]

    with transient_settings({"plugins_used": plugins}):
        known = {kind for kind, plant in PLANTS.items() if found(plant, cleaned=False)}
        left = {kind: found(PLANTS[kind], cleaned=True) for kind in known}
    assert len(known) >= 20
    assert {kind: secrets for kind, secrets in left.items() if secrets} == {}
