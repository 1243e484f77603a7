#!/bin/sh
# Installs requirements.txt into FOLDER unless it is there already: install.sh PYTHON FOLDER
set -eu
python=$1 folder=$2
wanted=$(dirname "$0")/requirements.txt
cmp -s "$wanted" "$folder/installed.txt" && exit 0
rm -rf "$folder"
"$python" -m pip install --quiet --disable-pip-version-check --no-input --retries 3 --target "$folder" -r "$wanted"
cp "$wanted" "$folder/installed.txt"
