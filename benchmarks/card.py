"""The tables of the model card, from what `make card` leaves in runs/card: `python benchmarks/card.py runs/card`."""

import json
import sys
from pathlib import Path

ROW = (
    "| {task} | {way} | {steps} | {accuracy:.1%} ({low:.1%} to {high:.1%}) | {effective_tokens:.1f} | {early_ends:.0%} | "
    "{early_place:.2f} |"
)


def main() -> None:
    """Print every report in the folder as a table."""
    for file in sorted(Path(sys.argv[1]).glob("*/report.json")):
        lines = json.loads(file.read_text())
        print(f"\n### {file.parent.name}\n")
        print("| task | decoded | steps | accuracy (95%) | tokens | early EOS | early place |\n|---|---|---|---|---|---|---|")
        for line in lines:
            way = f"blocks of {line['blocks']}" if line["blocks"] else "no blocks"
            way += "" if line["eos"] == "none" else f", {line['eos']}"
            way += "" if not line["first"] else f", first step {line['first']}"
            print(ROW.format(way=way, **line))
            if "pass_at" in line:
                print(f"\npass@k of the line above: {', '.join(f'{k}: {share:.1%}' for k, share in line['pass_at'].items())}\n")
        last = lines[-1]
        print(
            f"\n{last['n']} problems, seed {last['seed']}, {last['dtype']}, {last['device']}, {last['threads']} thread(s), "
            f"torch {last['versions']['torch']}, model {last['fingerprint']}"
        )


if __name__ == "__main__":
    main()
