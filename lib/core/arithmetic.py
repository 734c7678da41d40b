"""Which instructions the libraries compute with: the same on every processor, for the same numbers.

Libraries choose their fastest kernels at their first import, by the processor that they find.
AVX-512 kernels add up in another order than AVX2 kernels; the last digits differ, and sixty epochs
of training make an early stop of them. So notebooks, tests and the runner ask all libraries for
AVX2 (`import lib.same_numbers`, first), which nearly every x86-64 processor since 2015 has: the
numbers are then the same to the last bit (measured on two processors, CONTRIBUTING.md). Where wider
kernels pay, a long run may say `native`.

    TOUCHSTONE_ARITHMETIC=native make <study> SCALE=cpu   the widest kernels of the processor

Other processors (ARM) are left alone; the numbers there are untested.
"""

import os
import platform
import sys
from pathlib import Path

from .errors import TouchstoneError, did_you_mean

_MIXED = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2"}
_AVX2 = _MIXED | {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",  # the BLAS of numpy, and through scipy's that of scikit-learn
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
SETTINGS: dict[str, dict[str, str]] = {
    "avx2": _AVX2,
    "native": {},  # what the libraries choose, or what you ask them for yourself
    "narrow": {  # kernels of 2008: nobody's processor is slower than this
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    },
    "mixed": _MIXED,  # AVX2 beside wider products
    "two_threads": _AVX2 | {"OMP_NUM_THREADS": "2"},
}
_THREADS = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def variables(setting: str) -> dict[str, str]:
    """The environment variables that ask for a setting, with their values.

    Args:
        setting: a name of `SETTINGS`; under `native` a variable that is set already is left alone.

    Raises:
        TouchstoneError: there is no such setting.
    """
    if setting not in SETTINGS:
        raise TouchstoneError(
            f"TOUCHSTONE_ARITHMETIC is {setting!r}{did_you_mean(setting, SETTINGS)}"
        )
    if setting == "native":
        return {name: value for name, value in _THREADS.items() if name not in os.environ}
    return _THREADS | SETTINGS[setting]


def ask_for(setting: str) -> None:
    """Ask for a setting's instructions, in this process and in those that it starts.

    Raises:
        TouchstoneError: there is no such setting, or numpy is loaded and has chosen already.
    """
    missing = {
        name: value for name, value in variables(setting).items() if os.environ.get(name) != value
    }
    # Threads are no reason to refuse: `lib.core.seeds.set_up` sets those of PyTorch again.
    if "numpy" in sys.modules and set(missing) - set(_THREADS):
        raise TouchstoneError(
            "numpy was imported before lib.same_numbers, and has chosen its instructions already; "
            "restart Python (or the kernel) and make `import lib.same_numbers` the first import"
        )
    os.environ.update(missing)  # child processes and kernels inherit it


def in_force() -> str:
    """This process's setting: `TOUCHSTONE_ARITHMETIC`, else avx2; native where there is no AVX2."""
    return os.environ.get("TOUCHSTONE_ARITHMETIC", "avx2") if has_avx2() else "native"


def has_avx2() -> bool:
    """Whether this processor has AVX2; taken for granted on x86-64 without /proc/cpuinfo."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    flags = Path("/proc/cpuinfo")
    return not flags.is_file() or " avx2 " in flags.read_text()


def processor() -> str:
    """The processor's name, and the widest instructions that it has."""
    flags = Path("/proc/cpuinfo")
    lines = flags.read_text().splitlines() if flags.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    widest = (
        "AVX-512"
        if any(" avx512f " in line for line in lines)
        else "AVX2"
        if has_avx2()
        else platform.machine()
    )
    return f"{names[0] if names else platform.processor() or platform.machine()} ({widest})"
