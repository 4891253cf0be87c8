"""The command line: text on stdout, progress on stderr, one line for every mistake, exit codes 0, 1, 2."""

import json
import os
import pty
import subprocess
import sys

import pytest

from conftest import write_checkpoint
from tokenizer_files import write_llada
from unmask.cli.reference import COMMANDS

HERE = [sys.executable, "-c", "import unmask.cli; unmask.cli.main()"]


def unmask(*args, stdin=None, env=None):
    if args[:1] == ("generate",) and "--model" not in args:
        args = (*args, "--model", "toy")
    return subprocess.run(
        [*HERE, *args], capture_output=True, text=True, input=stdin, env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    )


def test_text_on_stdout_and_a_summary_on_stderr():
    done = unmask("generate", "Tell me.", "--length", "128")
    assert done.returncode == 0
    assert done.stdout == "First write what you know best; leave the end for the end, and the rest will follow.\n"
    assert "84 tokens and 32 forward passes" in done.stderr
    assert "seed 0" in done.stderr


def test_json_for_machines():
    done = unmask("generate", "one", "two", "--samples", "2", "--length", "16", "--json", "--temperature", "0.9", "--seed", "3")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 4
    assert [(line["prompt"], line["sample"]) for line in lines] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert {
        "model",
        "dtype",
        "prompt",
        "sample",
        "text",
        "finish",
        "effective_tokens",
        "nfe",
        "seconds",
        "tokens",
        "holes",
        "prompt_tokens",
        "settings",
    } == set(lines[0])
    assert lines[0]["settings"]["seed"] == 3


def test_every_option_of_the_long_example():
    done = unmask(
        "generate", "Tell me.", "--model", "toy", "--steps", "32", "--length", "256", "--order", "margin", "--eos", "anneal:3",
        "--schedule", "progressive", "--blocks", "32", "--temperature", "0.9", "--seed", "0", "--show-steps",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "step  1/32" in done.stderr
    assert "step 32/32" in done.stderr
    assert "step" not in done.stdout


def test_watching_changes_no_token():
    plain = unmask("generate", "Tell me.", "--temperature", "0.9", "--length", "64", "--seed", "7")
    watched = unmask("generate", "Tell me.", "--temperature", "0.9", "--length", "64", "--seed", "7", "--show-steps")
    assert plain.stdout == watched.stdout


def test_the_view_is_animated_on_a_terminal_and_plain_elsewhere():
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*HERE, "generate", "Hi", "--model", "toy", "--length", "32", "--steps", "4", "--show-steps"],
        stdout=subprocess.PIPE, stderr=follower, env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
    )  # fmt: skip
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other side has closed
            break
        if not part:
            break
        seen += part
    process.communicate()
    os.close(leader)
    assert process.returncode == 0
    assert b"\x1b[" in seen
    assert b"step 4/4" in seen
    assert "\x1b[" not in unmask("generate", "Hi", "--length", "32", "--steps", "4", "--show-steps").stderr


def test_a_prompt_from_stdin_messages_from_a_file_and_a_template(tmp_path):
    assert unmask("generate", "-", "--length", "128", stdin="Tell me.\n").stdout.startswith("First write")
    done = unmask("generate", "--template", "Say <hole:5>!")
    assert done.stdout.startswith("Say ")
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "hello"}]')
    done = unmask("generate", "--messages", str(tmp_path / "chat.json"))
    assert done.returncode == 2
    assert "no chat template" in done.stderr  # the toy has none


def test_a_checkpoint_folder(tmp_path):
    specials = write_llada(tmp_path)
    write_checkpoint(
        tmp_path, "llada", vocab_size=280, embedding_size=280, mask_token_id=specials["<|mdm_mask|>"],
        eos_token_id=specials["<|endoftext|>"],
    )  # fmt: skip
    done = unmask(
        "generate", "hello", "--model", str(tmp_path), "--length", "16", "--dtype", "bfloat16", "--system", "Be brief."
    )
    assert done.returncode == 0, done.stderr
    assert "bfloat16 on cpu" in done.stderr


def test_record_and_replay(tmp_path):
    file = str(tmp_path / "decode.unmask")
    assert unmask("generate", "Tell me.", "--length", "32", "--record", file).returncode == 0
    played = unmask("replay", file)
    assert played.returncode == 0
    assert "step 8/8  First" in played.stderr
    lines = unmask("replay", file, "--jsonl").stdout.splitlines()
    assert json.loads(lines[0])["model"] == "toy"
    assert len(lines) == 1 + 8


