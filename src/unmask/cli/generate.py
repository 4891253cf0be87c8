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
    model: Annotated[
        str, typer.Option("--model", "-m", help="tiny, a checkpoint folder, or a hub id: see `unmask models`.")
    ] = "tiny",
    length: Annotated[
        int | None, typer.Option("--length", "-l", help="Tokens to generate, 128 unless said; a template has its own.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", "-s", help="Denoising steps; a quarter of the length unless said. Adaptive orders stop early."),
    ] = None,
    order: Annotated[str | None, typer.Option(help="Which positions first, margin unless said: see `unmask rules`.")] = None,
    first: Annotated[str | None, typer.Option(help="Another order for step 1 alone, such as random.")] = None,
    order_temperature: Annotated[
        float, typer.Option(help="0 takes the best positions; above 0 draws them from softmax(score / this).")
    ] = 0.0,
    eos: Annotated[
        str | None, typer.Option(help="EOS policy of the ranking: none, anneal:3 (unless said), suppress, penalty:3.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(help="How many per step: linear, progressive (unless said; or progressive:floor,power), dream."),
    ] = None,
    blocks: Annotated[int | None, typer.Option(help="Semi-autoregressive, in blocks of this many tokens.")] = None,
    temperature: Annotated[
        float, typer.Option("--temperature", "-t", help="0 takes the likeliest token; above 0 samples.")
    ] = 0.0,
    top_p: Annotated[float | None, typer.Option(help="Sample from the smallest set with this probability.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from this many likeliest tokens.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same text.")] = 0,
    profile: Annotated[
        str, typer.Option(help="Follow a published program to the token: llada, llada-2025-02, d1, dream.")
    ] = "unmask",
    samples: Annotated[int, typer.Option("--samples", "-n", help="Answers per prompt, each from its own random numbers.")] = 1,
    batch: Annotated[str, typer.Option(help="Rows decoded together; auto takes all and halves when memory runs out.")] = "auto",
    template: Annotated[str | None, typer.Option(help="Text whose holes are filled in, such as 'A <hole:4> B'.")] = None,
    messages: Annotated[Path | None, typer.Option(help="A JSON file with chat messages, instead of a prompt.")] = None,
    system: Annotated[str | None, typer.Option(help="A system message before the prompt.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No chat template: the prompt is continued as it is.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps; the best there is unless said.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16 or float16; float32 on a CPU and bfloat16 elsewhere unless said.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="The hub model's branch, tag or commit.")] = None,
    fused: Annotated[
        bool, typer.Option("--fused", help="One padded pass per batch: faster for short rows, exact but for the last bits.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option(help="Save the record of the decode (one prompt, one sample) to this file.")
    ] = None,
    show_steps: Annotated[bool, typer.Option("--show-steps", help="Watch the canvas fill in, on stderr.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per answer.")] = False,
) -> None:
    """Answer prompts, or fill in a template.

    Example: unmask generate 'What is 3x + 2 for x = 4?' --steps 64 --show-steps
    """
    from unmask.files import check_target
    from unmask.model import load

    prompts = _prompts(prompt, messages, system, template, raw)
    if batch != "auto" and not (batch.isdecimal() and len(batch) < 10):
        raise InputError(f"batch={batch[:20]!r} must be a number, or auto")
    if record is not None:
        if len(prompts) > 1 or samples > 1:
            raise InputError(
                f"--record holds one decode, but there are {len(prompts) * samples}; ask for one prompt and one sample"
            )
        check_target(record)
    options: dict[str, Any] = {
        "length": length, "steps": steps, "order": order, "first": first, "order_temperature": order_temperature,
        "eos": eos, "schedule": schedule, "blocks": blocks, "temperature": temperature, "top_p": top_p, "top_k": top_k,
        "seed": seed, "profile": profile,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None}
    loaded = load(model, device=device, dtype=dtype, revision=revision)
    started = time.perf_counter()
    job = loaded.prepare(
        prompts, template=template, raw=raw, samples=samples, batch=batch if batch == "auto" else int(batch),  # type: ignore[arg-type]
        record=record is not None, fused=fused, **options,
    )  # fmt: skip
    results = _watched(job) if show_steps else _ticked(job)
    seconds = time.perf_counter() - started
    for index, result in enumerate(results):
        origin = {"prompt": index // samples, "sample": index % samples, "model": loaded.name, "dtype": str(loaded.dtype)[6:]}
        print(json.dumps({**origin, **_plain(result)}) if as_json else result.text)
    sys.stdout.flush()
    if record is not None and results[0].record is not None:
        results[0].record.save(record)
    tokens = sum(result.effective_tokens for result in results)
    passes = _number(sum(result.nfe for result in results), "forward pass", "forward passes")
    print(
        f"{len(results)} x {loaded.name} {str(loaded.dtype)[6:]} on {loaded.backbone.device}, seed {seed}: {tokens} tokens "
        f"and {passes} in {seconds:.2f} s, {tokens / max(seconds, 1e-9):.0f} tokens/s; "
        f"finish: {', '.join(sorted({result.finish for result in results}))}",
        file=sys.stderr,
    )


def _prompts(given: list[str] | None, messages: Path | None, system: str | None, template: str | None, raw: bool) -> list[Any]:
    if system is not None and (messages is not None or raw):
        raise InputError("--system goes before a prompt of the chat; leave it out beside --messages or --raw")
    if messages is not None and raw:
        raise InputError("--messages are a chat; leave out --raw")
    if messages is not None:
        if given:
            raise InputError("give either prompts or --messages, not both")
        try:
            chat = json.loads(messages.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{messages} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{messages} is not valid JSON ({error})") from None
        if not isinstance(chat, list) or not all(isinstance(message, dict) for message in chat):
            raise InputError(f'{messages} must hold a list of messages, like [{{"role": "user", "content": "Hello"}}]')
        return [chat]
    prompts = [_stdin() if text == "-" else text for text in given or []]
    if not prompts and template is None:
        raise InputError("there is nothing to answer: give a prompt, --messages FILE, or --template TEXT")
    if system is not None:
        if not prompts:
            raise InputError("--system goes before a prompt; give one")
        return [[{"role": "system", "content": system}, {"role": "user", "content": text}] for text in prompts]
    return prompts or [""]


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\n")
    except AttributeError:
        raise InputError("there is no stdin to read a prompt from; give it as an argument") from None
    except UnicodeDecodeError as error:
        raise InputError(f"stdin is not UTF-8 ({error}); convert it first") from None


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

    if job.strategy.profile.pads_left and len(job.rows) > 1:
        raise InputError("this profile pads a batch, so its rows cannot be shown one by one; give one prompt with --show-steps")
    for row, seed in zip(job.rows, job.seeds, strict=True):
        run = Run(job.model, job.strategy, [row], [seed], record=job.record, fused=job.fused)
        with Watch() as watch:
            for frame in run.frames():
                watch.show(frame, run.steps)
        job.results += run.results()
    return job.results


def _number(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _plain(result: "Generation") -> dict[str, Any]:
    """A result for machines."""
    names = ("text", "finish", "effective_tokens", "nfe", "seconds", "holes", "prompt_tokens", "tokens", "settings")
    return {name: getattr(result, name) for name in names}
