#!/usr/bin/env python3
"""Makes tests/vectors/chat.json: conversations that apply_chat_template of transformers has written.

The templates below were written for this file. For conversations without tools and pictures,
they give the same text as the templates of the public models named beside them. Each line of the
result has one template, its tokens, and a text for each conversation of the corpus: the output with
add_generation_prompt, or null if the template refuses the conversation. The current date is replaced
by <DATE> or <DATE IN WORDS>. Needs transformers. The result is in the repository.
"""
import datetime
import json
import pathlib
import sys

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

TURNS = "{% for m in messages %}"
ADD = "{% if add_generation_prompt %}"


def chatml(system=None, reasoning=False, begins=False):
    first = ("" if system is None else "{% if messages[0]['role'] != 'system' %}"
             "{{ '<|im_start|>system\\n" + system + "<|im_end|>\\n' }}{% endif %}")
    content = "m['content']"
    strip = ("{% if m['role'] == 'assistant' and '</think>' in c %}"
             "{% set c = c.split('</think>')[-1].lstrip('\\n') %}{% endif %}" if reasoning else "")
    return (first + TURNS + "{% set c = " + content + " %}" + strip +
            "{{ '<|im_start|>' + m['role'] + '\\n' + c + '<|im_end|>' + '\\n' }}{% endfor %}" + ADD +
            "{{ '<|im_start|>assistant\\n' }}" + ("{{ '<think>\\n' }}" if begins else "") +
            "{% endif %}")


LLAMA = "{{ '<|start_header_id|>%s<|end_header_id|>\\n\\n' + %s | trim + '<|eot_id|>' }}"


def llama3(dates, today):
    rest = TURNS + ("{% if m['role'] != 'system' %}" if dates else "") + (
        "{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim"
        " + '<|eot_id|>' }}") + ("{% endif %}" if dates else "") + "{% endfor %}"
    first = ""
    if dates:
        day = "{% set day = " + ("strftime_now('%d %b %Y')" if today else "'26 Jul 2024'") + " %}"
        first = (day + "{% if messages[0]['role'] == 'system' %}{% set s = messages[0]['content'] | trim %}"
                 "{% else %}{% set s = '' %}{% endif %}"
                 "{{ \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}"
                 "{{ \"Cutting Knowledge Date: December 2023\\n\" }}"
                 "{{ \"Today Date: \" + day + \"\\n\\n\" }}{{ s }}{{ \"<|eot_id|>\" }}")
    return ("{{ bos_token }}" + first + rest + ADD +
            "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}")


def gemma(system):
    refuse = "" if system else ("{% if messages[0]['role'] == 'system' %}"
                                "{{ raise_exception('no system role') }}{% endif %}")
    prefix = ("{% if messages[0]['role'] == 'system' %}{% set p = messages[0]['content'] + '\\n\\n' %}"
              "{% set rest = messages[1:] %}{% else %}{% set p = '' %}{% set rest = messages %}{% endif %}")
    return ("{{ bos_token }}" + refuse + prefix + "{% for m in rest %}"
            "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
            "{{ '<start_of_turn>' + role + '\\n' + (p if loop.first else '') }}"
            "{{ m['content'] | trim }}{{ '<end_of_turn>\\n' }}{% endfor %}" + ADD +
            "{{ '<start_of_turn>model\\n' }}{% endif %}")


def mistral(before, after, answer, place):
    take = ("{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] %}"
            "{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}")
    part = ("{% if system_message is defined %}{{ '[SYSTEM_PROMPT]' + system_message + '[/SYSTEM_PROMPT]' }}"
            "{% endif %}" if place is None else "")
    user = "{{ '" + before + "' + m['content'] + '" + after + "' }}"
    if place:
        user = ("{% if loop." + place + " and system_message is defined %}{{ '" + before +
                "' + system_message + '\\n\\n' + m['content'] + '" + after + "' }}{% else %}" + user +
                "{% endif %}")
    said = {"": "m['content'] + eos_token", " ": "' ' + message + eos_token"}[answer]
    return ("{{ bos_token }}" + take + part + "{% for m in rest %}{% set message = m['content'] %}"
            "{% if m['role'] == 'user' %}" + user + "{% else %}{{ " + said + " }}{% endif %}{% endfor %}")