@pytest.mark.parametrize(("args", "words"), [
    (["generate"], "there is nothing to answer"),
    (["generate", ""], "the prompt is empty"),
    (["generate", "Hi", "--order", "margn"], "did you mean 'margin'"),
    (["generate", "Hi", "--blocks", "48"], "blocks of 48 do not divide a window of 128"),
    (["generate", "Hi", "--steps", "999"], "steps=999"),
    (["generate", "Hi", "--steps", "many"], "it was 'many'"),
    (["generate", "Hi", "--model", "nowhere"], "no folder here and no hub id"),
    (["generate", "Hi", "--batch", "some"], "batch='some' must be a number, or auto"),
    (["generate", "Hi", "--device", "tpu"], "unknown device 'tpu'"),
    (["generate", "Hi", "--dtype", "int8"], "unknown dtype 'int8'"),
    (["generate", "a <mask>"], "holds the mask token"),
    (["generate", "Hi", "--length", "9000"], "takes 4096"),
    (["generate", "Hi", "Ho", "--record", "x"], "--record holds one decode"),
    (["generate", "--messages", "nowhere.json"], "nowhere.json cannot be read"),
    (["generate", "Hi", "--sede", "1"], "--sede"),
    (["generat", "Hi"], "generat"),
    (["generate", "Hi", "--template", "<hole:" + "9" * 5000 + ">"], "between 1 and"),
    (["generate", "Hi", "--batch", "9" * 5000], "must be a number, or auto"),
    (["generate", "Hi", "--model", "a b/c d"], "no folder here and no hub id"),
    (["generate", "Hi", "--model", "~nosuchuser/x"], "no folder here and no hub id"),
    (["generate", "Hi", "--order", "conv:1e300"], "width="),
    (["generate", "Hi", "--schedule", "progressive:0,-1"], "power=-1"),
    (["generate", "Hi", "--schedule", "dream:5"], "eps=5.0 must lie between 0 and 1"),
    (["generate", "Hi", "--temperature", "1e39"], "temperature=1e+39"),
    (["generate", "Hi\x1b[31m", "--model", "x\x1b[31m"], "\\x1b[31m"),
    (["generate", "Hi", "Ho", "--profile", "d1", "--show-steps"], "its rows cannot be shown one by one"),
    (["generate", "Hi", "--profile", "llada", "--blocks", "32", "--first", "threshold"], "leave out blocks"),
    (["generate", "Hi", "--steps=many"], "it was 'many'"),
    (["generate", "Hi", "--system", "x", "--raw"], "--system goes before a prompt of the chat"),
    (["generate", "--template", "a <hole:3>", "--length", "9"], "has no meaning beside a template"),
    (["generate", "Hi", "--dtype", "bfloat16"], "has no meaning for the toy"),
    (["replay", "nowhere"], "nowhere does not exist"),
])  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(args, words):
    done = unmask(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.startswith("unmask: ")
    assert done.stderr.count("\n") == 1


def test_a_path_that_cannot_be_written_is_refused_before_the_decode(tmp_path):
    (tmp_path / "taken").write_text("")
    for path, words in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "x", "there is no folder"),
        (tmp_path / "taken" / "x", "there is no folder"),
    ):
        done = unmask("generate", "Hi", "--record", str(path), "--length", "16")
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["taken"]


