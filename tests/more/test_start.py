"""A notebook runs from the committed hand-over alone, without any training."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib import cli
from lib.core.handover import PACKED
from lib.core.runner import plan_jobs, run_job

pytestmark = pytest.mark.more


@pytest.mark.parametrize("study", PACKED)
def test_stage_04_runs_alone(study: str, small_outputs: Path, capsys) -> None:
    assert cli.main(["start", study, "04"]) == 0
    assert "ready" in capsys.readouterr().out
    jobs = {job.stage: job for job in plan_jobs(study, "small")}
    for stage in dict.fromkeys(["04_metrics", PACKED[study]]):  # an appendix reads stage 04, too
        run_job(jobs[stage], stage)
    assert (jobs["04_metrics"].folder / "claims.csv").is_file()


def test_stage_05_runs_alone(small_outputs: Path) -> None:
    assert cli.main(["start", "cebab", "05"]) == 0
    (job,) = (job for job in plan_jobs("cebab", "small") if job.stage == "05_figures")
    run_job(job, job.stage)
    assert list(job.folder.glob("*.png"))


def test_stage_03_runs_alone_cut_down_for_a_lesson(small_outputs: Path, capsys) -> None:
    assert cli.main(["start", "lm_saliency", "03", "--scale", "lesson"]) == 0
    assert "`touchstone run lm_saliency --scale lesson --stage 03_" in capsys.readouterr().out
    (job,) = (job for job in plan_jobs("lm_saliency", "lesson") if job.stage == "03_attribution")
    run_job(job, job.stage)
    assert (job.folder / "lines.parquet").is_file()
