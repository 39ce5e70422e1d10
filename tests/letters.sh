# letters.sh - makes a tokenizer for the small models of tests/vectors, which have 97 tokens. Source this file.

# Prints a tokenizer.json. It has a token for each printable character, the space, the end of a line and the end of the text.
tokenizer() {
    awk -v end="<e>" 'BEGIN {
        printf "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {"
        for (i = 33; i < 127; i++) {
            c = sprintf("%c", i)
            if (c == "\"" || c == "\\") c = "\\" c
            printf "\"%s\": %d, ", c, i - 33
        }
        printf "\"\\u0120\": 94, \"\\u010a\": 95, \"%s\": 96}},", end
        printf "\"added_tokens\": [{\"id\": 96, \"content\": \"%s\", \"special\": true, ", end
        printf "\"normalized\": false, \"single_word\": false, \"lstrip\": false, \"rstrip\": false}],"
        printf "\"normalizer\": null, \"post_processor\": null,"
        printf "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
        printf "\"use_regex\": true}, \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
        printf "\"trim_offsets\": true, \"use_regex\": true}}\n"
    }'
}
