#!/usr/bin/env python
"""Django's command line, for this project."""

if __name__ == "__main__":
    from project.command_line import main

    main()
