#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks claims of the papers on the models of the cabinet, claim by claim.

    reproduce.py --text HELD_OUT.txt [--models build/sample_models/cabinet] [--known-difficulty DIR] [--more build/more_models]
                 [--out build/reproduce]

Runs only `ponderscope` (record, compare, policy, stats) and writes OUT/claims.md and OUT/claims.csv. Each row has the claim, the paper's
figure, our figure with its interval, the verdict, and for an undecided claim what would decide it. Methods are compared with
`compare --paired-seeds` over their common seeds. A claim about one method is decided if all its seeds agree. "not decided": the interval
contains both answers, or seeds disagree. Needs only Python.

HELD_OUT.txt: a text that no model was trained on. training.json names the held-out novels.
--known-difficulty: a folder with the output of known_difficulty/generate.py, and with models trained on it in folders named after the recipes.
--more: the output of more_models.sh: the same models from other seeds, and models for the curves of the penalty.

Recordings are kept in OUT and used again. A claim without its models says so.
"""

import argparse
import array
import csv
import json
import math
import pathlib
import random
import sqlite3
import subprocess
import sys

NO_MODEL = "no model"


class Bench:
    def __init__(self, options):
        self.options = options
        self.trace = options.out / "claims.ponder"
        self.rows = []

    def ask(self, *arguments):
        command = [str(self.options.ponderscope), *map(str, arguments), "--progress", "none"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def figures(self, verb, *arguments):
        return json.loads(self.ask(verb, *arguments, "--replicates", self.options.replicates, "--json"))

    def run(self, model, *options, name=None, folder=None, text=None):
        """Records a model unless the trace has its run. Returns TRACE#NAME; None: no such model, or its training has not ended."""
        folder = (folder or self.options.models) / model
        told = folder / "training.json"
        if not (folder / "config.json").exists() or (told.exists() and not json.loads(told.read_text(encoding="utf-8"))["complete"]):
            return None
        name = name or model
        recorded = self.recorded() if self.trace.exists() else {}
        if not recorded.get(name):
            print(f"recording {name}", file=sys.stderr, flush=True)
            cut_off = ["--resume"] if name in recorded else []
            self.ask("record", folder, "--text", text or self.options.text, "--name", name, "-o", self.trace, *options, *cut_off)
        return f"{self.trace}#{name}"

    def recorded(self):
        with sqlite3.connect(f"file:{self.trace}?mode=ro", uri=True) as trace:
            return dict(trace.execute("SELECT name, complete FROM run_summary"))

    def signal(self, name, what):
        """A signal of a recorded run as rows of floats, one row a token. Tokens with a NaN are left out."""
        rows = []
        with sqlite3.connect(f"file:{self.trace}?mode=ro", uri=True) as trace:
            chunks = trace.execute(
                "SELECT c.shape, c.data FROM chunk c JOIN signal s ON s.id = c.signal JOIN run r ON r.id = s.run"
                " WHERE r.name = ? AND s.name = ? AND c.dtype = 'F32' ORDER BY c.sequence, c.first_token",
                (name, what),
            )
            for shape, data in chunks:
                width = json.loads(shape)[1]
                values = array.array("f", data)
                if sys.byteorder == "big":
                    values.byteswap()
                rows += [values[at : at + width] for at in range(0, len(values), width)]
        return [row for row in rows if all(value == value for value in row)]

    def seeds(self, *models, options=(), suffix=""):
        """Runs of the models, a list for each seed that has all models: the models of the cabinet, then seeds 2 to 9 in --more."""
        lines = [[self.run(model, *options, name=model + suffix) for model in models]]
        for seed in range(2, 10):
            lines.append([self.run(f"{model}-seed{seed}", *options, name=f"{model}-seed{seed}{suffix}", folder=self.options.more) for model in models])
        return [line for line in lines if None not in line]

    def say(self, claim, paper, ours, verdict, scale=""):
        self.rows.append((claim, paper, ours, verdict, scale))

    def interval(self, claim, paper, value, wanted, what="", seeds=(), bound=0.0, spread=()):
        """`wanted`: the claimed sign of the figure minus `bound`. `seeds`: the figure for models from other seeds, which must give the same
        answer. `spread`: the figure for each seed, if `value` is already over all seeds."""
        values = [value, *seeds]
        if any(one[key] is None for one in values for key in ("value", "low", "high")):
            self.say(claim, paper, "not enough data for an interval", "not decided")
            return
        shown = f"{figure(value['value'])} [{figure(value['low'])}, {figure(value['high'])}]{what}"
        if seeds:
            shown += "; other seeds " + ", ".join(figure(one["value"]) for one in seeds)
        if bound:
            shown += f"; margin {abs(bound):g}"
        answers = {"not decided" if one["low"] <= bound <= one["high"] else "yes" if (one["low"] > bound) == (wanted > 0) else "no" for one in values}
        verdict = answers.pop() if len(answers) == 1 else "not decided"
        self.say(claim, paper, shown, verdict, scale_needed([{key: one[key] - bound for key in one} for one in map(bare, spread or values)]) if verdict == "not decided" else "")


