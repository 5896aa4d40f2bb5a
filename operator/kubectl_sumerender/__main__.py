"""`python -m kubectl_sumerender`: the same as the console script."""

from kubectl_sumerender.cli import main

main()
