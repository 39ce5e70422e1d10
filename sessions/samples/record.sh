#!/bin/sh
# Records the samples again. Run record.sh FOLDER in the root of the source tree.
# Each sample is a session of the interface at twelve iterations a second. The built-in models write the same text each
# time, because decoding is greedy or has a fixed seed; only the times differ.
set -eu
folder=$(cd "${1:?name a folder}" && pwd)
espalier=${ESPALIER:-$(pwd)/build/espalier}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# session NAME FLAGS: enters the lines of standard input in the interface, and records the session.
session() {
    {
        printf '%s\n' "size 120x36" wait "type :pace 12" "key Enter"
        printf '%s\n' "type :record $folder/$1.esp.jsonl" "key Enter" wait
        while read -r line; do
            printf '%s\n' "type $line" "key Enter" wait
        done
        printf '%s\n' "type :record" "key Enter" wait
    } >"$work/script"
    shift
    (cd "$work" && ESPALIER_SCRIPT=script "$espalier" --no-config --threads 1 "$@")
}

session dynatree-adapting --drafter dynatree:rhostop=0.01,rhodeep=0.1,tau=0.004,history=proportional <<'END'
:n 40
:mark easy: the draft knows how the tale goes on
When the frog heard this he
:n 30
:mark hard: the target counts, and the draft never believes it
Chapter the third, in which a tailor counts his buttons: seven, nine,
:n 90
:mark easy again: the thresholds come back
When the frog heard this he
END

session traversal-sampling --drafter iid:K=4,L=4 --verifier traversal --temp 1 --seed 7 -n 60 <<'END'
Once upon a time there lived a poor widow
END

session same-text-linear --drafter linear:K=6 -n 60 <<'END'
The witch said to the girl,
END

session same-text-tree --drafter dynatree:rhostop=0.01,rhodeep=0.1,tau=0.004,history=proportional -n 60 <<'END'
The witch said to the girl,
END

session dyspec --drafter dyspec:N=20 --verifier swor --temp 0.8 --seed 3 -n 48 <<'END'
Then the youngest brother took his sword and
END

session salf --drafter salf:N=24,B=4,th=0.3 -n 60 <<'END'
The witch said to the girl,
END

session fixed-tree --drafter fixed:D=5,B=3 -n 60 <<'END'
The witch said to the girl,
END

session delayed --drafter delayed:K=4,L1=2,L2=3 --verifier traversal --temp 1 --seed 7 -n 60 <<'END'
Once upon a time there lived a poor widow
END

# The target of sample `hybrid` has recurrent layers, and does not come with espalier. make_hybrid.py trains it in a few
# minutes. A model trained on another machine writes a different text. HYBRID names the model's folder.
if [ -n "${HYBRID:-}" ]; then
    draft=$(pwd)/engine/models/fairytale-draft
    session hybrid --target "$HYBRID" --draft "$draft" --drafter optimal:N=12 -n 48 <<'END'
Once upon a time there was a
END
fi
