"""Keys become lines."""

from everstep.doors.cli.keyboard import END, Keyboard


def typed(text: str) -> tuple[Keyboard, list[str]]:
    heard: list[str] = []
    keyboard = Keyboard(heard.append)
    for char in text:
        keyboard.press(char)
    return keyboard, heard


def test_enter_hands_the_line_over() -> None:
    keyboard, heard = typed("blué\rn")
    assert heard == ["blué"]
    assert keyboard.typed == "n"


def test_mistakes_can_be_taken_back() -> None:
    assert typed("yess\x7f\n")[1] == ["yes"]
    assert typed("wrong\x15right\n")[1] == ["right"]


def test_arrows_and_other_keys_are_not_text() -> None:
    assert typed("a\x1b[A\x1b[3~b\x01\n")[1] == ["ab"]


def test_the_end_of_input_is_heard() -> None:
    assert typed("\x04")[1] == [END]
    assert typed("a\x04\n")[1] == ["a"]


def test_giving_back_what_was_not_taken_is_harmless() -> None:
    Keyboard(print).leave()
