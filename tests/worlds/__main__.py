"""Live through worlds for a while: `make worlds SECONDS=600 SEED=17 STORE=sqlite`."""

import os
import sys

from tests.worlds.lanes import main

if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is a part of the story.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.worlds", *sys.argv[1:]])
    sys.exit(main())
