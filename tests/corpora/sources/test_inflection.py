import pytest

from corpora.sources.inflection import article, inflected, variants


@pytest.mark.parametrize(
    ("word", "pos", "has"),
    [
        ("box", "n", {"box", "boxes"}),
        ("city", "n", {"city", "cities"}),
        ("knife", "n", {"knife", "knives"}),
        ("leaf", "n", {"leaf", "leaves"}),
        ("potato", "n", {"potatoes", "potatos"}),
        ("lie", "v", {"lies", "lied", "lying"}),
        ("bake", "v", {"bakes", "baked", "baking"}),
        ("stop", "v", {"stops", "stopped", "stopping"}),
        ("see", "v", {"sees", "seeing"}),
        ("happy", "a", {"happier", "happiest"}),
        ("thin", "a", {"thinner", "thinnest"}),
        ("fast", "r", {"faster", "fastest"}),
    ],
)
def test_variants(word: str, pos: str, has: set[str]) -> None:
    assert has <= variants(word, pos)


def test_variants_stay_within_the_part_of_speech() -> None:
    assert variants("play", "n") == {"play", "plays"}
    assert variants("green", "a") == {"green", "greener", "greenest"}
    doubled, plain = {"stopped", "stopping"}, {"stops", "stoped", "stoping"}
    assert variants("stop", "v") == {"stop", *doubled, *plain}


@pytest.mark.parametrize(
    ("base", "form", "irregular", "expected"),
    [
        ("fall", "plural", (), "falls"),
        ("woman", "plural", ("women",), "women"),
        ("sell", "s", ("sold",), "sells"),
        ("wash", "s", (), "washes"),
        ("sell", "past", ("sold",), "sold"),
        ("take", "past", ("took", "taken"), None),
        ("stop", "ing", (), "stopping"),
        ("stop", "s", (), "stops"),
        ("have", "s", ("has", "had"), "has"),
        ("echo", "plural", (), "echoes"),
        ("echo", "ing", (), "echoing"),
        ("go", "s", ("went", "gone"), "goes"),
        ("radio", "plural", (), "radios"),
        ("open", "ing", (), "opening"),
        ("wet", "est", ("wetter", "wettest"), "wettest"),
        ("bad", "er", ("worse", "worst"), "worse"),
        ("big", "er", (), "bigger"),
        ("simple", "est", (), "simplest"),
        ("noisy", "er", (), "noisier"),
        ("flexible", "er", (), "more flexible"),
        ("modern", "est", (), "most modern"),
    ],
)
def test_inflected(base: str, form: str, irregular: tuple[str, ...], expected: str | None) -> None:
    assert inflected(base, form, frozenset(irregular)) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("apple", "an"),
        ("hour", "an"),
        ("unit", "a"),
        ("unimportant", "an"),
        ("unnatural", "an"),
        ("useful", "a"),
        ("hot", "a"),
        ("ugly", "an"),
    ],
)
def test_article(word: str, expected: str) -> None:
    assert article(word) == expected
