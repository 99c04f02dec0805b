"""What looks like a credential, and what only speaks of one. Examples are put together here, so that no scanner takes them for real."""

from __future__ import annotations

import random
import string

import pytest

from deerflow.agents.memory.backends.powercontext.capture.credentials import PATTERNS, has_credential, looks_random

EXAMPLES = {
    "private key": ["-----BEGIN " + "PRIVATE KEY-----", "x -----BEGIN OPENSSH " + "PRIVATE KEY-----", "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----"],
    "AWS key": ["AKIA" + "IOSFODNN7EXAMPLE", "key ASIA" + "IOSFODNN7EXAMPLE."],
    "GitHub token": ["ghp_" + "a1B2" * 9, "ghs_" + "a1B2" * 9, "github_pat_" + "1A_b" * 8],
    "GitLab token": ["glpat-" + "a1B2-" * 4],
    "Slack token": ["xoxb-" + "123456789012-abcdef", "https://hooks.slack.com/services/" + "T000/B000/XXXX"],
    "API key sk-": ["sk-" + "a1B2" * 6, "sk-ant-" + "api03-a1B2c3", "sk_live_" + "a1B2" * 6],
    "Google key": ["AIza" + "Sy0" * 11 + "ab", "ya29." + "a0-B" * 6],
    "package registry token": ["npm_" + "a1B2" * 9, "pypi-" + "AgEI" * 15],
    "Hugging Face token": ["hf_" + "aBcD" * 9],
    "Chinese cloud key": ["LTAI" + "5tAbCdEfGhIj", "AKID" + "a1B2" * 8, "AKLT" + "a1B2" * 6],
    "SendGrid key": ["SG." + "a1B2" * 5 + "." + "c3D4" * 5],
    "DigitalOcean token": ["dop_v1_" + "0a1b" * 16],
    "Telegram bot token": ["123456789:" + "AA" + "b1C2" * 8],
    "JSON web token": ["eyJ" + "hbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"],
    "authorization header": ["Authorization: Bearer " + "abc123def456ghi", "basic " + "dXNlcjpwYXNzd29yZDE="],
    "URL with a password": ["postgresql://app:" + "s3cr3t@db.internal/orders", "https://user:" + "p@example.com", "redis://:" + "hunter2@cache:6379"],
    "named secret": [
        "password: correcthorse",
        "my password is hunter2",
        "The password of the scanner is hunter22.",
        "the API key for our staging cluster in Utrecht: live-7",
        "The PASSWORD=swordfish please",
        "DB_PASSWORD='tr0ub4dor'",
        '"api_key": "live-1234"',
        "API token: zx81",
        "client secret = abcd",
        "Mein Passwort lautet Sommer24",
        "mot de passe: soleil",
        "密码是 abc123",
        "密码：tianqi",
        "パスワードは sakura1",
        "пароль: lето2024",
        "recovery phrase: ability above absent",
    ],
    "one-time code": ["The verification code is 482913", "OTP: 1234", "PIN is 9876", "验证码是482913", "验证码 482913"],
}

HARMLESS = [
    "How do I reset my password?",
    "The password is stored in the vault, the token is refreshed daily.",
    "The password is required; passwords are hashed with argon2.",
    "password: str",
    "The password for the wifi is on the fridge.",
    "The passwords of our users are hashed, and access keys for the cluster are rotated.",
    "api_key: str | None = None",
    "api_key = os.environ['KEY']",
    "token = tokenizer.next()",
    "Our API key is rotated every month.",
    "password=<your password>",
    "PASSWORD=****",
    "密码是必填项吗？",
    "The secret is to use pytest.",
    "Use bearer tokens, basic authentication is not allowed.",
    "The commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke it.",
    "image sha256:3f8a9c2f1b6d4e5a7c8b9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c",
    "id 0b6a2d0e-9d7f-4c55-8f0e-5d1b6a2d0e9d",
    "https://example.com/a/very/long/path/with/Many/Segments/and/2024/report-final-v2.html",
    "See http://localhost:8080/orders@latest",
    "backend/packages/harness/deerflow/agents/memory/backends/README.md",
    "The login is at 2024 sharp, the pin board is full.",
    "test_the_words_that_matter_are_searched_for_in_2_Languages_and_more",
    "MemoryManagerFactoryBuilderForPowerContext2Settings",
    "sk-learn is a library, AKIA is an airport code, hf_hub is a module.",
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in EXAMPLES.items() for text in texts])
def test_each_form_of_credential_is_found_by_its_own_pattern(name: str, text: str) -> None:
    [(hints, pattern)] = [(hints, pattern) for known, hints, pattern in PATTERNS if known == name]
    assert pattern.search(text)
    assert not hints or any(hint in text.lower() for hint in hints)
    assert has_credential(f"Please note: {text} and go on.")


def test_every_pattern_has_an_example() -> None:
    assert {name for name, _, _ in PATTERNS} == set(EXAMPLES)


@pytest.mark.parametrize("text", HARMLESS)
def test_talk_about_credentials_is_none(text: str) -> None:
    assert not has_credential(text)


def test_a_credential_is_found_wherever_in_a_long_text_it_is() -> None:
    for place in (0, 15_390, 15_400, 15_990, 16_000, 31_000, 99_000):
        assert has_credential("word " * (place // 5) + " ghp_" + "a1B2" * 9 + " word" * 1000)


def test_three_of_four_random_keys_are_recognized_without_a_name() -> None:
    choice = random.Random(7)
    keys = ["".join(choice.choices(string.ascii_letters + string.digits, k=40)) for _ in range(400)]
    assert sum(has_credential(f"use {key} there") for key in keys) >= 300


@pytest.mark.parametrize("token", ["a" * 40, "0123456789abcdef" * 3, "ABCDEF0123456789" * 3, "theQuickBrownFoxJumpsOver2LazyDogs"])
def test_what_is_made_of_words_or_hexadecimal_is_not_random(token: str) -> None:
    assert not looks_random(token)
