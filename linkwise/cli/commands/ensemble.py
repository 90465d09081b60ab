"""``linkwise ensemble``: run a study file, see how far it is, go on with it, report on it, play a member again."""

from __future__ import annotations

import runpy
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.cli.arguments import load_model
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.studies.results import Results, open_results
from linkwise.studies.running import StudyInterrupted, run_study
from linkwise.studies.study_files import StudyFile, read_study


def run_ensemble(options: Namespace) -> None:
    """Do what was asked."""
    found = _read(options)
    {"run": _run, "resume": _run, "status": _status, "report": _report, "replay": _replay}[options.action](
        found, options
    )


def _read(options: Namespace) -> StudyFile:
    code = None
    if options.code is not None:  # named by the user, not by the study
        code = runpy.run_path(options.code)
    return read_study(
        options.study, _load, model=options.model, store=options.store, members=options.members, code=code
    )


def _load(name: str, how: Mapping[str, Any]) -> Model:
    locked = how["locked"]
    names = [f"{joint}={value}" for joint, value in locked.items()] if isinstance(locked, dict) else list(locked)
    return load_model(Namespace(model=name, floating=bool(how["floating"]), lock=names))


def _run(found: StudyFile, options: Namespace) -> None:
    try:
        results = run_study(
            found.study, store=found.store, resume=options.action == "resume", client=options.client,
            workers=options.workers, threads=options.threads, batch=found.batch,
        )  # fmt: skip
    except StudyInterrupted as interrupt:
        how = f"to go on: linkwise ensemble resume {options.study}"
        raise StudyInterrupted(interrupt.done, interrupt.members, interrupt.folder, how) from None
    print(results.summary())
    print(f"results are in {found.store}")


def _status(found: StudyFile, options: Namespace) -> None:
    results = open_results(found.store)
    store = results.store
    done = store.finished()
    seconds = sum(store.record(number)["seconds"] for number in done)
    counts = results.counts
    members = results.members - counts.get("not run", 0)
    print(f"{found.store}: {members} of {results.members} members, {len(done)} of {store.blocks} blocks")
    print("  " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    if members:
        left = (results.members - members) * seconds / members
        print(f"  {seconds:.3g} s of work so far; about {left:.3g} s left, over all workers")
    machines = {store.record(number)["machine"] for number in done}
    print("".join(f"  run on {machine}\n" for machine in sorted(machines)), end="")
    damaged = store.damaged()
    if damaged:
        print(f"  damaged, to be run again by `resume`: blocks {', '.join(map(str, damaged))}")


def _report(found: StudyFile, options: Namespace) -> None:
    results = open_results(found.store, found.study)
    target = Path(options.output or f"{Path(options.study).stem}.html")
    given = f" --code {options.code}" if options.code else ""
    print(
        results.report(
            target, worst=options.worst, smallest=options.smallest,
            replay=f"linkwise ensemble replay {options.study}{given} --member",
        )
    )  # fmt: skip


def _replay(found: StudyFile, options: Namespace) -> None:
    if options.member is None:
        raise InputError("which member?", do="give --member NUMBER")
    results = Results(open_results(found.store).store, found.study)
    study = found.study
    t0, duration = float(study.settings.get("t0", 0.0)), float(study.settings.get("duration", 10.0))
    motion = results.replay(options.member, output_times=np.linspace(t0, t0 + duration, options.samples))
    same = "the same bits as stored" if results.check(options.member) else "OTHER bits than stored: see the manifest"
    target = Path(options.output or f"member_{options.member}.npz")
    print(f"member {options.member}: {motion.status}, {same}; {motion.save(target)}")
