"""unmask generate."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmask.errors import InputError

if TYPE_CHECKING:
    from unmask.generation import Generation
    from unmask.model import Job


def generate(
    prompt: Annotated[list[str] | None, typer.Argument(help="One or more prompts; - reads one from stdin.")] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="toy, a checkpoint folder, or a hub id.")] = "toy",
    length: Annotated[int, typer.Option("--length", "-l", help="Tokens to generate.")] = 128,
    steps: Annotated[int | None, typer.Option("--steps", "-s", help="Denoising steps; default length/4.")] = None,
    order: Annotated[str | None, typer.Option(help="Which positions first: see `unmask rules`.")] = None,
    first: Annotated[str | None, typer.Option(help="Another order for step 1 alone, such as random.")] = None,
    order_temperature: Annotated[float, typer.Option(help="Draw the order instead of taking the best.")] = 0.0,
    eos: Annotated[str | None, typer.Option(help="EOS policy: none, anneal:3, suppress, penalty:3.")] = None,
    schedule: Annotated[str | None, typer.Option(help="How many a step: linear, progressive, dream.")] = None,
    blocks: Annotated[int | None, typer.Option(help="Semi-autoregressive, in blocks of this many tokens.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", "-t", help="0 takes the likeliest token.")] = 0.0,
    top_p: Annotated[float | None, typer.Option(help="Sample from the smallest set with this probability.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from this many likeliest tokens.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same text.")] = 0,
    profile: Annotated[str, typer.Option(help="unmask, llada, llada-2025-02, dream, d1.")] = "unmask",
    samples: Annotated[int, typer.Option("--samples", "-n", help="Answers a prompt.")] = 1,
    batch: Annotated[str, typer.Option(help="Rows at a time; auto halves on lack of memory.")] = "auto",
    template: Annotated[str | None, typer.Option(help="Fill in this text's holes, such as 'A <hole:4> B'.")] = None,
    messages: Annotated[Path | None, typer.Option(help="A JSON file with chat messages instead of a prompt.")] = None,
    system: Annotated[str | None, typer.Option(help="A system message before the prompt.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No chat template: the prompt is continued as it is.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps; the best there is by default.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16.")] = None,
    revision: Annotated[str | None, typer.Option(help="The hub model's branch, tag or commit.")] = None,
    fused: Annotated[bool, typer.Option("--fused", help="One padded pass a batch; last bits depend on neighbours.")] = False,
    record: Annotated[Path | None, typer.Option(help="Save the record of the decode to this file.")] = None,
    show_steps: Annotated[bool, typer.Option("--show-steps", help="Watch the canvas fill in (on stderr).")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a prompt and sample, one a line.")] = False,
) -> None:
    """Answer prompts, or fill in a template.

    Example: unmask generate 'What do you know?' --length 96 --steps 24 --show-steps
    """
    from unmask.model import load

    prompts: list[Any] = _prompts(prompt, messages, system, template)
    if batch != "auto" and not batch.isdecimal():
        raise InputError(f"batch={batch!r} must be a number, or auto")
    if record is not None and (len(prompts) > 1 or samples > 1):
        raise InputError(
            f"--record holds one decode, but there are {len(prompts) * samples}; ask for one prompt and one sample"
        )
    options = {
        "length": length, "steps": steps, "order": order, "first": first, "order_temperature": order_temperature,
        "eos": eos, "schedule": schedule, "blocks": blocks, "temperature": temperature, "top_p": top_p, "top_k": top_k,
        "seed": seed, "profile": profile,
    }  # fmt: skip
    loaded = load(model, device=device, dtype=dtype, revision=revision)
    started = time.perf_counter()
    job = loaded.prepare(
        prompts, template=template, raw=raw, samples=samples, batch=batch if batch == "auto" else int(batch),  # type: ignore[arg-type]
        record=record is not None, fused=fused, **options,
    )  # fmt: skip
    results = _watched(job) if show_steps else _ticked(job)
    seconds = time.perf_counter() - started
    if record is not None and results[0].record is not None:
        results[0].record.save(record)
    for result in results:
        print(json.dumps(_plain(result)) if as_json else result.text)
    tokens, passes = sum(result.effective_tokens for result in results), sum(result.nfe for result in results)
    print(
        f"{len(results)} x {loaded.name} {str(loaded.dtype)[6:]} on {loaded.backbone.device}, seed {seed}: {tokens} tokens "
        f"and {passes} forward passes in {seconds:.2f} s, {tokens / max(seconds, 1e-9):.0f} tokens/s; "
        f"finish: {', '.join(sorted({result.finish for result in results}))}",
        file=sys.stderr,
    )


def _prompts(given: list[str] | None, messages: Path | None, system: str | None, template: str | None) -> list[Any]:
    if messages is not None:
        if given:
            raise InputError("give either prompts or --messages, not both")
        try:
            chat = json.loads(messages.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{messages} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{messages} is not valid JSON ({error})") from None
        if not isinstance(chat, list) or not all(isinstance(message, dict) for message in chat):
            raise InputError(f'{messages} must hold a list of messages, like [{{"role": "user", "content": "Hello"}}]')
        return [chat]
    prompts = [sys.stdin.read().rstrip("\n") if text == "-" else text for text in given or []]
    if not prompts and template is None:
        raise InputError("there is nothing to answer: give a prompt, --messages FILE, or --template TEXT")
    if system is not None:
        return [[{"role": "system", "content": system}, {"role": "user", "content": text}] for text in prompts]
    return prompts or [""]


def _ticked(job: "Job") -> "list[Generation]":
    """Decode, saying on stderr how far it is."""
    from unmask.cli.show import Ticker

    ticker = Ticker(len(job.rows))
    for step in job:
        ticker.tick(len(job.results), step.step, int(step.view.steps.max()))
    ticker.clear()
    return job.results


def _watched(job: "Job") -> "list[Generation]":
    """Decode one row after the other in front of the user."""
    from unmask.cli.show import Watch
    from unmask.model import Run

    for row, seed in zip(job.rows, job.seeds, strict=True):
        run = Run(job.model, job.strategy, [row], [seed], record=job.record, fused=job.fused)
        with Watch() as watch:
            for frame in run.frames():
                watch.show(frame, run.steps)
        job.results += run.results()
    return job.results


def _plain(result: "Generation") -> dict[str, Any]:
    """A result for machines."""
    names = ("text", "finish", "effective_tokens", "nfe", "seconds", "holes", "prompt_tokens", "tokens", "settings")
    return {name: getattr(result, name) for name in names}
