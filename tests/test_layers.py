"""The architecture, held by tests: who may import whom, who may loop over steps, what the core needs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unmask

SOURCE = Path(unmask.__file__).parent
LAYERS = [
    {"errors"},
    {"files", "rng", "backbones.base", "provenance"},
    {"tasks", "tasks.problem", "tasks.extract", "tasks.rational"},
    {"tasks.d1", "tasks.words", "tasks.algebra", "tasks.sums", "tasks.countdown", "tasks.sudoku"},
    {"tasks.equivalence", "tasks.strict", "tasks.sources", "tasks.completions"},
    {"tasks.published"},
    {"tasks.families"},
    {"canvas", "counts", "predictions", "backbones.toy", "backbones.transformer"},
    {"view"},
    {"ranking", "scores", "pick"},
    {"selection"},
    {"adaptive", "profiles", "loop"},
    {"record", "rules", "backbones.families"},
    {"settings", "backbones.llada", "backbones.dream"},
    {"backbones"},
    {"checkpoint", "device"},
    {"hub", "text"},
    {"frames", "generation", "prompts"},
    {"model", "tasks.task"},
    {"evaluation"},
    {"pretraining", "pretraining.recipe"},
    {"pretraining.vocabulary"},
    {"pretraining.examples", "pretraining.weights"},
    {"pretraining.objective"},
    {"pretraining.train"},
    {"cli.show", "cli.info"},
    {"cli.generate", "cli.replay", "cli.demo", "cli.evaluate", "cli.pretrain", "cli.tasks"},
    {"cli"},
    {"cli.reference"},
]
"""A module may import from the layers above it in this list, not from its own or those below."""
CORE = {name for layer in LAYERS[: LAYERS.index({"record", "rules", "backbones.families"})] for name in layer
        if not name.startswith("tasks") and name not in ("files", "provenance")}  # fmt: skip


def modules():
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        if name:
            yield name, ast.parse(file.read_text())


def imported(tree):
    """Modules that are imported anywhere in the file, but for type checking."""
    guarded = {
        id(node) for block in ast.walk(tree) if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_module_has_its_place():
    assert {name for name, _ in modules()} == set().union(*LAYERS), "a new module needs a line in LAYERS, below what it imports"


def test_imports_point_in_one_direction():
    place = {name: number for number, names in enumerate(LAYERS) for name in names}
    for name, tree in modules():
        for target in imported(tree):
            other = target.removeprefix("unmask.")
            if target.startswith("unmask.") and {other, name} <= place.keys() and other != name:
                assert place[other] < place[name], f"{name} may not import {other}"


def test_the_core_imports_torch_and_jaxtyping_only():
    allowed = {"torch", "jaxtyping", "unmask"} | set(sys.stdlib_module_names)
    for name, tree in modules():
        if name in CORE:
            assert {target.partition(".")[0] for target in imported(tree)} <= allowed, name


def test_only_the_loop_iterates_over_denoising_steps():
    """A denoising step is a pass of the backbone: only loop.py asks for one, and decode_steps is the one that does so again."""
    asking = {
        name for name, tree in modules() for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "encode" and ast.unparse(node.value).endswith("backbone")
    }  # fmt: skip
    assert asking == {"loop"}
    (tree,) = (tree for name, tree in modules() if name == "loop")
    users = [
        function.name for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and any(
            isinstance(node, ast.Call) and ast.unparse(node.func) == "encode" for node in ast.walk(function)
        )
    ]  # fmt: skip
    assert users == ["decode_steps"]


def test_functions_fit_on_a_screen():
    for name, tree in modules():
        if name not in CORE:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{name}.{node.name}"


def test_modules_hold_one_idea():
    for file in SOURCE.rglob("*.py"):
        assert len(file.read_text().splitlines()) <= 300, file.name


@pytest.mark.parametrize("statement", ["import unmask; unmask.decode, unmask.top_by", "import unmask.cli"])
def test_imports_stay_light(statement):
    """Not timed here (machines are noisy): what costs seconds is not imported at all."""
    heavy = "{'transformers', 'datasets', 'matplotlib', 'pandas', 'pyarrow', 'huggingface_hub', 'scipy'}"
    code = f"import sys; {statement}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_does_not_import_torch():
    code = "import sys, unmask.cli; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_public_names():
    assert unmask.__all__ == [
        "__version__", "Backbone", "Canvas", "CheckpointError", "Choice", "Decoded", "Generation", "InputError",
        "MemoryLimitError", "Model", "OPEN", "Pick", "Rank", "Record", "RecordError", "Recorder", "RuleError", "Score",
        "Select",
        "Settings", "Stats", "Step", "Stream", "ToyBackbone", "UnmaskError", "View", "above", "all_at_the_end", "at_least",
        "at_step", "block_counts", "by_factor", "decode", "decode_steps", "dream_counts", "entropy_bounded", "eos_annealed",
        "eos_penalized", "eos_suppressed", "fixed", "greedy", "in_blocks", "linear_counts", "load", "load_backbone",
        "near_known",
        "negative_entropy", "one_by_one", "origin", "perturbed", "position_and_content", "probability_margin",
        "progressive_counts", "raw", "sampled", "self_planned", "stable", "token_frequencies", "top1_probability", "top_by",
        "uniform",
    ]  # fmt: skip
    for name in unmask.__all__:
        assert getattr(unmask, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = unmask.nothing
