"""Whether the first token of a file is still good.

usage: still.py URL AUTH
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from glovebox import Glovebox, Unauthenticated

token = json.loads(Path(sys.argv[2]).read_text())["auth"][0]["fixedHeaders"][0]["value"]
with Glovebox(sys.argv[1], token.removeprefix("Bearer ")) as client:
    try:
        client.whoami()
    except Unauthenticated:
        sys.exit(1)
