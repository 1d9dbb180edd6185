#!/bin/sh
# Stands in for a Python that has the CuTe compiler's package: what it is told to run is not run.
exec python3 "$(dirname "$0")/fake_worker.py"
