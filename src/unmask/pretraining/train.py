"""Pretraining: a small model from a recipe, from scratch, resumable to the step."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from unmask.backbones.transformer import Transformer
from unmask.device import pick_device, supports
from unmask.errors import CheckpointError, InputError
from unmask.evaluation import Plan, evaluate, interval
from unmask.files import whole
from unmask.model import load
from unmask.pretraining.examples import Examples
from unmask.pretraining.objective import Lesson, losses, make_lesson
from unmask.pretraining.recipe import Phase, Recipe
from unmask.pretraining.vocabulary import FILL, learn_from, write
from unmask.pretraining.weights import FAMILY, PROMPT, fresh_model, raw_config, save_model
from unmask.tasks.task import find_task
from unmask.text import Text

STATE = "training.safetensors"
LOG = "log.jsonl"
LOG_EVERY = 10
WATCHED = 2**40
"""The seed of the problems that are solved while training."""


@dataclass(frozen=True)
class Report:
    """What is known after a step."""

    step: int
    steps: int
    phase: str
    loss: float
    tokens: int
    """Tokens of the batches since the last report."""
    seconds: float
    """What they took."""
    scores: Mapping[str, float] | None = None
    """Share of solved problems by task, in a report of an evaluation; that takes time of its own."""


class Training:
    """One run of a recipe in a folder: iterate over it for its reports; what is there already is continued."""

    def __init__(self, recipe: Recipe, folder: str | Path) -> None:
        self.recipe, self.folder = recipe, Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "tokenizer.json").is_file():
            write(learn_from(recipe), self.folder)
        self.text = Text.load(self.folder)
        fill = self.text.specials[FILL]
        self.raw_config = raw_config(recipe, self.text)
        config = FAMILY.config(self.raw_config, self.text.specials)
        self.examples = Examples(recipe, self.text, fill)
        self.model = fresh_model(config, seed=recipe.seed)
        self.optimizers = make_optimizers(self.model)
        self.compiles = recipe.compile and any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++")))
        """False without a C++ compiler, although the recipe asks for it: the same training, slower."""
        self.total = torch.zeros(())
        """The losses since the last step that LOG_EVERY divides."""
        self.step = self._resume()
        torch._dynamo.config.recompile_limit = 64

    def __iter__(self) -> Iterator[Report]:
        return self.reports()

    def reports(self, until: int | None = None) -> Iterator[Report]:
        """Train to the end, or to step `until`, reporting on the way."""
        forward = torch.compile(all_logits, dynamic=False) if self.compiles else all_logits
        goal = self.recipe.steps if until is None else min(until, self.recipe.steps)
        tokens, start = 0, time.perf_counter()
        while self.step < goal:
            phase, number = self.recipe.at(self.step)
            batch = self.examples.batch(self.step)
            generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + self.step)
            lesson = make_lesson(
                batch,
                shares_at(phase, number),
                mask_id=self.model.mask_id,
                generator=generator,
                ordered_from=phase.ordered_from,
            )
            self.total = self.total + self._learn(forward, lesson, rate_at(phase, number))
            tokens += batch.tokens.numel()
            self.step += 1
            if self.step % LOG_EVERY == 0 or self.step == goal:
                mean = float(self.total) / ((self.step - 1) % LOG_EVERY + 1)
                if not mean < float("inf"):
                    raise InputError(f"the loss is {mean} at step {self.step}; lower the rate of phase {phase.name!r}")
                seconds = time.perf_counter() - start
                yield self._log(Report(self.step, self.recipe.steps, phase.name, mean, tokens, seconds))
            if self.step % LOG_EVERY == 0:
                self.total = torch.zeros(())
            evaluates = self.step % self.recipe.evaluate_every == 0 or self.step == self.recipe.steps
            if self.step % self.recipe.save_every == 0 or self.step == goal or evaluates:
                self.save()
            if evaluates:
                scores = self.scores()
                seconds = time.perf_counter() - start
                yield self._log(Report(self.step, self.recipe.steps, phase.name, mean, tokens, seconds, scores))
            if self.step % LOG_EVERY == 0:
                tokens, start = 0, time.perf_counter()

    def scores(self, problems: int = 8) -> dict[str, float]:
        """How many fresh problems of each task the model solves in blocks of 16, two tokens a step, as it was last saved."""
        place = pick_device("cpu")
        model = load(self.folder, device="cpu", dtype="bfloat16" if supports(torch.bfloat16, place) else "float32")
        settings = {"length": self.recipe.shape.window, "steps": self.recipe.shape.window // 2, "order": "top1", "eos": "none",
                    "schedule": "linear", "blocks": 16}  # fmt: skip
        found = {}
        for name in sorted({task for phase in self.recipe.phases for task in phase.tasks}):
            task = find_task(name)
            fresh = task.problems(problems, level=self.recipe.taught, split="test", seed=WATCHED)
            plan = Plan(task, fresh, settings, source="watched while training", prompt=PROMPT)
            found[name] = interval(list(evaluate(model, plan)))[0]
        return found

    def _learn(self, forward: Callable[..., Tensor], lesson: Lesson, rate: float) -> Tensor:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["scale"]
        # written out, attention is compiled with what surrounds it; the fused kernel is slower at these lengths
        with torch.autocast("cpu", dtype=torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
            logits = forward(self.model, lesson.inputs, lesson.sees)
        loss = losses(logits, lesson).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def save(self) -> None:
        """Write the model as a checkpoint, and all that it takes to go on from here."""
        from safetensors.torch import save_file

        save_model(self.folder, self.model, self.raw_config)
        with whole(self.folder / STATE) as path:
            meta = {"step": str(self.step), "recipe": self.recipe.fingerprint(self.step), "format": "pt"}
            save_file({name: tensor.contiguous() for name, tensor in self._state().items()}, path, metadata=meta)

    def _state(self) -> dict[str, Tensor]:
        """Weights and optimizer moments by name."""
        names: dict[Tensor, str] = {parameter: name for name, parameter in self.model.named_parameters()}
        state = {f"weights.{name}": parameter.detach() for parameter, name in names.items()}
        state["total"] = self.total
        for optimizer in self.optimizers:
            for parameter, moments in optimizer.state.items():
                for key, value in moments.items():
                    state[f"{key}.{names[parameter]}"] = value.detach().clone()
        return state

    def _resume(self) -> int:
        """Take up the saved state, if there is one; returns the step to go on from."""
        from safetensors import SafetensorError, safe_open

        path = self.folder / STATE
        if not path.is_file():
            (self.folder / LOG).unlink(missing_ok=True)
            return 0
        try:
            with safe_open(path, framework="pt") as file:
                meta = file.metadata() or {}
                stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        except SafetensorError as error:
            raise CheckpointError(f"{path} is damaged ({error}); delete it to begin again") from None
        step = int(meta.get("step", 0))
        if meta.get("recipe") != self.recipe.fingerprint(step):
            raise InputError(f"{path} holds step {step} of another recipe; choose another folder, or give that recipe")
        self.total = stored.pop("total")
        with torch.no_grad():
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        optimizer.state[parameter] = {}
            for name, parameter in self.model.named_parameters():
                optimizer = next(o for o in self.optimizers if parameter in o.state)
                for key, value in stored.items():
                    kind, _, owner = key.partition(".")
                    if owner == name and kind == "weights":
                        parameter.copy_(value)
                    elif owner == name:
                        optimizer.state[parameter][kind] = value
        self._cut_log(step)
        return step

    def _log(self, report: Report) -> Report:
        line = {key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(report).items()}
        with (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return report

    def _cut_log(self, step: int) -> None:
        """Forget reports of steps that will be taken again."""
        log = self.folder / LOG
        if log.is_file():
            lines = [line for line in log.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
            with whole(log) as path:
                path.write_text("".join(line for line in lines if json.loads(line)["step"] <= step), encoding="utf-8")


def make_optimizers(model: Transformer) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for the rest; `scale` multiplies the recipe's rate."""
    if not hasattr(torch.optim, "Muon"):
        raise InputError(
            f"pretraining needs torch 2.9 or newer for its optimizer, and this is {torch.__version__}; upgrade torch"
        )
    matrices = [p for name, p in model.named_parameters() if name.startswith("layers.") and p.ndim == 2]
    chosen = set(matrices)
    others = [p for p in model.parameters() if p not in chosen]
    return [
        torch.optim.Muon([{"params": matrices, "scale": 1.0}], lr=1e-3, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW([{"params": others, "scale": 0.5}], lr=1e-3, weight_decay=0.0, betas=(0.9, 0.95), fused=True),
    ]


def all_logits(model: Transformer, tokens: Int[Tensor, "B S"], sees: Bool[Tensor, "B 1 S S"]) -> Float[Tensor, "B R V"]:
    """Logits at every position but the last: those at i predict position i + 1."""
    x = F.embedding(tokens, model.embed.weight)
    rope = model.rope(tokens.shape[1])
    for layer in model.layers:
        x = layer(x, rope, mask=sees)
    return model.lm_head(model.norm(x[:, :-1]))


def shares_at(phase: Phase, number: int) -> dict[str, float]:
    """The objectives' shares at a step of a phase."""
    return {name: between(ends, number, phase.steps) for name, ends in phase.objectives.items()}


def rate_at(phase: Phase, number: int) -> float:
    """The learning rate at a step of a phase."""
    return between(phase.rate, number, phase.steps)


def between(ends: tuple[float, float], number: int, steps: int) -> float:
    """From the first to the second in a straight line."""
    return ends[0] + (ends[1] - ends[0]) * number / max(1, steps - 1)
