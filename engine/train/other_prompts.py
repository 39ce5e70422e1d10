#!/usr/bin/env python3
"""Prints short prompts that are not fairy tales, one per line: sentences, lists, code, words of other languages,
repetitions, noise, and pieces of the given files.

    other_prompts.py COUNT [FILE ...]

The built-in draft was trained on the target's continuations of these prompts (engine/models/fairytale-draft/README.md).
"""
import random
import sys

random.seed(7)
R = random.choice
NAMES = "Anna Ben Carla David Emma Farid Grace Hugo Ines Jonas Kate Liam Mei Noah Olga Paul Rosa Sam Tara Uwe Vera Will Yuki Zoe Priya Omar Lena Tom".split()
THINGS = "laptop phone printer bicycle bus ticket report invoice recipe kitchen garden window battery server database browser camera engine tractor bridge tunnel hospital school museum market stadium airport harbour factory library office elevator keyboard screen battery contract budget meeting lecture exam match film song novel newspaper doctor nurse driver teacher lawyer manager engineer minister mayor coach".split()
VERBS = "opened closed repaired checked sold bought lost found measured painted cancelled booked delivered explained ignored reviewed designed tested updated installed borrowed returned photographed cleaned".split()
PLACES = (
    "Berlin Lagos Toronto Madrid Osaka Lima Nairobi Chicago Oslo Mumbai Sydney Cairo Prague Boston Naples Kyiv".split()
)
ADJ = "new old small large broken expensive cheap quiet noisy green red heavy light slow fast modern empty crowded wet dry".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
FOOD = "rice bread cheese tomatoes coffee tea beans carrots pasta honey salt olives garlic lemons eggs yoghurt oats lentils spinach".split()
DE = "der die das ein eine und aber mit ohne auf unter Haus Stadt Wasser Auto Schule Mann Frau Kind geht kommt sieht sagt heute morgen nicht sehr gut alte neue war ist hatte wurde Fenster Tisch Zeitung Bahnhof Arbeit".split()
FR = "le la les un une des et mais avec sans sur dans maison ville eau voiture homme femme enfant va vient voit dit demain pas très bon vieux nouvelle était est avait fenêtre table journal gare travail".split()
ES = "el la los un una y pero con sin sobre casa ciudad agua coche escuela hombre mujer niño va viene ve dice hoy mañana no muy buena viejo nuevo era es había ventana mesa trabajo calle".split()
IT = "il la un una e ma con senza sopra casa città acqua macchina scuola uomo donna bambino va viene vede dice oggi domani non molto buono vecchio nuovo era aveva finestra tavola lavoro strada".split()
PT = "o a os um uma e mas com sem sobre casa cidade água carro escola homem mulher menino vai vem diz hoje não muito bom velho novo era tinha janela mesa trabalho rua".split()


def sentence():
    return R(
        [
            lambda: f"{R(NAMES)} {R(VERBS)} the {R(ADJ)} {R(THINGS)} in {R(PLACES)} and",
            lambda: f"On {R(DAYS)} the {R(THINGS)} in {R(PLACES)} was {R(ADJ)}, so {R(NAMES)} {R(VERBS)} it and",
            lambda: f"The {R(THINGS)} costs {random.randint(2,900)} dollars, but the {R(ADJ)} {R(THINGS)}",
            lambda: f"According to the {R(THINGS)}, {random.randint(2,99)} percent of the {R(THINGS)}s were {R(ADJ)} in {random.randint(1950,2025)}, while",
            lambda: f'"Did you see the {R(ADJ)} {R(THINGS)}?" {R(NAMES)} asked. "It',
            lambda: f"Dear {R(NAMES)}, I am writing about the {R(THINGS)} that you {R(VERBS)} on {R(DAYS)}. It",
            lambda: f"How do I fix a {R(ADJ)} {R(THINGS)}? First",
            lambda: f"The {R(THINGS)} of {R(PLACES)} is a {R(ADJ)} {R(THINGS)} built in {random.randint(1800,2020)} by",
            lambda: f"{R(NAMES)}: have you {R(VERBS)} the {R(THINGS)}? {R(NAMES)}: not yet. {R(NAMES)}:",
            lambda: f"I {R(VERBS)} the {R(THINGS)} before {R(NAMES)} {R(VERBS)} the {R(ADJ)} one, because",
            lambda: f"In this paper we show that a {R(ADJ)} {R(THINGS)} can be {R(VERBS)} by a {R(THINGS)}, which",
        ]
    )()