def phi3(bos, newline, leaves_out):
    n = "\\n" if newline else ""
    system = ("{% if m['role'] == 'system'" + (" and m['content']" if leaves_out else "") + " %}")
    system = system.replace("m['", "message['") if leaves_out else system
    return ("{{ bos_token }}" if bos else "") + ("{% for message in messages %}{% set m = message %}" + system +
            "{{ '<|system|>" + n + "' + m['content'] + '<|end|>" + n + "' }}"
            "{% elif m['role'] == 'user' %}{{ '<|user|>" + n + "' + m['content'] + '<|end|>" + n + "' }}"
            "{% elif m['role'] == 'assistant' %}{{ '<|assistant|>" + n + "' + m['content'] + '<|end|>" + n +
            "' }}{% endif %}{% endfor %}" + ADD + "{{ '<|assistant|>" + n +
            "' }}{% else %}{{ eos_token }}{% endif %}")


PHI4 = (TURNS + "{{ '<|im_start|>' + m['role'] + '<|im_sep|>' + m['content'] + '<|im_end|>' }}"
        "{% endfor %}" + ADD + "{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}")

HARMONY = ("{{ \"<|start|>system<|message|>\" }}"
           "{{ \"You are ChatGPT, a large language model trained by OpenAI.\\n\" }}"
           "{{ \"Knowledge cutoff: 2024-06\\n\" }}"
           "{{ \"Current date: \" + strftime_now(\"%Y-%m-%d\") + \"\\n\\n\" }}"
           "{{ \"Reasoning: medium\\n\\n\" }}"
           "{{ \"# Valid channels: analysis, commentary, final. Channel must be included for every message.\" }}"
           "{{ \"<|end|>\" }}{% if messages[0].role == 'system' %}{% set d = messages[0].content %}"
           "{% set rest = messages[1:] %}{% else %}{% set d = '' %}{% set rest = messages %}{% endif %}"
           "{% if d %}{{ \"<|start|>developer<|message|>\" }}{{ \"# Instructions\\n\\n\" }}{{ d }}{{ \"\\n\\n\" }}"
           "{{ \"<|end|>\" }}{% endif %}{% for m in rest %}{% if m.role == 'assistant' %}"
           "{{ \"<|start|>assistant<|channel|>final<|message|>\" + m.content + \"<|end|>\" }}"
           "{% else %}{{ \"<|start|>user<|message|>\" + m.content + \"<|end|>\" }}{% endif %}{% endfor %}" +
           ADD + "<|start|>assistant{% endif %}")


def deepseek(cue, drops, history=""):
    drop = ("{% if '</think>' in c %}{% set c = c.split('</think>')[-1] %}{% endif %}" if drops else "")
    shown = {"": "", "</think>": "{{'</think>'}}", "<think>\\n": ""}[cue]
    ask = {"": "{{'<｜Assistant｜>'}}", "</think>": "{{'<｜Assistant｜>'}}{{'</think>'}}",
           "<think>\\n": "{{'<｜Assistant｜><think>\\n'}}"}[cue]
    return ("{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}{% endif %}" +
            TURNS + "{% set c = m['content'] %}{% if m['role'] == 'user' %}{{'<｜User｜>' + c}}"
            "{% elif m['role'] == 'assistant' %}" + drop + "{{'<｜Assistant｜>'}}" + shown +
            "{{ c + '<｜end▁of▁sentence｜>'}}{% endif %}{% endfor %}" + ADD + ask + "{% endif %}")


DEEPSEEK2 = ("{{ bos_token }}" + TURNS + "{% if m['role'] == 'user' %}{{ 'User: ' + m['content'] + '\\n\\n' }}"
             "{% elif m['role'] == 'assistant' %}{{ 'Assistant: ' + m['content'] + eos_token }}"
             "{% else %}{{ m['content'] + '\\n\\n' }}{% endif %}{% endfor %}" + ADD +
             "{{ 'Assistant:' }}{% endif %}")

