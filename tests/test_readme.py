"""What the README shows runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_is_an_example():
    assert EXAMPLES


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=README.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