def figure(value):
    return f"{value:+.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:+.1e}"


def bare(value):
    return {key: value[key] for key in ("value", "low", "high")}


def scale_needed(values):
    """What would decide a figure that does not change. One model: how many times the text, as an interval shrinks with the root of the
    tokens. Several seeds: how many seeds, for a power of 0.8 at the 5 % level."""
    mean = sum(one["value"] for one in values) / len(values)
    if mean == 0:
        return "unknown: the figure is 0"
    if len(values) == 1:
        times = ((values[0]["high"] - values[0]["low"]) / 2 / abs(mean)) ** 2
        return f"{max(times, 1):,.1f} times the text" if times < 1e4 else "10,000 times the text or more"
    spread = math.sqrt(sum((one["value"] - mean) ** 2 for one in values) / (len(values) - 1))
    return f"{max(len(values) + 1, math.ceil((2.8 * spread / mean) ** 2) + 1):,} seeds"


def share_interval(count, of):
    """Wilson's 95 % interval of a share."""
    z, share = 1.96, count / of
    middle, half = (share + z * z / (2 * of)) / (1 + z * z / of), z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return {"value": share, "low": middle - half, "high": middle + half}


def share_difference(a, b):
    """Newcombe's 95 % interval of the difference of two shares, each given as (count, of)."""
    a, b = share_interval(*a), share_interval(*b)
    value = a["value"] - b["value"]
    return {
        "value": value,
        "low": value - math.hypot(a["value"] - a["low"], b["high"] - b["value"]),
        "high": value + math.hypot(a["high"] - a["value"], b["value"] - b["low"]),
    }


def steps_of_tokens(bench):
    """Which tokens get how many steps."""
    papers = {
        "adaponderlm-neox": ("AdaPonderLM", "tokens that halt early have the lowest NLL"),
        "adaptive_latent_cot-llama": ("adaptive latent CoT", "longer trajectories on hard tokens"),
        "ponderlm3-llama": ("PonderLM-3", "harder tokens get more steps"),
    }
    for model, (method, paper) in papers.items():
        hard, early = f"{method}: tokens that are hard for the plain model get more steps", f"{method}: tokens with fewer steps have lower NLL"
        measured = [steps_of_model(bench.figures("stats", run, "--against", against, "--rows", 100000)) for run, against in bench.seeds(model, "vanilla-" + model.rsplit("-", 1)[1])]
        if not measured:
            for claim in (hard, early):
                bench.say(claim, paper, "", NO_MODEL)
            continue
        first, others = measured[0], measured[1:]
        for claim, key in ((hard, "hard"), (early, "early")):
            bench.interval(claim, paper, first[key], +1, " (Spearman)", [one[key] for one in others])
        paper_words = '"the", "of" drop it in 66–74 %, "a" in 0.07 % (PonderLM-3)'
        claim = f"{method}: frequent function words drop the last step more often than other tokens"
        if first["words"] is None:
            bench.say(claim, paper_words, first["shown"], "not decided")
        else:
            bench.interval(claim, paper_words, first["words"], +1, f" (difference of shares): {first['shown']}", [one["words"] for one in others if one["words"]])
        published = "about 2.4 of 3 at 1.4B" if "latent" in method else "3.7–3.8 of 4 passes" if method == "AdaPonderLM" else "0.90 of PonderLM-2's FLOPs"
        steps = first["steps"]
        shown = f"{steps['value']:.3f} [{steps['low']:.3f}, {steps['high']:.3f}] of {first['most']}"
        if others:
            shown += "; other seeds " + ", ".join(f"{one['steps']['value']:.3f}" for one in others)
        bench.say(f"{method}: mean steps", published, shown, "a figure, not a claim")


