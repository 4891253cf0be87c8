"""Tokenizers from the published files, chat templates in a sandbox, templates with holes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenizer_files import vocabulary, write_dream, write_llada
from unmask import OPEN, CheckpointError, InputError
from unmask.text import Text, toy_text


@pytest.fixture(scope="module")
def llada(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llada")
    write_llada(folder)
    return Text.load(folder)


@pytest.fixture(scope="module")
def dream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dream")
    write_dream(folder)
    return Text.load(folder)


@given(text=st.text())
def test_text_survives_the_round_trip(llada, dream, text):
    import unicodedata

    assert llada.decode(llada.encode(text)) == text
    assert dream.decode(dream.encode(text)) == unicodedata.normalize("NFC", text)  # as Qwen2.5's tokenizer has it


def test_merges_and_special_tokens_keep_their_ids(llada, dream):
    assert llada.encode("hello") == dream.encode("hello") == [vocabulary()["hello"]]
    assert llada.encode("<|eot_id|>") == [llada.specials["<|eot_id|>"]]
    assert dream.encode("a<|im_end|>")[-1] == dream.specials["<|im_end|>"]
    assert dream.specials["<|mask|>"] == len(vocabulary()) + 4
    assert dream.size == len(vocabulary()) + 5


def test_digits_stand_alone_in_dreams_tokenizer(dream):
    assert len(dream.encode("1234")) == 4


def test_special_tokens_are_left_out_of_text_unless_asked_for(llada):
    ids = [*llada.encode("hello"), llada.specials["<|endoftext|>"]]
    assert llada.decode(ids) == "hello"
    assert llada.decode(ids, keep_special=True) == "hello<|endoftext|>"


def test_raw_text_starts_as_the_models_own_tokenizer_would(llada, dream):
    assert dream.encode("hello", start=True)[0] == dream.specials["<|beginoftext|>"]
    assert llada.encode("hello", start=True) == llada.encode("hello")


def test_chat_is_written_by_the_checkpoints_template(llada, dream):
    messages = [{"role": "user", "content": " hi "}]
    assert llada.chat(messages) == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    assert dream.chat(messages).startswith("<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n hi <|im_end|>")
    assert dream.chat(messages).endswith("<|im_start|>assistant\n")


def test_a_last_assistant_message_is_continued(dream):
    text = dream.chat([{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "<reasoning>"}])
    assert text.endswith("<|im_start|>assistant\n<reasoning>")


@pytest.mark.parametrize(("messages", "words"), [
    ([], "no message to answer"),
    ([{"role": "assistant", "content": "x"}], "no message to answer"),
    ([{"role": "user"}], "must have a role and a content"),
    ([{"role": "user", "content": 3}], "must have a role and a content"),
])  # fmt: skip
def test_bad_messages_are_refused(llada, messages, words):
    with pytest.raises(InputError, match=words):
        llada.chat(messages)


@pytest.mark.parametrize("template", [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.append('x') }}",
    "{% for i in range(10**9) %}x{% endfor %}",
    "{{ raise_exception('not this') }}",
    "{{ unclosed",
])  # fmt: skip
def test_a_hostile_template_gets_one_line(template):
    text = Text(toy_text().tokenizer, template=template)
    with pytest.raises(InputError, match="chat template refuses"):
        text.chat([{"role": "user", "content": "hi"}])


def test_a_model_without_a_template_says_so():
    with pytest.raises(InputError, match="no chat template; give it raw text"):
        toy_text().chat([{"role": "user", "content": "hi"}])


def test_holes():
    text = toy_text()
    row = text.with_holes(r"ab<hole:3>c\<hole:4>")
    assert row[:6] == [*text.encode("ab"), OPEN, OPEN, OPEN, *text.encode("c")]
    assert text.decode(row[6:]) == "<hole:4>"
    for bad, words in (("no hole", "has no hole"), ("<hole:0>", "between 1 and"), ("<hole:99999999>", "between 1 and")):
        with pytest.raises(InputError, match=words):
            text.with_holes(bad)


def test_the_toy_speaks_ascii():
    text = toy_text()
    assert text.decode(text.encode("Hello, World ~!")) == "Hello, World ~!"
    assert text.decode(text.encode("é\n")) == "??"


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(InputError, match="not valid Unicode"):
        toy_text().encode("\ud800")


class TestFiles:
    def test_truncation_and_padding_in_the_file_are_ignored(self, tmp_path):
        write_llada(tmp_path)
        raw = json.loads((tmp_path / "tokenizer.json").read_text())
        raw["truncation"] = {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
        (tmp_path / "tokenizer.json").write_text(json.dumps(raw))
        assert len(Text.load(tmp_path).encode("a b c d e f")) == 11

    def test_templates_and_tokens_that_are_not_as_published(self, tmp_path):
        write_dream(tmp_path)
        config = json.loads((tmp_path / "tokenizer_config.json").read_text())
        for added in ({"x": {}}, {"5": 3}, [1], {"7": {"content": 3}}):
            (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "added_tokens_decoder": added}))
            with pytest.raises(CheckpointError, match="added tokens are not as published"):
                Text.load(tmp_path)
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
        with pytest.raises(CheckpointError, match=r"chat_template.jinja is not UTF-8"):
            Text.load(tmp_path)

    def test_without_a_tokenizer(self, tmp_path):
        with pytest.raises(CheckpointError, match="has no tokenizer.json, nor vocab.json with merges.txt"):
            Text.load(tmp_path)

    def test_broken(self, tmp_path):
        (tmp_path / "tokenizer.json").write_text("{}")
        with pytest.raises(CheckpointError, match=r"tokenizer.json cannot be read"):
            Text.load(tmp_path)

    def test_added_tokens_that_do_not_belong(self, tmp_path):
        write_dream(tmp_path)
        config = json.loads((tmp_path / "tokenizer_config.json").read_text())
        config["added_tokens_decoder"]["999"] = {"content": "<|late|>"}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        with pytest.raises(CheckpointError, match=r"'<\|late\|>' should have id 999 but gets"):
            Text.load(tmp_path)

    def test_a_template_in_a_file_of_its_own(self, tmp_path):
        write_dream(tmp_path)
        (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}!")
        assert Text.load(tmp_path).chat([{"role": "user", "content": "hi"}]) == "hi!"

    def test_added_tokens_json(self, tmp_path):
        specials = write_dream(tmp_path)
        config = json.loads((tmp_path / "tokenizer_config.json").read_text())
        del config["added_tokens_decoder"]
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        (tmp_path / "added_tokens.json").write_text(json.dumps(specials))
        assert Text.load(tmp_path).specials == specials
