"""Extractive summaries: sentences that hold the words the texts keep coming back to. Same texts, same summary."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue

CHARS_MAX: Final = 200_000
"""Of all texts together, each with the same share; more is not read, since the event loop waits for this."""
WORDS_MIN: Final = 4
WORDS_MAX: Final = 60
"""A sentence outside these bounds is a heading, a menu or a list: told only where there is nothing else."""

TEXTS: Final[JsonObject] = {
    "type": "array",
    "maxItems": 1_000,
    "items": {
        "type": ["string", "object", "null"],
        "properties": {"text": {"type": ["string", "null"]}},
        "required": ["text"],
    },
    "description": f"Texts, or results with a field `text`; nulls are ignored. {CHARS_MAX} characters are read.",
}

_BETWEEN: Final = re.compile(r"""(?<=[.!?…])\s+|(?<=[.!?…]["'”)\]])\s+|\n+""")
_WORD: Final = re.compile(r"\w{2,}")
_TELLS_NOTHING: Final = frozenset(
    _WORD.findall("""
    about after all also an and any are as at be been but by can could did do does for from had has have he her his
    how if in into is it its just may more most much no not of on one only or other our out over said she should so
    some such than that the their them then there these they this those to under up use was we were what when where
    which while who will with would you your
    aber als am auch auf aus bei bin bis das dem den der des die doch du ein eine einem einen einer er es für hat
    ich ihr im ist ja kann mit nach nicht noch nur oder sein sich sie sind so und uns vom von vor war wie wir wird zu
    zum zur
    """)
)


@record
class Sentence:
    """One sentence, where it came from and how much it tells."""

    source: int
    place: int
    text: str
    words: tuple[str, ...]


def summarize(texts: Sequence[JsonValue], sentences: int = 5) -> JsonValue:
    """The best `sentences` in reading order, as text, as Markdown, and where they came from."""
    found = list(_sentences(texts)) or list(_sentences(texts, whole=False))
    chosen = _choose(found, sentences)
    used = sorted({sentence.source for sentence in chosen})
    numbers = {source: number for number, source in enumerate(used, 1)}
    sources = [_source(index, texts[index]) for index in used]
    return {
        "text": " ".join(sentence.text for sentence in chosen),
        "markdown": _markdown(chosen, numbers, sources),
        "sources": list(sources),
    }


def _sentences(texts: Sequence[JsonValue], *, whole: bool = True) -> Iterator[Sentence]:
    """Those of a usual length; not `whole`: all, as far as that."""
    given = {index: text for index, item in enumerate(texts) if isinstance(text := _text(item), str)}
    share = CHARS_MAX // max(1, len(given))
    for source, text in given.items():
        for place, part in enumerate(_BETWEEN.split(text[:share])):
            plain = " ".join(part.split() if whole else part.split()[:WORDS_MAX])
            words = tuple(word.casefold() for word in _WORD.findall(plain))
            if WORDS_MIN <= len(words) <= WORDS_MAX or (words and not whole):
                yield Sentence(source=source, place=place, text=plain, words=words)


def _text(item: JsonValue) -> JsonValue:
    return item.get("text") if isinstance(item, dict) else item


def _choose(sentences: Sequence[Sentence], count: int) -> list[Sentence]:
    """Best first by how often the texts use its words; what was said already is not said again."""
    often = Counter(word for sentence in sentences for word in set(sentence.words) if word not in _TELLS_NOTHING)
    ranked = sorted(sentences, key=lambda one: (-_weight(one, often), one.source, one.place))
    best = list(islice(_unheard(ranked), count))
    return sorted(best, key=lambda one: (one.source, one.place))


def _weight(sentence: Sentence, often: Counter[str]) -> float:
    telling = sum(often[word] for word in set(sentence.words) if often[word] > 1)
    return telling / len(sentence.words) + 1 / (1 + sentence.place)  # openings tell what follows


def _unheard(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    heard: set[tuple[str, ...]] = set()
    for sentence in sentences:
        if sentence.words not in heard:
            heard.add(sentence.words)
            yield sentence


def _source(index: int, item: JsonValue) -> JsonObject:
    fields = item if isinstance(item, dict) else {}
    title, url = fields.get("title"), fields.get("url")
    return {
        "index": index,
        "title": title if isinstance(title, str) else None,
        "url": url if isinstance(url, str) else None,
    }


def _markdown(chosen: Sequence[Sentence], numbers: dict[int, int], sources: Sequence[JsonObject]) -> str:
    mark = len(sources) > 1
    lines = [f"- {one.text}{f' [{numbers[one.source]}]' if mark else ''}" for one in chosen]
    named = [
        f"{number}. {' '.join(str(part) for part in (source['title'], source['url']) if part)}"
        for number, source in enumerate(sources, 1)
        if source["title"] or source["url"]
    ]
    return "\n".join([*lines, "", *named] if named else lines)