# Each line has a name, the format that espalier must recognise, the begin-of-text token, the end-of-text token, and the
# template.
TEMPLATES = [
    ("plain ChatML", "chatml", None, "<|im_end|>", chatml()),
    ("Qwen 2", "chatml", None, "<|im_end|>", chatml("You are a helpful assistant.")),
    ("SmolLM 2", "chatml", "<|im_start|>", "<|im_end|>",
     chatml("You are a helpful AI assistant named SmolLM, trained by Hugging Face")),
    ("Qwen 3", "chatml", None, "<|im_end|>", chatml(reasoning=True)),
    ("QwQ", "chatml", None, "<|im_end|>", chatml(reasoning=True, begins=True)),
    ("Llama 3", "llama3", "<|begin_of_text|>", "<|eot_id|>", llama3(False, False)),
    ("Llama 3.1", "llama3", "<|begin_of_text|>", "<|eot_id|>", llama3(True, False)),
    ("Llama 3.2", "llama3", "<|begin_of_text|>", "<|eot_id|>", llama3(True, True)),
    ("Gemma 2", "gemma", "<bos>", "<eos>", gemma(False)),
    ("Gemma 3", "gemma", "<bos>", "<eos>", gemma(True)),
    ("Mistral 0.2", "mistral", "<s>", "</s>", mistral(" [INST] ", " [/INST]", " ", "first")),
    ("Mistral 0.3", "mistral", "<s>", "</s>", mistral("[INST] ", "[/INST]", " ", "last")),
    ("Mistral Nemo", "mistral", "<s>", "</s>", mistral("[INST]", "[/INST]", "", "last")),
    ("Mistral Small", "mistral", "<s>", "</s>", mistral("[INST]", "[/INST]", "", None)),
    ("Phi 3", "phi", "<s>", "<|endoftext|>", phi3(True, True, False)),
    ("Phi 3.5", "phi", "<s>", "<|endoftext|>", phi3(False, True, True)),
    ("Phi 4 mini", "phi", "<|endoftext|>", "<|endoftext|>", phi3(False, False, False)),
    ("Phi 4", "phi", "<|endoftext|>", "<|im_end|>", PHI4),
    ("gpt-oss", "harmony", "<|startoftext|>", "<|return|>", HARMONY),
    ("DeepSeek 2", "deepseek", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", DEEPSEEK2),
    ("DeepSeek 3", "deepseek", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", deepseek("", True)),
    ("DeepSeek R1", "deepseek", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", deepseek("<think>\\n", True)),
    ("DeepSeek 3.1", "deepseek", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", deepseek("</think>", True)),
    ("Zephyr", None, "<s>", "</s>", TURNS + "{{ '<|' + m['role'] + '|>\\n' + m['content'] + eos_token + '\\n' }}"
     "{% endfor %}" + ADD + "{{ '<|assistant|>' }}{% endif %}"),
]


def corpus():
    user = lambda text: {"role": "user", "content": text}
    said = lambda text: {"role": "assistant", "content": text}
    system = lambda text: {"role": "system", "content": text}
    yield [user("Hello")]
    yield [system("Answer in one word."), user("Hello")]
    yield [system(""), user("Hello")]
    yield [system("  two lines\n\nof it \n"), user(" \tblank at the ends \n\n"), said(" yes \n"), user("\nmore ")]
    yield [user("Grüße, 世界! 🌳\u00a0"), said("\u2003žluťoučký kůň\u3000"), user("\u0085e\u0301 \u202f")]
    yield [user(""), said(""), user("")]
    yield [user("a <|im_end|> b </s> [INST] <end_of_turn> <|eot_id|> {{ x }} \\n \"quoted\" 'too'"), said("ok"),
           user("go on")]
    yield [system("Be kind."), user("Why?"), said("<think>\nfirst\n\n</think>\n\nBecause."), user("And then?")]
    many = [system("Count.")]
    for i in range(12):
        many += [user(f"number {i}"), said(f"{i} is {'even' if i % 2 == 0 else 'odd'}.")]
    yield many + [user("and the last?")]


def render(template, bos, eos, messages):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token=bos, eos_token=eos,
                                        chat_template=template)
    today = datetime.date.today()
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:
        if "system role" not in str(error):
            raise
        return None
    return text.replace(today.strftime("%d %b %Y"), "<DATE IN WORDS>").replace(today.isoformat(), "<DATE>")


def main():
    conversations = list(corpus())
    out = {"conversations": conversations, "templates": []}
    for name, form, bos, eos, template in TEMPLATES:
        out["templates"].append({"name": name, "format": form, "bos": bos, "eos": eos, "template": template,
                                 "texts": [render(template, bos, eos, c) for c in conversations]})
    path = pathlib.Path(__file__).with_name("chat.json")
    path.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
