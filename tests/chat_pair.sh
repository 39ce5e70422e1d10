# chat_pair.sh - a function that turns the built-in pair into chat models, for tests. Source it after shell.sh.
#
#     chat_pair FOLDER [TEMPLATE]    writes the models to FOLDER/target and FOLDER/draft. They have a chat
#                                    template, and ChatML's control tokens replace two rare words
chatml="{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\\\n' + m['content'] + '<|im_end|>\\\\n' }}{% endfor %}"

chat_pair() {
    mark='"single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}'
    for role in target draft; do
        from=engine/models/fairytale-$role
        mkdir -p "$1/$role"
        cp "$from/config.json" "$from/generation_config.json" "$1/$role"
        ln -sf "$PWD/$from/model.safetensors" "$1/$role/model.safetensors"
        sed -e 's/, "Ġcuriosity": 4094, "Ġcamp": 4095}/}/' -e 's/, "Ġcuri osity", "Ġc amp"]/]/' \
            -e "s/\"special\": true}],/\"special\": true}, {\"id\": 4094, \"content\": \"<|im_start|>\", $mark, {\"id\": 4095, \"content\": \"<|im_end|>\", $mark],/" \
            "$from/tokenizer.json" >"$1/$role/tokenizer.json"
        printf '{"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>", "chat_template": "%s"}\n' \
            "${2:-$chatml}" >"$1/$role/tokenizer_config.json"
    done
}
