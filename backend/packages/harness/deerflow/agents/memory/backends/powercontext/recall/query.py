"""From a request to the few words worth searching.

PowerContext's default store matches whole words, without stemming, and wants a quarter of a query's distinct words in a
memory: two of three to eight, three of nine. A whole request (greeting, log, conditions) is diluted below that. So we
look for what is asked, take its content words, and stop at eight.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from ..models import MAX_QUERY_CHARACTERS
from .words import CHINESE_CUTS, FUNCTION_WORDS, TASK_VERBS

MAX_WORDS: Final = 8
"""Above it the server wants a third hit (1.4.1 and 1.2.0)."""

# The first sentence of a request must not fill the query alone when the request has more of them.
_MAX_WORDS_OF_A_SENTENCE = 4

# More are not a request; the limit keeps the time in proportion to the length.
_MAX_SENTENCES = 300

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HAN_RUN = re.compile(f"[{_HAN}]+")
# Signs that combine with a letter, which Python does not count among the letters: those of India and South-East Asia, and accents.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u1000-\u1049\u1780-\u17d3"
_LETTER = rf"(?:[^\W{_HAN}]|[{_MARKS}])"
_TOKEN = re.compile(rf"[{_HAN}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"[\d_]+(?:st|nd|rd|th|am|pm|min|ms|mm|cm|km|kg|kb|mb|gb|px|pt)?")
_CHUNK = re.compile(rf"[^\s{_HAN}，。、；：！？（）“”]+")

_ADDRESS_SIGN = re.compile(r"[/\\]|\.\w")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_MACHINE_LINE = re.compile(
    r"""\s*(?:Traceback|File\ "|at\ [\w$.<>]+\(|goroutine\ \d|panic:|\[signal|HTTP/\d|\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\d+\.\d+s\s
    |[\w.]{0,120}(?:Error|Exception)\b\S{0,80}:\s|FAILED\ |PASSED\ |error\[|-->|[=\-*_~\#]{4}|[+~$]\ |>>>\ )""",
    re.VERBOSE,
)
_BULLET = re.compile(r"\s*(?:\d{1,3}[.)、]|[-*•]|[(（]\d{1,3}[)）])\s*")
_LABEL = re.compile(rf"[{_HAN}]{{1,4}}[：:](?=.)|[a-z]+(?: list)?:\s+(?=\S)")
_FILE = re.compile(r"[\w-]+\.[A-Za-z]{1,8}\d?[.,;:!?)\]]*")
_SENTENCE_END = re.compile(r"(?<=[.!?;؟])\s+|(?<=[。！？；])|\n+")
_CLAUSE_END = re.compile(r"[,，、：:؛،]|\s[-–—]\s")

_CONSTRAINT = re.compile(
    r"""(?:(?:and|but|please|also)\ )?
    (?:do\ not|don['’]t|never|avoid|no|not|maximum|at\ most|mention|cite|be\ (?:brief|concise|short)|keep\ (?:it|the|them|this)
    |only\ (?:use|return|output|list|show|give|answer|change|edit|write|print|code|the)|(?:use|return|output)\ only
    |(?:answer|reply|respond)\ (?:in|with|only|briefly|concisely)|stop\ (?:after|before)|(?:end|close)\ with)\b
    |(?:请|并且?|也|而且|同时)?(?:不要|不得|不可|不用|不超|不需要|勿|无需|禁止|避免|别[再把用写改加动做给]|只[要需用能给写返输保改做看]|仅[用限输返]
    |(?:全文|字数|篇幅)[不控约在]|控制在|直接给出|语言[要简朴口])""",
    re.VERBOSE,
)
# Behind the first clause of a sentence; in the first it may be the request itself: "Show the schedule", "Without VAT, how much is it?"
_LATER_CONSTRAINT = re.compile(r"(?:(?:and|but|please|also) )?(?:only|just|without|show (?:the|your)|(?:start|begin) (?:with|by))\b")
_ASKING = re.compile(r"[?؟]|\b(?:please|(?:could|can|would|will) you|help me|i need|i want|i(?:['’]d| would) like|let['’]s)\b")
_ASKING_IN_CHINESE = re.compile(
    r"""[？请帮]|吗$|希望[你您]|需要[你您]|我需要|我想|能否|能不能|可否|是否|^.{0,6}(?:如何|怎么|怎样|为什么|为何|什么|哪|多少|几)
    |(?:什么|哪里|哪些|哪个|多少|怎么样|怎么办)$""",
    re.VERBOSE,
)
_LEAD_IN = re.compile(r"(?:(?:then|also|and|next|finally|first|second|third|lastly|now|afterwards|so|ok|okay|hi|hello|hey|just|but)\b[\s,:]*){1,3}")
_BEFORE_A_VERB = frozenset(["please", "can", "could", "would", "will", "you", "help", "me", "us", "i", "need", "want", "to", "and", "or", "then", "also", "now", "just"])
_FIRST_WORD = re.compile(r"\W*([a-z]+)")
_CHINESE_CUT = re.compile("[一二三四五六七八九十百千两几多]+[个位份条篇张封次名家款台项件套种页]|" + "|".join(sorted(CHINESE_CUTS, key=len, reverse=True)))


def focused_query(request: str) -> str:
    """Return up to ``MAX_WORDS`` words of ``request``, or ``request`` itself if it has no word worth searching.

    Code, logs, URLs and paths are left out, and so are conditions on the work. What is asked comes first, the last
    question before the earlier ones, then what stands near it. With three to seven words, singular and plural forms
    fill the free places: they cost nothing, the server wants two hits all the same. With one or two it wants a single
    hit, and nothing is added.

    Args:
        request: The user's request in any language; what is behind ``MAX_QUERY_CHARACTERS`` is not looked at. Takes
            time in proportion to its length.
    """
    request = unicodedata.normalize("NFC", request.lstrip()[:MAX_QUERY_CHARACTERS])
    sentences = _sentences(_prose(request).lower())
    wanted = [rest for sentence in sentences if (rest := _without_constraints(sentence))]
    return " ".join(_words_of(wanted) or _words_of(sentences)) or request


def _words_of(sentences: list[str]) -> list[str]:
    """Return the words to search for: those of the questions first, the last question's before the earlier ones'."""
    asking = [position for position, sentence in enumerate(sentences) if _asks(sentence)][::-1]
    others = sorted(set(range(len(sentences))).difference(asking))
    if asking:
        others.sort(key=lambda position: abs(position - asking[0]))

    query = _Query()
    asked = [list(_content_words(sentences[position])) for position in asking]
    query.take(asked, _MAX_WORDS_OF_A_SENTENCE)
    query.take(asked, MAX_WORDS)
    query.add_variants()
    query.take((_content_words(sentences[position]) for position in others), MAX_WORDS)
    query.add_variants()
    return query.words


class _Query:
    """The words so far, and how many the server will count: of Chinese, one for two characters."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._seen: set[str] = set()
        self._count = 0

    def take(self, sentences: Iterable[Iterable[tuple[str, int]]], limit: int) -> None:
        """Take the content words of ``sentences``, up to ``limit`` from each, while there is room."""
        for words in sentences:
            if self._count >= MAX_WORDS:
                return
            taken = 0
            for word, count in words:
                if word in self._seen or (self.words and (self._count + count > MAX_WORDS or taken + count > limit)):
                    continue
                taken += count
                self._add(word, count)

    def add_variants(self) -> None:
        """Fill the free places with other forms of the words, if that cannot raise the number of hits the server wants."""
        if self._count >= 3:
            for variant in [_other_number(word) for word in self.words]:
                if self._count < MAX_WORDS and variant and variant not in self._seen:
                    self._add(variant, 1)

    def _add(self, word: str, count: int) -> None:
        self.words.append(word)
        self._seen.add(word)
        self._count += count


def _prose(request: str) -> str:
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
    return prose if _TOKEN.search(prose) else request


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


def _sentences(prose: str) -> list[str]:
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


def _without_constraints(sentence: str) -> str:
    """Return ``sentence`` without the clauses that only say how the work is to be done."""
    clauses = [clause.strip() for clause in _CLAUSE_END.split(sentence)]
    kept = [clause for position, clause in enumerate(clauses) if clause and not _CONSTRAINT.match(clause) and not (position and _LATER_CONSTRAINT.match(clause))]
    return sentence if len(kept) == len(clauses) else ", ".join(kept)


def _asks(sentence: str) -> bool:
    if _ASKING.search(sentence) or (not sentence.isascii() and _ASKING_IN_CHINESE.search(sentence.rstrip("。；;. "))):
        return True
    lead_in = _LEAD_IN.match(sentence)
    first = _FIRST_WORD.match(sentence, lead_in.end() if lead_in else 0)
    return first is not None and first[1] in TASK_VERBS


def _content_words(sentence: str) -> Iterator[tuple[str, int]]:
    """Yield each content word of ``sentence``, and how many words the server will make of it."""
    for clause in _CLAUSE_END.split(sentence):
        opening = True
        for token in _TOKEN.findall(clause):
            if token in FUNCTION_WORDS:
                opening = token in _BEFORE_A_VERB
                continue
            if _HAN_RUN.match(token):
                yield from ((piece, (len(piece) + 1) // 2) for piece in _CHINESE_CUT.split(token) if len(piece) > 1)
                continue
            word = token.replace("’", "'").removesuffix("'s")
            opens, opening = opening, False
            if word in FUNCTION_WORDS or (opens and word in TASK_VERBS) or len(word) < 2 or _NUMBER.fullmatch(word):
                continue
            yield word, 1 if word.isascii() else max(1, len(_WORD.findall(word)))


def _other_number(word: str) -> str | None:
    """Return the plural of an English singular, the singular of a plural, or ``None`` where neither is likely."""
    if not (word.isascii() and word.isalpha()) or len(word) < 3 or word.endswith(("ed", "ing", "ly", "ous", "ful", "ss", "us", "is", "news", "series")):
        return None
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if word.endswith("s"):
        return word[:-1]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "x")) else "s")
