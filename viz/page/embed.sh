#!/bin/sh
# Prints the files of this folder as strings in C source (page_parts.h).
set -eu
cd "$(dirname "$0")"

text() {
    printf 'const char esp_page_%s[] =\n' "$1"
    sed 's/[\\"?]/\\&/g; s/^/    "/; s/$/\\n"/' "$2"
    echo ';'
}

# The digest of a file, as a policy names it; the digits of sha256sum become bytes again.
hash() {
    digits=$(sha256sum <"$2" | cut -c-64 | sed 's/../\\x&/g')
    printf 'const char esp_page_%s_hash[] = "%s";\n' "$1" "$(env printf "$digits" | base64)"
}

echo '#include "viz/page/page_parts.h"'
text html page.html
text style page.css
text script page.js
hash style page.css
hash script page.js
