#!/bin/sh
# Prints the files of this folder as strings in C source (page_parts.h).
set -eu
cd "$(dirname "$0")"

text() {
    printf 'const char esp_page_%s[] =\n' "$1"
    sed 's/[\\"?]/\\&/g; s/^/    "/; s/$/\\n"/' "$2"
    echo ';'
}

# Prints the SHA-256 of a file in base64, as a content security policy needs it. For this, the hexadecimal digits of
# sha256sum are converted back to bytes.
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
