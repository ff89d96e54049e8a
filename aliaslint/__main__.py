"""`python -m aliaslint`."""

from aliaslint.cli.main import main

if __name__ == "__main__":
    main()