def test_stdin_that_is_no_text_and_output_that_cannot_be_encoded():
    done = subprocess.run([*HERE, "generate", "-", "--model", "toy"], capture_output=True, input=b"\xff\xfe")
    assert (done.returncode, b"stdin is not UTF-8" in done.stderr) == (2, True)
    done = unmask("demo", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr


def test_the_command_alone_is_its_help():
    assert unmask().stdout == unmask("--help").stdout
    assert unmask().returncode == 0


def test_replay_refuses_a_record_of_another_or_no_model(tmp_path):
    from unmask import OPEN, Canvas, Recorder, ToyBackbone, decode_steps, linear_counts, uniform

    for mask_id, meta, words in ((95, {}, "does not say which model"), (95, {"model": "gone"}, "name the model of this record"),
                                 (7, {"model": "toy"}, "was made with mask token 7")):  # fmt: skip
        canvas = Canvas.of([[OPEN] * 4])
        recorder = Recorder(canvas, mask_id, meta=meta)
        for step in decode_steps(ToyBackbone(), canvas, counts=linear_counts(4, 2), select=uniform()):
            recorder.add(step)
        recorder.finish().save(tmp_path / "x.unmask")
        done = unmask("replay", str(tmp_path / "x.unmask"))
        assert done.returncode == 2
        assert words in done.stderr


def test_help_starts_with_an_example():
    for command in COMMANDS:
        done = unmask(*command.split(), "--help")
        assert done.returncode == 0
        assert "Example: unmask" in done.stdout.split("Options:")[0]


def test_models_rules_and_doctor_speak_to_people_and_machines():
    for command, word in (("models", "GSAI-ML/LLaDA-8B-Instruct"), ("rules", "margin"), ("doctor", "LLaDA-8B bfloat16")):
        people, machines = unmask(command), unmask(command, "--json")
        assert people.returncode == machines.returncode == 0
        assert word in people.stdout
        assert word.partition(" ")[0] in json.dumps(json.loads(machines.stdout))


def test_version_and_completion():
    import unmask as package

    assert unmask("--version").stdout.strip() == package.__version__
    assert "complete" in unmask("--show-completion", "bash").stdout.lower() or unmask("--show-completion").returncode in (
        0,
        1,
        2,
    )


def test_demo_decodes_a_problem_of_each_task_in_two_ways():
    done = unmask("demo", env={"COLUMNS": "120"})
    assert done.returncode == 0, done.stderr
    for word in ("words", "algebra", "countdown", "sudoku", "step 32 of 128", "end-of-sequence tokens", "unmask doctor"):
        assert word in done.stdout
    totals = [
        int(line.split("they have ")[1].split(":")[0].rstrip(",.")) for line in done.stdout.splitlines() if "they have " in line
    ]
    counted = [
        line.split()
        for line in done.stdout.splitlines()
        if line.strip().startswith(("│ words", "│ algebra", "│ countdown", "│ sudoku"))
    ]
    assert len(counted) == 4
    assert len(totals) <= 1


def test_tasks_are_listed_made_and_scored(tmp_path):
    assert {row["task"] for row in json.loads(unmask("tasks", "list", "--json").stdout)} >= {"gsm8k", "math500", "words"}
    made = [
        json.loads(line)
        for line in unmask("tasks", "sample", "countdown", "-n", "3", "--json", "--seed", "5").stdout.splitlines()
    ]
    assert len(made) == 3
    shown = unmask("tasks", "sample", "countdown", "-n", "3", "--seed", "5").stdout
    assert all(row["question"] in shown and row["solution"] in shown for row in made)
    file = tmp_path / "answers.jsonl"
    file.write_text(
        "".join(
            json.dumps({**row, "completion": text}) + "\n"
            for row, text in zip(made, [made[0]["solution"], "no", ""], strict=True)
        )
    )
    done = unmask("tasks", "score", str(file), "--task", "countdown", "--rows")
    *rows, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["strict"]["right"] for row in rows] == [1, 0, 0]
    assert summary["strict"] == summary["d1"] == {"right": 1, "of": 3, "accuracy": 1 / 3, "solved": 1}


def test_evaluate_prints_a_table_and_json_and_goes_on(tmp_path):
    options = [
        "evaluate",
        "--model",
        "toy",
        "--task",
        "words",
        "--n",
        "4",
        "--length",
        "16",
        "--steps",
        "4,8",
        "--out",
        str(tmp_path),
    ]
    table = unmask(*options)
    assert table.returncode == 0, table.stderr
    assert [line.split()[0] for line in table.stdout.splitlines()] == ["task", "words", "words"]
    lines = json.loads(unmask(*options, "--json").stdout)
    assert [line["steps"] for line in lines] == [4, 8]
    assert all(line["n"] == 4 and 0 <= line["low"] <= line["accuracy"] <= line["high"] <= 1 for line in lines)
    assert json.loads((tmp_path / "report.json").read_text()) == lines
    assert len(list(tmp_path.glob("words-*.jsonl"))) == 2


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["tasks", "sample", "sudoko"], "did you mean 'sudoku'"),
        (["tasks", "sample", "words", "--level", "eazy"], "did you mean 'easy'"),
        (["tasks", "sample", "words", "--style", "short"], "unknown style"),
        (["tasks", "sample", "words", "-n", "0"], "must be at least 1"),
        (["tasks", "sample", "gsm8k"], "has no generator"),
        (["tasks", "sample", "gsm8k", "--data", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (["tasks", "score", "nowhere.json", "--task", "words"], "nowhere.json cannot be read"),
        (["evaluate", "--task", "wrods"], "did you mean 'words'"),
        (["evaluate", "--task", "words", "--model", "toy", "--steps", "many"], "steps='many' must be numbers"),
        (["evaluate", "--task", "words", "--model", "toy", "--steps", "999"], "steps=999"),
        (["evaluate", "--task", "words", "--model", "toy", "--blocks", "48"], "do not divide"),
        (["evaluate", "--task", "words", "--model", "toy", "--order", "margn"], "did you mean 'margin'"),
        (["evaluate", "--task", "words", "--model", "toy", "--n", "0"], "n=0 must be at least 1"),
        (["evaluate", "--task", "words", "--model", "toy", "--prompt", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["pretrain", "tinny", "--out", "x"], "did you mean 'tiny'"),
        (["pretrain", "nowhere.toml", "--out", "x"], "nowhere.toml cannot be read"),
    ],
)
def test_bad_input_of_tasks_and_training_is_one_line(args, words):
    done = unmask(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
