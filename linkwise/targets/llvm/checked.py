"""Whether kernels are to be checked builds, see :mod:`linkwise.targets.llvm.bounds`; asked before each is made."""

from __future__ import annotations

import os


def wanted() -> bool:
    """Whether kernels are to be checked builds: the environment says ``LINKWISE_DEBUG=1``."""
    return os.environ.get("LINKWISE_DEBUG", "0").lower() not in ("", "0", "off", "no", "false")
