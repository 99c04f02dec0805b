"""What a person wrote in a request, sentence by sentence.

It leaves out the code, logs, URLs and paths that were pasted into it.
"""

from __future__ import annotations

import re
from typing import Final

# More are not a request; the limit keeps the time in proportion to the length.
_MAX_SENTENCES = 300

HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
HAN_RUN: Final = re.compile(f"[{HAN}]+")
# Signs that combine with a letter, which Python does not count among the letters: those of India and South-East Asia,
# and accents.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u1000-\u1049\u1780-\u17d3"
_LETTER = rf"(?:[^\W{HAN}]|[{_MARKS}])"
TOKEN: Final = re.compile(rf"[{HAN}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
_CHUNK = re.compile(rf"[^\s{HAN}，。、；：！？（）“”]+")

_ADDRESS_SIGN = re.compile(r"[/\\]|\.\w")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_MACHINE_LINE = re.compile(
    r"""\s*(?:Traceback|File\ "|at\ [\w$.<>]+\(|goroutine\ \d|panic:|\[signal|HTTP/\d|\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\d+\.\d+s\s
    |[\w.]{0,120}(?:Error|Exception)\b\S{0,80}:\s|FAILED\ |PASSED\ |error\[|-->|[=\-*_~\#]{4}|[+~$]\ |>>>\ )""",
    re.VERBOSE,
)
_BULLET = re.compile(r"\s*(?:\d{1,3}[.)、]|[-*•]|[(（]\d{1,3}[)）])\s*")
_LABEL = re.compile(rf"[{HAN}]{{1,4}}[：:](?=.)|[a-z]+(?: list)?:\s+(?=\S)")
_FILE = re.compile(r"[\w-]+\.[A-Za-z]{1,8}\d?[.,;:!?)\]]*")
_SENTENCE_END = re.compile(r"(?<=[.!?;؟])\s+|(?<=[。！？；])|\n+")
CLAUSE_END: Final = re.compile(r"[,，、：:؛،]|\s[-–—]\s")


def prose_of(request: str) -> str:
    """Return ``request`` without code, logs, URLs and paths; unchanged if nothing would be left."""
    lines: list[str] = []
    fenced = False
    for line in request.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not _MACHINE_LINE.match(line):
            if _ADDRESS_SIGN.search(line):
                line = _CHUNK.sub(_without_address, line)
            if not _is_mostly_signs(line):
                lines.append(line)
    prose = "\n".join(lines)
    return prose if TOKEN.search(prose) else request


def _is_mostly_signs(line: str) -> bool:
    """Tell a line of code, data or a table from one a person wrote."""
    letters = sum(map(str.isalpha, line))
    return len(line) - letters - line.count(" ") > 0.3 * letters and not _BULLET.match(line)


def _without_address(match: re.Match[str]) -> str:
    """Return a space for a URL, a path or a file, else the chunk as words."""
    chunk = match[0]
    if "://" in chunk or chunk.startswith(("www.", "/", "./", "../", "~/")) or chunk.count("/") > 1 or "\\" in chunk:
        return " "
    return " " if _FILE.fullmatch(chunk) and chunk.count(".") == 1 and chunk[-1] not in ".!?" else chunk.replace("/", " ")


def sentences_of(prose: str) -> list[str]:
    """Return the sentences and list items of ``prose`` without their bullets and labels, at most ``_MAX_SENTENCES``."""
    sentences: list[str] = []
    pieces = _SENTENCE_END.split(prose)
    if len(pieces) > _MAX_SENTENCES:  # a long paste: the request is before it or behind it
        pieces = pieces[: _MAX_SENTENCES // 2] + pieces[-_MAX_SENTENCES // 2 :]
    for piece in pieces:
        start = bullet.end() if (bullet := _BULLET.match(piece)) else 0
        # Behind a bullet a label is a field's name; elsewhere it is the subject: "Billing: how do we round?"
        start = label.end() if bullet and (label := _LABEL.match(piece, start)) else start
        if sentence := piece[start:].strip():
            sentences.append(sentence)
    return sentences
