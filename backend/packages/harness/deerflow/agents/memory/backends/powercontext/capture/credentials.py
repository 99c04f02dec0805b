"""What looks like a credential. A text with one is left out whole: cutting it out would leave what stands around it.

The forms are those the issuers publish; each has a test. It is no search for personal data: DeerFlow's own redaction
is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Final

# Words that name a secret, before "is", ":" or "=".
_NAMES: Final = (
    r"pass[ _-]?(?:word|wd|phrase|code)|pwd|secret(?:[ _-]?key)?|credentials?|(?:auth|access|refresh|bearer|api|bot)[ _-]?token|api[ _-]?key|"
    r"(?:access|private|account|signing|encryption|licen[cs]e|client)[ _-]?(?:key|secret)|(?:seed|recovery)[ _-]?phrase|"
    r"passwort|kennwort|mot de passe|contraseña|senha|пароль|密码|密碼|口令|密钥|密鑰|助记词|令牌|パスワード|비밀번호"
)
_NAME_HINTS: Final = (
    "pass",
    "pwd",
    "secret",
    "credential",
    "token",
    "key",
    "phrase",
    "passwort",
    "kennwort",
    "contraseña",
    "senha",
    "пароль",
    "密",
    "口令",
    "助记词",
    "令牌",
    "パスワード",
    "비밀번호",
)
_ONE_TIME: Final = r"(?:\b(?:(?:verification|one[- ]time|security|login|2fa|otp) (?:code|pin)|otp|pin)\s*(?:is|[:=])|(?:验证码|驗證碼)\s*[是为為:：]?)\s*[0-9]{4,8}\b"
# What follows a name without being a secret: types, placeholders, and how people speak about passwords.
_HARMLESS: Final = (
    r"(?:str|string|text|bytes|int|integer|bool|boolean|char|varchar|none|null|nil|undefined|true|false|required|optional|hidden|empty|unknown|"
    r"invalid|wrong|weak|strong|long|short|too|not|now|also|only|always|never|still|very|in|on|at|by|for|from|to|of|with|and|or|but|if|as|"
    r"a|an|the|this|that|it|my|your|our|his|her|their|its|what|where|when|how|kept|lost|gone|set|here|there|sent|easy|hard|part|one|"
    r"policy|field|form|input|manager|reset|rotation|hash(?:es|ing)?|changeme|example|placeholder|redacted|n/?a|"
    r"[a-z]+(?:ed|ing)|self\.\S*|os\.\S*|process\.\S*|settings\.\S*|config\.\S*|env\.\S*|get\S*|[*•x.…_-]+)"
)
_END: Final = r"(?=[\s\"'`,;.!?。，；！？）)]|$)"


def _assigned() -> str:
    """Return the pattern of a named value.

    After ``=`` or ``:`` that is anything, after "is" what is no plain word about passwords.
    """
    value = r"(?P<quote>[\"'`]?)(?!" + _HARMLESS + _END + r")(?![\u3040-\u9fff\uac00-\ud7af])[^\s\"'`()\[\]{}<>$,;，。；]{4,}(?![(\[])"
    # "the password of the scanner is …"
    whose = r"(?:[ \t]+(?:of|for|to|on|at|in|from|von|für|de)(?:[ \t]+[\w.@/-]{1,40}){1,5}?)?"
    return rf"(?:{_NAMES})[\"'`]?{whose}[ \t]*(?:[:=：]+[ \t]*|(?:is|are|was|lautet|ist|est|es|это|是|为|為|は|を)[ \t]*[:：]?[ \t]*){value}"


# The name, what must be in the lower-cased text for it to be there at all ("" if nothing can be said), and the pattern.
PATTERNS: Final[tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]] = tuple(
    (name, hints, re.compile(pattern, flags))
    for name, hints, pattern, flags in (
        ("private key", ("private key",), r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----", 0),
        ("AWS key", ("akia", "asia"), r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])", 0),
        ("GitHub token", ("gh", "github_pat_"), r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{22,}", 0),
        ("GitLab token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}", 0),
        (
            "Slack token",
            ("xox", "hooks.slack.com"),
            r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/\S{10,}",
            0,
        ),
        ("API key sk-", ("sk-", "sk_", "rk_"), r"\bsk-[A-Za-z0-9_-]{16,}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", 0),
        ("Google key", ("aiza", "ya29."), r"\bAIza[A-Za-z0-9_-]{35}|\bya29\.[A-Za-z0-9_-]{20,}", 0),
        ("package registry token", ("npm_", "pypi-"), r"\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{50,}", 0),
        ("Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}", 0),
        (
            "Chinese cloud key",
            ("ltai", "akid", "aklt"),
            r"\b(?:LTAI[A-Za-z0-9]{12,26}|AKID[A-Za-z0-9]{28,36}|AKLT[A-Za-z0-9_-]{20,})(?![A-Za-z0-9])",
            0,
        ),
        ("SendGrid key", ("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", 0),
        ("DigitalOcean token", ("do",), r"\bdo[opr]_v1_[0-9a-f]{40,}", 0),
        ("Telegram bot token", (":aa",), r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}", 0),
        ("JSON web token", ("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", 0),
        (
            "authorization header",
            ("bearer", "basic"),
            r"\b(?:bearer|basic)\s+(?=[A-Za-z0-9+/=._~-]*[0-9])[A-Za-z0-9+/=._~-]{12,}",
            re.IGNORECASE,
        ),
        ("URL with a password", ("://",), r"[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:[^\s/@]{1,200}@", re.IGNORECASE),
        ("named secret", _NAME_HINTS, _assigned(), re.IGNORECASE),
        ("one-time code", ("code", "pin", "otp", "验证码", "驗證碼"), _ONE_TIME, re.IGNORECASE),
    )
)

_TOKEN = re.compile(r"(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9+/_-]{32,128}={0,2}(?![A-Za-z0-9+/_=.-])")
_WORDS = re.compile(r"[a-z]{6}|[A-Z]{6}|[0-9]{8}|/[a-z]+/|[A-Za-z0-9]*_[a-z]+_|(?:[A-Z][a-z]{2,}){3}")
_WINDOW: Final = 16_000
_OVERLAP: Final = 600


def has_credential(text: str) -> bool:
    """Tell whether something in ``text`` looks like a credential.

    The text is searched in windows that overlap by more than a credential is long, because Python's ``re`` gives no
    other thread a turn while it searches.
    """
    starts = range(0, max(1, len(text) - _OVERLAP), _WINDOW - _OVERLAP)
    return any(_has_credential(text[start : start + _WINDOW]) for start in starts)


def _has_credential(text: str) -> bool:
    lower = text.lower()
    for _, hints, pattern in PATTERNS:
        if (not hints or any(hint in lower for hint in hints)) and pattern.search(text):
            return True
    return any(looks_random(match[0]) for match in _TOKEN.finditer(text))


def looks_random(token: str) -> bool:
    """Tell whether ``token``, 32 characters or more without a space, is drawn at random rather than made of words.

    All of lower case, upper case and digits, at least 4.3 bits a character, and none of the runs that words, numbers
    and paths have. Digests in hexadecimal, which any talk about code is full of, are none.
    """
    if not all(any(map(kind, token)) for kind in (str.islower, str.isupper, str.isdigit)):
        return False
    counts = Counter(token)
    bits = -sum(count / len(token) * math.log2(count / len(token)) for count in counts.values())
    return bits >= 4.3 and _WORDS.search(token) is None