def steps_of_model(figures):
    found = {entry["with"]: entry["spearman"] for entry in figures["steps_correlations"]}
    shares = [entry for entry in figures["types"] if entry["name"] in (" the", " of", " a")]
    # The function words of the claim against all other types.
    groups = [[sum(e["count"] * e["drops_last_step"] for e in types), sum(e["count"] for e in types)] for types in (
        shares, [e for e in figures["types"] if e not in shares])]
    shown = ", ".join(f'"{entry["name"].strip()}" {100 * entry["drops_last_step"]:.0f} %' for entry in shares)
    words = None
    if shares and groups[1][1]:
        words = share_difference(*groups)
        shown += f"; others {100 * groups[1][0] / groups[1][1]:.0f} %"
    return {
        "hard": next(value for name, value in found.items() if name.startswith("NLL of")),
        "early": found["NLL"],
        "words": words,
        "shown": shown,
        "steps": figures["mean_steps"],
        "most": figures["max_steps"],
    }


def learned_against_random(bench):
    for model, method in (("adaponderlm-neox", "AdaPonderLM"), ("adaptive_latent_cot-llama", "adaptive latent CoT"), ("ponderlm3-llama", "PonderLM-3")):
        claim = f"{method}: the learned rule beats {{}} pruning at equal FLOPs (NLL)"
        found = [against_learned(bench, run) for run, in bench.seeds(model, options=("--policy", "full", "--record", "steps"), suffix=" full")]
        for rule in ("uniform", "geometric"):
            if found:
                bench.interval(claim.format(rule), "the learned gate wins", found[0][rule], +1, " (replay)", [one[rule] for one in found[1:]])
            else:
                bench.say(claim.format(rule), "the learned gate wins", "", NO_MODEL)


def against_learned(bench, run):
    """For each rule its NLL minus the learned rule's, at the FLOPs nearest to those of the model's own threshold."""
    rules = ("uniform", "geometric")
    figures = bench.figures("referee", run, "--policy", "learned", *(word for rule in rules for word in ("--policy", rule)), "--against", "learned")
    def distance(cell):
        return abs(cell["cost"] - figures["own"]["flops_per_token"])
    return {rule: min((cell for cell in figures["matched"] if cell["policy"] == rule and cell["at_equal"] == "flops"), key=distance)["difference"] for rule in rules}


# "As well as" allows this difference, in nats a token: 1 % of the perplexity, twice the difference in AdaPonderLM's paper.
MARGIN = 0.01


def compared(bench, claim, paper, better, worse, bound=0.0):
    """Tests that `better` has the lower NLL or, with `bound` -MARGIN, an NLL that is higher by less than MARGIN. The interval's lower end
    is then one of the two one-sided tests of equivalence, at 2.5 %."""
    pairs = bench.seeds(better, worse)
    if not pairs:
        bench.say(claim, paper, "", NO_MODEL)
        return
    each = [bench.figures("compare", *reversed(pair))["pairs"][0]["difference"] for pair in pairs]  # A - B: worse - better
    if len(pairs) < 2:
        bench.interval(claim, paper, each[0], +1, " nats", bound=bound)
        return
    # Seeds and text are drawn together. The two models of a seed saw the same data in the same order.
    both = bench.figures("compare", "--paired-seeds", *(",".join(runs) for runs in reversed(list(zip(*pairs)))))["methods"][0]["difference"]
    bench.interval(claim, paper, both, +1, f" nats over {len(pairs)} seeds: " + ", ".join(figure(one["value"]) for one in each), bound=bound, spread=each)


def jacobi(bench, iterations=8):
    """The factor by which the change of the latent inputs shrinks from one refresh of all slots to the next."""
    for model, method in (("ponderlm2-llama", "PonderLM-2"), ("ponderlm3-llama", "PonderLM-3")):
        claim = f"{method}: the Jacobi error shrinks with every iteration"
        paper = "error × 0.433 an iteration, as we read PonderLM-3"
        name = f"{model} jacobi {iterations}"
        # The passage is enough, because every token is a measurement.
        if bench.run(model, "--jacobi", iterations, name=name, text=bench.options.passage) is None:
            bench.say(claim, paper, "", NO_MODEL)
            continue
        rows = bench.signal(name, "jacobi_difference")
        means = column_means(rows)
        moving = sum(value > 1e-5 * means[0] for value in means)
        if moving < 2:
            bench.say(claim, paper, f"still after {moving} iteration(s)", "not decided", f"more than {moving} iteration(s) that move something")
            continue
        # Bootstrap over tokens: the mean factor, and the largest factor, which decides the verdict.
        chance = random.Random(20261122)
        drawn = [column_means(chance.choices(rows, k=len(rows)))[:moving] for _ in range(400)]
        mean = spread_of(values[-1] / values[0] for values in drawn)
        low, high = (value ** (1 / (moving - 1)) for value in mean)
        worst = spread_of(max(b / a for a, b in zip(values, values[1:])) for values in drawn)
        factor = (means[moving - 1] / means[0]) ** (1 / (moving - 1))
        shown = f"factor {factor:.3f} [{low:.3f}, {high:.3f}] an iteration on average, largest {worst[0]:.2f}–{worst[1]:.2f}; mean change by iteration " + ", ".join(f"{value:.2g}" for value in means) + f" ({len(rows)} tokens)"
        bench.say(claim, paper, shown, "yes" if worst[1] < 1 else "no" if worst[0] > 1 else "not decided")


