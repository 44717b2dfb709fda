"""``python -m evalkit``."""

from evalkit.cli import main

if __name__ == "__main__":
    main(prog_name="evalkit")
