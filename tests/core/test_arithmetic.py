"""Every processor is asked for the same instructions, before a library has chosen its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lib.core import arithmetic
from lib.core.arithmetic import SETTINGS, ask_for, has_avx2, in_force, processor, variables
from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT

ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
NAMES = sorted(ONE_THREAD.keys() | {name for chosen in SETTINGS.values() for name in chosen})


@pytest.fixture
def no_wishes(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that asks for nothing."""
    for name in ("TOUCHSTONE_ARITHMETIC", *NAMES):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def fresh(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, whose environment asks for nothing else."""
    wishless = {name: value for name, value in os.environ.items() if name not in NAMES}
    wishless.pop("TOUCHSTONE_ARITHMETIC", None)
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=wishless | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TouchstoneError, match="ARITHMETIC is 'avx3'; did you mean 'avx2'?"):
        variables("avx3")
    with pytest.raises(TouchstoneError, match="'Natif'; did you mean 'native'?"):
        ask_for("Natif")


@pytest.mark.parametrize(
    "setting, torch_is_asked_for, blas_is_asked_for, n_threads",
    [
        ("avx2", "avx2", "Haswell", "1"),
        ("narrow", "default", "Nehalem", "1"),
        ("mixed", "avx2", None, "1"),
        ("two_threads", "avx2", "Haswell", "2"),
        ("native", None, None, "1"),
    ],
)
def test_each_setting_has_its_variables(
    no_wishes: pytest.MonkeyPatch,
    setting: str,
    torch_is_asked_for: str | None,
    blas_is_asked_for: str | None,
    n_threads: str,
) -> None:
    asked = variables(setting)
    assert asked.get("ATEN_CPU_CAPABILITY") == torch_is_asked_for
    assert asked.get("OPENBLAS_CORETYPE") == blas_is_asked_for
    assert asked["OMP_NUM_THREADS"] == n_threads and asked["TOKENIZERS_PARALLELISM"] == "false"
    assert asked == ONE_THREAD | SETTINGS[setting]


def test_avx2_is_asked_of_every_library_and_no_setting_asks_for_more() -> None:
    assert set(SETTINGS["avx2"]) == {
        "ATEN_CPU_CAPABILITY",
        "ONEDNN_MAX_CPU_ISA",
        "MKL_CBWR",
        "OPENBLAS_CORETYPE",
        "NPY_DISABLE_CPU_FEATURES",
    }
    assert set(SETTINGS["narrow"]) == set(SETTINGS["avx2"]), "nothing is left at what it finds"
    assert "X86_V4" in SETTINGS["avx2"]["NPY_DISABLE_CPU_FEATURES"], "numpy's name of AVX-512"


def test_native_leaves_what_you_set_yourself(no_wishes: pytest.MonkeyPatch) -> None:
    no_wishes.setenv("OMP_NUM_THREADS", "8")
    no_wishes.setenv("ATEN_CPU_CAPABILITY", "avx512")
    assert variables("native") == {"TOKENIZERS_PARALLELISM": "false"}
    ask_for("native")
    assert (os.environ["OMP_NUM_THREADS"], os.environ["ATEN_CPU_CAPABILITY"]) == ("8", "avx512")
    assert variables("avx2")["OMP_NUM_THREADS"] == "1", "and only native does"


def test_the_setting_in_force(no_wishes: pytest.MonkeyPatch) -> None:
    no_wishes.setattr(arithmetic, "has_avx2", lambda: True)
    assert in_force() == "avx2"
    no_wishes.setenv("TOUCHSTONE_ARITHMETIC", "narrow")
    assert in_force() == "narrow"
    no_wishes.setattr(arithmetic, "has_avx2", lambda: False)
    assert in_force() == "native", "no other processor can be asked for these instructions"


def test_an_arm_processor_has_no_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert not has_avx2()


@pytest.mark.slow
def test_a_fresh_process_computes_with_avx2() -> None:
    if not has_avx2():
        pytest.skip(f"needs a processor with AVX2, and this is {processor()}")
    code = (
        "import lib.same_numbers, torch\n"
        "print(torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())"
    )
    process = fresh(code)
    assert process.stdout == "AVX2 1\n", process.stderr


def test_numpy_before_the_wish_is_refused_with_the_remedy() -> None:
    if not has_avx2():
        pytest.skip(f"needs a processor with AVX2, and this is {processor()}")
    too_late = fresh("import numpy, lib.same_numbers")
    assert too_late.returncode == 1
    assert "numpy was imported before lib.same_numbers" in too_late.stderr
    assert "restart Python (or the kernel)" in too_late.stderr
    assert "make `import lib.same_numbers` the first import" in too_late.stderr
    in_time = fresh("import numpy, lib.same_numbers", **variables("avx2"))
    assert in_time.returncode == 0, "what has been asked for already is no matter of order"
