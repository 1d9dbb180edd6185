#!/bin/sh
# Makes a Python environment from a pinned list and keeps it while the list is unchanged.
# usage: venv.sh FOLDER REQUIREMENTS
#
# The checksum of the list is written into the folder when everything is installed, so an interrupted
# installation starts again. Whoever comes while another makes the same folder waits for it.
set -eu
folder=$1 list=$2
stamp=$folder/requirements.sha256
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
sum=$(sha256sum <"$list")
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ] && "$folder/bin/python" -c '' 2>/dev/null; then
    exit 0
fi
echo "Making $folder from $list"
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list"
printf '%s\n' "$sum" >"$stamp"