def listing():
    k = random.randint(3, 9)
    return R(
        [
            lambda: ", ".join(random.sample(FOOD, k)) + ",",
            lambda: "\n".join(f"{i+1}. {R(VERBS).capitalize()} the {R(THINGS)}." for i in range(k)) + f"\n{k+1}.",
            lambda: "\n".join(f"- {R(ADJ)} {R(THINGS)}" for i in range(k)) + "\n-",
            lambda: "; ".join(f"{d}: {R(THINGS)}" for d in random.sample(DAYS, min(k, 6))) + ";",
            lambda: "name,age,city\n"
            + "\n".join(f"{R(NAMES)},{random.randint(8,80)},{R(PLACES)}" for i in range(k))
            + "\n",
            lambda: " ".join(
                f"{a} x {b} = {a*b}," for a, b in [(random.randint(2, 30), random.randint(2, 30)) for _ in range(k)]
            ),
            lambda: " ".join(str(random.randint(0, 10 ** random.randint(1, 4))) for _ in range(k * 3)),
        ]
    )()


def foreign():
    w = R([DE, FR, ES, IT, PT])
    s = " ".join(R(w) for _ in range(random.randint(6, 24)))
    return s[0].upper() + s[1:] + R(["", " ", ",", "."])


def noise():
    k = random.randint(6, 30)
    al = "abcdefghijklmnopqrstuvwxyz0123456789{}()[]#$;,.!?=+-_/~&"
    return R(
        [
            lambda: " ".join("".join(R(al) for _ in range(random.randint(1, 6))) for _ in range(k)),
            lambda: " ".join(R(THINGS + FOOD + ADJ + VERBS) for _ in range(k)),
            lambda: " ".join("".join(R(al[:26]) for _ in range(random.randint(2, 8))) for _ in range(k)),
        ]
    )()


def repeat():
    s = R(
        [f"The {R(ADJ)} {R(THINGS)}. ", f"{R(NAMES)} {R(VERBS)}. ", f"{R(FOOD)} and {R(FOOD)}, ", f"no {R(THINGS)}, "]
    )
    return s * random.randint(2, 6) + s[: random.randint(0, len(s))]


def code():
    v = R("a b n x i total count name items rows data line key value".split())
    f = R("load print sum read sort find add write parse count".split())
    return R(
        [
            lambda: f"int {f}_{v}(int {v}, char *{R(FOOD)}) {{\n    int r = {random.randint(0,9)};\n    while ({v} > r)",
            lambda: f"def {f}_{v}({v}, limit={random.randint(1,99)}):\n    if {v} is None:\n        return []\n    for {R('ijk')} in",
            lambda: f"SELECT {v}, {R(FOOD)} FROM {R(THINGS)} JOIN {R(THINGS)}s ON {v} =",
            lambda: f'<div class="{R(THINGS)}"><p>{R(ADJ)} {R(THINGS)}</p><ul><li>{R(FOOD)}</li><li>',
            lambda: f'{{"{v}": {random.randint(0,99)}, "{R(FOOD)}": "{R(ADJ)}", "{R(THINGS)}": [',
            lambda: f"function {f}({v}) {{ const {R(FOOD)} = {v}.map(x => x * {random.randint(2,9)}); return",
            lambda: f'for {v} in $(ls {R(THINGS)}); do echo "${v}" | grep -c {R(FOOD)}; done',
        ]
    )()


def pieces(paths):
    """Cuts random pieces out of the files."""
    found = []
    for path in paths:
        with open(path, errors="ignore") as file:
            text = file.read()
        found += [text[at : at + random.randint(60, 260)] for at in range(0, len(text) - 300, 2500)]
    return found


def main():
    own = pieces(sys.argv[2:])
    kinds = [sentence, sentence, lambda: sentence() + " " + R(NAMES), listing, foreign, noise, repeat, code]
    if own:
        kinds.append(lambda: R(own))
    for _ in range(int(sys.argv[1])):
        text = R(kinds)()
        if random.random() < 0.3:
            text += " " + R(kinds)()
        print(text.replace("\\", "\\\\").replace("\n", "\\n"))


main()
