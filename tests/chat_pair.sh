# chat_pair.sh - for tests, makes chat models from the built-in pair. Source it after shell.sh.
#
#     chat_pair FOLDER [TEMPLATE]    makes FOLDER/target and FOLDER/draft: the built-in pair with ChatML's
#                                    control tokens (instead of two rare words) and a chat template
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
