"""``python -m linkwise.cli``."""

import sys

from linkwise.cli import main

sys.exit(main())
