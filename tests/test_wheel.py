"""The wheel: everything that a user needs is in it, and it works offline."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        str(ROOT),
        "--no-deps",
        "--no-build-isolation",
        "--quiet",
        "--wheel-dir",
        str(out),
    ]
    subprocess.run([*command, "--disable-pip-version-check", "--no-index"], check=True, capture_output=True)
    (found,) = out.glob("*.whl")
    return found


def test_the_wheel_holds_weights_prompts_and_recipes(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in ("models/tiny/config.json", "models/tiny/tokenizer.json", "tasks/prompts/sudoku.toml", "tasks/published.json",
                 "pretraining/recipes/tiny.toml", "py.typed"):  # fmt: skip
        assert f"unmask/{name}" in names
    assert not [name for name in names if "training.safetensors" in name or name.startswith(("tests", "runs"))]
    assert wheel.stat().st_size < 14 * 2**20


def test_it_decodes_without_a_network_from_an_empty_folder(wheel, tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(site), str(wheel)]
    subprocess.run([*command, "--disable-pip-version-check"], check=True, capture_output=True)
    code = (
        "import socket, unmask\n"
        "def refuse(*args, **named): raise AssertionError('asked the network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "answer = unmask.load().generate('What is 3x + 2 for x = 4?', length=64, steps=32, blocks=16)\n"
        "print(unmask.__file__, answer.finish)"
    )
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1", "HF_HOME": str(tmp_path / "none")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))
