"""`python -m dabnet` is the `dabnet` command."""

from dabnet.cli import main

if __name__ == "__main__":
    main()
