"""That benchmarks which take a few seconds still work."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.places import ROOT_FOLDER


@pytest.mark.slow
def test_schemas_are_measured_quickly() -> None:
    command = [sys.executable, ROOT_FOLDER / "benchmarks" / "schemas.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "five fields: 500 rows with five responses" in done.stdout


@pytest.mark.slow
def test_trade_offs_are_measured_quickly() -> None:
    command = [sys.executable, ROOT_FOLDER / "benchmarks" / "tradeoff.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "indicators of 2,000 points, 3 objectives" in done.stdout


@pytest.mark.slow
def test_the_steps_are_measured_quickly() -> None:
    command = [sys.executable, ROOT_FOLDER / "benchmarks" / "steps.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lineage table of 1,000 examples" in done.stdout
    assert "the path by the SDKs' names, 100 examples" in done.stdout


@pytest.mark.slow
def test_feedback_is_measured_quickly() -> None:
    command = [sys.executable, ROOT_FOLDER / "benchmarks" / "feedback.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "9-step Selector.select" in done.stdout


@pytest.mark.slow
def test_ratings_are_measured_quickly() -> None:
    command = [sys.executable, ROOT_FOLDER / "benchmarks" / "ratings.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "10,000 matches × 50 systems × 1,000 replicates" in done.stdout
    assert "| 4 | 20 | all pairs, both orders | 2 | 0.8 | davidson |" in done.stdout


@pytest.mark.slow
def test_matches_are_measured_quickly() -> None:
    command = [sys.executable, ROOT_FOLDER / "benchmarks" / "matches.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\nreuse              1,800" in done.stdout


@pytest.mark.slow
def test_schedules_are_simulated_quickly() -> None:
    command = [sys.executable, ROOT_FOLDER / "benchmarks" / "schedules.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\n     10    1000     1.0" in done.stdout
