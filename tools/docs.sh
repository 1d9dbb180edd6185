#!/bin/sh
# Builds the documentation as a site in BUILD_DIR/docs.
# usage: docs.sh BUILD_DIR PYTHON, a python that has mkdocs
#
# The pages are gathered in BUILD_DIR/docs-source first, because some are generated and some stand in
# the root. A broken link between pages is an error.
set -eu
build=$1 python=$2
source=$build/docs-source
rm -rf "$source"
mkdir -p "$source/pages"
cp -R docs/. "$source/pages"
rm -f "$source/pages/requirements.txt"
if [ -x "$build/bin/tkgen" ]; then "$build/bin/tkgen" docs "$source/pages/ops.md"; fi
# A page for each module of the Python package, from the built one, and for each public header.
PYTHONPATH=$build/python "$python" tools/docs_python.py "$source/pages/python"
mkdir -p "$source/pages/c"
for header in include/tiki/*.h; do
    name=$(basename "$header" .h)
    { printf '# tiki/%s.h\n\n```c\n' "$name"; cat "$header"; printf '```\n'; } >"$source/pages/c/$name.md"
done
for page in README CONTRIBUTING CHANGELOG; do
    cp "$page.md" "$source/pages/$(echo "$page" | tr '[:upper:]' '[:lower:]').md"
done
# Links between pages of the root and of docs/ become links within the site; a link to a file that
# has no page (the licence, a source) becomes its text.
find "$source/pages" -name '*.md' | while read -r page; do
    sed -i -e 's|](\.\./README\.md|](index.md|g' \
        -e 's|](\(\.\./\)*CONTRIBUTING\.md|](\1contributing.md|g; s|](\(\.\./\)*CHANGELOG\.md|](\1changelog.md|g' \
        -e 's|](docs/|](|g; s|](\.\./\(contributing\|changelog\)|](\1|g' \
        -e 's|\[\([^]]*\)\](\(\.\./\)*[A-Za-z_/]*\(LICENSE\|\.[ch]\|\.def\))|\1|g' "$page"
done
mv "$source/pages/readme.md" "$source/pages/index.md"
cat >"$source/mkdocs.yml" <<EOT
site_name: Tiki
docs_dir: pages
site_dir: $(cd "$build" && pwd)/docs
theme: readthedocs
use_directory_urls: false
EOT
"$python" -m mkdocs build --quiet --strict --config-file "$source/mkdocs.yml"
echo "docs: $build/docs/index.html"