def column_means(rows):
    return [sum(column) / len(rows) for column in zip(*rows)]


def spread_of(values):
    """The 95 % percentile interval."""
    values = sorted(values)
    return values[int(0.025 * len(values))], values[math.ceil(0.975 * len(values)) - 1]


def penalty_curves(bench):
    """Mean steps of adaptive latent CoT for several lambda (the weight of its penalty), and for several beta."""
    model = "adaptive_latent_cot-llama"
    for claim, key, paper in (
        ("adaptive latent CoT: a larger lambda gives fewer steps", "lambda", "mean steps fall with lambda"),
        ("adaptive latent CoT: a larger beta lowers the penalty of poorly predicted tokens, so steps rise", "beta", "beta decides where steps go"),
    ):
        points = []
        for folder in sorted(bench.options.more.glob(f"{model}-{key}*")):
            run = bench.run(folder.name, folder=bench.options.more)
            if run is not None:
                figures = bench.figures("stats", run)
                points.append((float(folder.name.rsplit(key, 1)[1]), figures["mean_steps"], figures["mean_nll"]["value"]))
        points.sort(key=lambda point: point[0])
        if len(points) < 2:
            bench.say(claim, paper, "", NO_MODEL)
            continue
        shown = "; ".join(f"{key} {value:g}: {steps['value']:.3f} [{steps['low']:.3f}, {steps['high']:.3f}] steps, NLL {nll:.3f}" for value, steps, nll in points)
        wanted = -1 if key == "lambda" else +1
        order = [wanted * (b["value"] - a["value"]) for (_, a, _), (_, b, _) in zip(points, points[1:])]
        first, last = points[0][1], points[-1][1]
        apart = first["low"] > last["high"] or last["low"] > first["high"]
        verdict = "yes" if apart and all(step >= 0 for step in order) else "no" if apart and wanted * (last["value"] - first["value"]) < 0 else "not decided"
        bench.say(claim, paper, shown, verdict)


def at_equal_training_flops(bench):
    """A model with three further steps against the plain model that saw four times the tokens."""
    paper = "better at the same training FLOPs"
    for model, name, plain in (("ponderlm-neox", "PonderLM", "vanilla-neox"), ("ponderlm2-llama", "PonderLM-2", "vanilla-llama")):
        claim = f"{name} predicts better than the plain model at equal training FLOPs (the plain model sees four times the tokens)"
        runs = [bench.run(model), bench.run(f"{plain}-flops4", folder=bench.options.more)]
        if None in runs:
            bench.say(claim, paper, "", NO_MODEL)
            continue
        bench.interval(claim, paper, bench.figures("compare", *reversed(runs))["pairs"][0]["difference"], +1, " nats")


def methods_against_each_other(bench):
    lower = "lower perplexity at every size"
    compared(bench, "PonderLM predicts better than the plain model at equal tokens", lower, "ponderlm-neox", "vanilla-neox")
    compared(bench, "PonderLM predicts better than the looped model at equal tokens", lower, "ponderlm-neox", "looped-neox")
    compared(bench, "AdaPonderLM predicts as well as PonderLM with fewer steps", "perplexity 14.32 against 14.40 at 70M", "adaponderlm-neox", "ponderlm-neox", -MARGIN)
    for other, name in (("vanilla", "the plain model"), ("denseformer", "DenseFormer"), ("attnres", "Block AttnRes"), ("mhc", "mHC")):
        compared(bench, f"Depth-Attention predicts better than {name} at equal tokens", "lower perplexity", "depth_attention-llama", f"{other}-llama")
    compared(bench, "PonderLM-2 predicts better than the plain model at equal tokens", lower, "ponderlm2-llama", "vanilla-llama")
    compared(bench, "PonderLM-3 predicts as well as PonderLM-2 or better, at fewer FLOPs", "average score 46.4 against 46.0, at 0.90 of the FLOPs", "ponderlm3-llama", "ponderlm2-llama", -MARGIN)


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for place in order[at:end]:
            result[place] = (at + end - 1) / 2
        at = end
    return result


