#!/usr/bin/env python3
"""Synchronous against asynchronous ND-CAO, in pairs: same seed, same grid of steps, same cluster.

    benchmarks/nd_cao_modes.py [--experiment FILE] [--seeds 1,2,3,4,5] [--steps 0.06,0.12,0.24]
                               [--evaluations 1000] [--objective-images N] [--event straggler]
                               [--out DIR]

Runs `nd_cao_sync` and `nd_cao_async` of the experiment (default: configs/quickstart.yaml) for every
seed and step, then once more a seed without the event, each mode at its best step. The best step of
a mode is the one with the lowest mean final loss over the seeds. Prints, and writes to
DIR/modes.json:

 - the final loss (the best composite's, on the objective set) of both modes by step and seed;
 - async minus sync, paired by seed: mean and 95 % interval by Student's t. An interval that
   contains 0 shows no difference; one below it is in async's favour;
 - the emulated time in which async reaches the loss with which sync of the same seed ends, over the
   time that sync took to reach it: below 1, async is faster. `never` where it does not reach it;
 - the same to the higher of the two final losses, which both reach.

A run that DIR holds already is not repeated, so an interrupted study goes on where it stopped.
"""

import argparse
import csv
import json
import math
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ("sync", "async")

# Two-sided 95 % points of Student's t by degrees of freedom (any table of it).
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def run_pair(options, seed, steps, without, out):
    """Both modes side by side; `steps` gives each its step. Leaves DIR/nd_cao_MODE."""
    if (out / "summary.json").exists():
        return
    shutil.rmtree(out, ignore_errors=True)  # what an interrupted study left
    command = [str(options.orrery), "run", str(options.experiment), "--out", str(out)]
    command += ["--quiet", "--seed", str(seed)]
    for mode in MODES:
        name = f"nd_cao_{mode}"
        command += ["--only", name]
        command += ["--set", f"runs.{name}.options.step={steps[mode]}"]
        command += ["--set", f"runs.{name}.stop.evaluations={options.evaluations}"]
    if options.objective_images:
        command += ["--set", f"workload.objective_images={options.objective_images}"]
    for event in without:
        command += ["--without", event]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"nd_cao_modes: exit status {done.returncode} of: {' '.join(command)}")


def trajectory(folder):
    """[(emulated seconds, best loss so far)] of a run, by evaluation."""
    with open(folder / "steps.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["phase"] == "evaluation"]
    return [(float(row["t"]), float(row["best"])) for row in rows]


def time_to(loss, points):
    return next((t for t, best in points if best <= loss), None)


def interval(values):
    """Mean and half-width of the 95 % interval."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan
    t = T95.get(len(values) - 1, 1.96)
    return mean, t * statistics.stdev(values) / math.sqrt(len(values))


def ratios(folders, target_of):
    """async's time to a loss over sync's, by seed; None where never."""
    result = []
    for folder in folders:
        sync, other = (trajectory(folder / f"nd_cao_{mode}") for mode in MODES)
        target = target_of(sync[-1][1], other[-1][1])
        reached = time_to(target, other)
        result.append(None if reached is None else reached / time_to(target, sync))
    return result


def describe(values):
    known = [v for v in values if v is not None]
    text = ", ".join("never" if v is None else f"{v:.3f}" for v in values)
    if known:
        text += f"   median of those that reach it {statistics.median(known):.3f}"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda kind: lambda text: [kind(part) for part in text.split(",")]
    parser.add_argument("--experiment", default=ROOT / "configs/quickstart.yaml")
    parser.add_argument("--orrery", default=ROOT / "build/release/bin/orrery")
    parser.add_argument("--seeds", type=numbers(int), default=[1, 2, 3, 4, 5])
    parser.add_argument("--steps", type=numbers(float), default=[0.06, 0.12, 0.24])
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--objective-images", type=int, help="default: the experiment's")
    parser.add_argument("--event", default="straggler")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/nd-cao-modes"))
    options = parser.parse_args()

    def folder(seed, step):
        return options.out / f"step-{step}-seed-{seed}"

    losses = {mode: {} for mode in MODES}
    for step in options.steps:
        for mode in MODES:
            losses[mode][step] = []
        for seed in options.seeds:
            run_pair(options, seed, dict.fromkeys(MODES, step), [], folder(seed, step))
            for mode in MODES:
                points = trajectory(folder(seed, step) / f"nd_cao_{mode}")
                losses[mode][step].append(points[-1][1])

    print(f"{options.evaluations} evaluations, seeds {options.seeds}, {options.experiment}")
    result = {"seeds": options.seeds, "evaluations": options.evaluations, "final_loss": losses}
    result["difference"] = {}
    for step in options.steps:
        pairs = [b - a for a, b in zip(losses["sync"][step], losses["async"][step])]
        mean, half = interval(pairs)
        result["difference"][step] = {"pairs": pairs, "mean": mean, "half_width_95": half}
        for mode in MODES:
            values = " ".join(f"{v:.4f}" for v in losses[mode][step])
            print(f"step {step:<6} {mode:<6} {values}   mean {statistics.fmean(losses[mode][step]):.4f}")
        print(f"step {step:<6} async - sync: {mean:+.4f} ± {half:.4f}")

    best = {m: min(options.steps, key=lambda s: statistics.fmean(losses[m][s])) for m in MODES}
    pairs = [b - a for a, b in zip(losses["sync"][best["sync"]], losses["async"][best["async"]])]
    mean, half = interval(pairs)
    print(f"each at its best step (sync {best['sync']}, async {best['async']}): "
          f"async - sync {mean:+.4f} ± {half:.4f}")
    result["best_step"] = best
    result["difference_at_best"] = {"pairs": pairs, "mean": mean, "half_width_95": half}

    for label, without in (("with", []), ("without", [options.event])):
        folders = []
        for seed in options.seeds:
            folders.append(options.out / f"best-{label}-seed-{seed}")
            same = best["sync"] == best["async"] and not without
            if same:
                folders[-1] = folder(seed, best["sync"])
            run_pair(options, seed, best, without, folders[-1])
        for what, target_of in (("sync's final loss", lambda sync, other: sync),
                                ("the higher final loss", max)):
            values = ratios(folders, target_of)
            result[f"time_ratio_{label}_to {what}"] = values
            print(f"{label} {options.event}: async's time to {what}, over sync's: "
                  f"{describe(values)}")
    (options.out / "modes.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