def correlation(xs, ys):
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys))
    spread = (sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys)) ** 0.5
    return covariance / spread if spread > 0 else 0.0


def block_interval(xs, ys, replicates=400, block=64, seed=20261122):
    """Spearman's correlation with its percentile interval from moving blocks. Ranks are those of the whole sample."""
    chance, n = random.Random(seed), len(xs)
    xs, ys = ranks(xs), ranks(ys)
    found = []
    for _ in range(replicates):
        chosen_x, chosen_y = [], []
        while len(chosen_x) < n:
            begin = chance.randrange(max(1, n - block + 1))
            chosen_x += xs[begin : begin + block]
            chosen_y += ys[begin : begin + block]
        found.append(correlation(chosen_x[:n], chosen_y[:n]))
    found.sort()
    return {"value": correlation(xs, ys), "low": found[int(0.025 * replicates)], "high": found[int(0.975 * replicates) - 1]}


def known_difficulty(bench):
    folder = bench.options.known_difficulty
    for model in ("adaponderlm", "adaptive_latent_cot"):
        claim = f"{model}: characters of higher known difficulty get more steps"
        run = folder and bench.run(model, name=f"known {model}", folder=folder, text=folder / "held_out.txt")
        if not run:
            bench.say(claim, "", "", NO_MODEL)
            continue
        with open(folder / "held_out.labels.csv", encoding="ascii", newline="") as file:
            difficulty = {int(row["begin"]): int(row["difficulty"]) for row in csv.DictReader(file) if row["difficulty"]}
        with sqlite3.connect(f"file:{bench.trace}?mode=ro", uri=True) as trace:
            (number,) = trace.execute("SELECT id FROM run_summary WHERE name = ?", (f"known {model}",)).fetchone()
            # A token's numbers describe the prediction of the next token, whose text begins at this token's text_end.
            tokens = trace.execute("SELECT text_end, steps FROM token WHERE run = ? AND nll IS NOT NULL ORDER BY sequence, position", (number,))
            pairs = [(difficulty[end], steps) for end, steps in tokens if end in difficulty]
        bench.interval(claim, "", block_interval([a for a, _ in pairs], [b for _, b in pairs]), +1, f" (Spearman, {len(pairs):,} characters)")


def write(bench):
    with open(bench.options.out / "claims.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["claim", "paper", "ours", "verdict", "to decide"])
        rows.writerows(bench.rows)
    options = bench.options
    lines = [
        "# The papers' claims on the sample models",
        "",
        f"Written by `sample_models/reproduce.py` on {options.text.stat().st_size:,} bytes of {options.text.stem.replace('_', ' ')}, with {options.replicates:,} bootstrap replicates.",
        "These models have about a million parameters; most were trained on half a million tokens. Rows are results about these models, not methods.",
        "Two methods are compared over their common seeds: the bootstrap draws seeds and text together. A claim about one method is decided if all its seeds agree. A positive difference or correlation supports the claim.",
        "Known difficulty counts the facts that a prediction must combine.",
        "`to decide`: the text or seeds that would decide the claim if `ours` stays the same.",
        "",
        "| claim | paper | ours | verdict | to decide |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in bench.rows]
    (bench.options.out / "claims.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def main():
    root = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, default=root.parent / "build" / "sample_models" / "cabinet")
    parser.add_argument("--known-difficulty", type=pathlib.Path)
    parser.add_argument("--more", type=pathlib.Path, default=root.parent / "build" / "more_models")
    parser.add_argument("--passage", type=pathlib.Path, default=root / "texts" / "passage.txt")
    parser.add_argument("--out", type=pathlib.Path, default=root.parent / "build" / "reproduce")
    parser.add_argument("--ponderscope", type=pathlib.Path, default=root.parent / "build" / "release" / "bin" / "ponderscope")
    parser.add_argument("--replicates", type=int, default=2000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    for part in (steps_of_tokens, learned_against_random, methods_against_each_other, at_equal_training_flops, jacobi, penalty_curves, known_difficulty):
        part(bench)
    write(bench)


if __name__ == "__main__":
    main()
