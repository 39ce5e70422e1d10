#!/bin/sh
# --ranks divides the target among processes, which are called ranks. Ranks must not change the text,
# whatever the drafter. If a rank is killed, the ranks must be started again. If this happens a second
# time, the command must end with a message and the text so far. No rank may be left behind.
. tests/shell.sh
. tests/script.sh

say() { $ESPALIER generate -p "Once upon a time" -n 40 "$@"; }
# Lists the ranks of this program only, because another test may run ranks at the same time.
left() {
    for rank in $(ps -eo pid=,args= | awk '$2 == "espalier-rank" { print $1 }'); do
        [ "$(readlink "/proc/$rank/exe")" = "$(realpath "$ESPALIER")" ] && echo "$rank"
    done
}
gone() {
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
        [ -z "$(left)" ] && return 0
        sleep 0.1
    done
    return 1
}

# The text with ranks must equal the text without ranks.
say --drafter ar >"$work/plain"
for drafter in ar linear fixed dynatree goodput suffix hybrid optimal; do
    say --ranks 2 --drafter $drafter >"$work/text"
    check "$drafter writes the same text with 2 ranks" cmp "$work/plain" "$work/text"
done
say --ranks 3 --ranks-parts 1:3:2 --ranks-whole output,head >"$work/text"
check "$drafter writes the same text with 3 ranks of unequal size" cmp "$work/plain" "$work/text"
say --ranks 3 --ranks-split layers --drafter dynatree >"$work/text"
check "$drafter writes the same text with whole layers in each rank" cmp "$work/plain" "$work/text"
say --temp 0.8 --seed 5 --drafter dynatree >"$work/one"
say --temp 0.8 --seed 5 --drafter dynatree --ranks 2 >"$work/two"
check "2 ranks do not change a sampled text" cmp "$work/one" "$work/two"
say --window 12 --sinks 2 --ranks 2 --drafter linear >"$work/two"
say --window 12 --sinks 2 --drafter ar >"$work/one"
check "2 ranks do not change the text in a window" cmp "$work/one" "$work/two"
check "espalier check passes with ranks" $ESPALIER check --ranks 2 --temp 0 --trials 2 --drafter dynatree >"$work/check"

# Tests drafts of every kind. All of them run in the main process, except the target's own copy, which is divided.
other=$work/other
mkdir "$other" && cp engine/models/fairytale-draft/* "$other"
sed -i 's/"<|endoftext|>"/"<|end|>"/g; s/"Ġcamp"/"Ġcamq"/; s/, "Ġc amp"//' "$other/tokenizer.json"
say --ranks 2 --draft "$other" --drafter dynatree >"$work/text"
check "with ranks, a draft with another vocabulary does not change the text" cmp "$work/plain" "$work/text"
for split in rows layers; do
    say --ranks 2 --ranks-split $split --draft self:q4_0 --drafter linear --stats >"$work/text" 2>"$work/stats"
    check "the target's own copy, divided by $split, does not change the text" cmp "$work/plain" "$work/text"
    check "statistics name the copy that is divided by $split" grep -q "self:q4_0, the target's own copy" "$work/stats"
done
$ESPALIER train head --text README.md -n 30 --length 24 --batch 2 --epochs 1 --seed 3 -o "$work/head" >"$work/out" 2>&1
say --ranks 2 --draft "$work/head" --drafter dynatree --json >"$work/json"
say --draft "$work/head" --drafter dynatree --json >"$work/one"
accepted() { grep '"text"\|"accepted_nodes"' "$1"; }
check "with ranks, a draft head gives the same text and the same accepted tokens" \
    test "$(accepted "$work/one")" = "$(accepted "$work/json")" -a -n "$(accepted "$work/one")"

# This session shortens the KV caches of the ranks: it starts a branch from a node of a tree, and inserts words.
export XDG_STATE_HOME="$work/state"
play "size 80x24
type Once upon a time
key Enter
wait
key Tab Left Left Left Enter Down Enter
wait
type :insert and then a fox
key Enter
wait" --no-config --drafter fixed --seed 1 --temp 0 -n 20 --ranks 2
check "with ranks, a session can have branches" sh -c "$ESPALIER sessions show 1 | grep -q 'tokens of its own, from token 21 of branch 1'"
check "one process writes the same tokens as the ranks" sh -c "$ESPALIER sessions verify 1 | grep -q 'generations gave the same tokens$'"
unset XDG_STATE_HOME

# If a model is larger than memory, each rank must stream its part of a layer.
$ESPALIER inflate engine/models/fairytale-target "$work/large" --width 2 --layers 12 >"$work/log" 2>&1
large="--target $work/large --draft engine/models/fairytale-draft --context 96 --max-nodes 24 --threads 1 -n 6 -p Once"
$ESPALIER generate $large >"$work/one"
$ESPALIER generate $large --ranks 2 --memory 1M >"$work/out" 2>"$work/err"
limit=$(sed -n 's/.* \([0-9]*\)M are needed.*/\1/p' "$work/err")
$ESPALIER generate $large --ranks 2 --memory $((limit + 4))M --json >"$work/json"
check "with ranks and a memory limit, layers are streamed" grep -q '"resident_layers":' "$work/json"
$ESPALIER generate $large --ranks 2 --memory $((limit + 4))M >"$work/two"
check "layers that are both divided and streamed do not change the text" cmp "$work/one" "$work/two"

# Statistics and recordings must say what the ranks did.
say --ranks 2 --stats --record "$work/r.esp.jsonl" >"$work/text" 2>"$work/stats"
check "statistics have the time of exchanges" grep -q "^exchange  *[0-9.]* % of the time, between ranks" "$work/stats"
check "a recording has the number of ranks" sh -c "head -n 1 '$work/r.esp.jsonl' | grep -q '2 ranks of [0-9]* thread'"
check "a recording has the time of exchanges" grep -q '"exchange":0\.' "$work/r.esp.jsonl"
$ESPALIER export "$work/r.esp.jsonl" --iteration 1 --figure timeline -o "$work/timeline.svg" >"$work/log"
check "figure timeline shows the time of exchanges" grep -q "incl. exchange" "$work/timeline.svg"
check "figure timeline shows what each rank does in a pass" sh -c "grep -q '>rank 0<' '$work/timeline.svg' && grep -q '>rank 1<' '$work/timeline.svg'"
$ESPALIER export "$work/r.esp.jsonl" --iteration 1 -o "$work/one.json" >"$work/log"
check "a recording has the times of each rank between exchanges" sh -c "sed -n 2,9p '$work/r.esp.jsonl' | grep -q '\"laps\":\[{\"rank\":0,\"compute\":[0-9.e-]*'"
$ESPALIER inspect --ranks 3 --ranks-whole down >"$work/inspect"
check "inspect prints how matrices are divided among ranks" grep -q "gate, up .* outputs; a row gathers" "$work/inspect"
check "inspect lists the kinds of matrices that every rank has whole" grep -q "down .*whole in every rank" "$work/inspect"
check "inspect predicts the time of a pass" grep -q "predicted .*a pass of 1 row takes [0-9.]* ms or more" "$work/inspect"
# An exchange takes two steps with 4 ranks, and three steps with 8 ranks. With this delay, the
# steps take longer than reading all weights.
predicted() { sed -n 's/.* a pass of 1 row takes \([0-9.]*\) .*with 4 ranks \([0-9.]*\) ms, with 8 ranks \([0-9.]*\) ms$/\1 \2 \3/p' "$work/inspect"; }
ESPALIER_RANKS_DELAY=2ms $ESPALIER inspect --ranks 2 --ranks-whole none >"$work/inspect"
check "inspect predicts longer passes with 8 ranks if exchanges are slow: $(predicted)" \
    awk -v p="$(predicted)" 'BEGIN { split(p, ms); exit !(ms[2] > 3 && ms[3] > 1.2 * ms[2]) }'
$ESPALIER inspect --ranks 2 --json >"$work/json"
$ESPALIER inspect --ranks 3 --ranks-split layers >"$work/inspect"
check "inspect prints the layers of each rank" grep -q "layers  *1 + 2 + 2 + 1; the first and the last number are for rank 0" "$work/inspect"
check "inspect --json has the exchanges" grep -q '"exchanges":' "$work/json"

# Imitates a machine with two memory nodes. One node has the first CPU, and the other node has
# the remaining CPUs.
allowed() { sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done; }
mkdir -p "$work/sys/devices/system/node/node0" "$work/sys/devices/system/node/node1"
allowed | head -n 1 >"$work/sys/devices/system/node/node0/cpulist"
allowed | tail -n +2 | tr '\n' , >"$work/sys/devices/system/node/node1/cpulist"
if [ "$(allowed | wc -l)" -gt 1 ]; then
    ESPALIER_SYS="$work/sys" $ESPALIER generate -p "Once upon a time" -n 40 --drafter dynatree --record "$work/nodes.esp.jsonl" >"$work/text"
    check "threads on two memory nodes do not change the text" cmp "$work/plain" "$work/text"
    check "a recording names the memory nodes" sh -c "head -n 1 '$work/nodes.esp.jsonl' | grep -q 'threads on 2 memory nodes'"
fi

# Invalid options must be refused.
check "--ranks-parts that are not numbers are refused" fails 1 "give 2 numbers above 0" $ESPALIER generate -p x --ranks 2 --ranks-parts 1:x
check "--ranks-parts for a different number of ranks are refused" fails 1 "give 3 numbers above 0" $ESPALIER generate -p x --ranks 3 --ranks-parts 1:2
check "an unknown kind of matrix in --ranks-whole is refused" fails 1 "give none, or one or more of attention, output" $ESPALIER generate -p x --ranks 2 --ranks-whole up
check "more ranks than layers are refused" fails 1 "6 layers are too few for 7 ranks" $ESPALIER generate -p x --ranks 7 --ranks-split layers
check "an unknown --ranks-split is refused" fails 1 "give rows or layers" $ESPALIER generate -p x --ranks 2 --ranks-split columns
check "more than 64 ranks are refused" fails 1 "from 1 to 64" $ESPALIER generate -p x --ranks 65
ln -s "$(realpath "$ESPALIER")" "$work/espalier-rank"
check "espalier-rank without arguments refuses to run" fails 1 "cannot be started alone" env PATH="$work" espalier-rank

check "an invalid delay is refused" fails 1 "give a time, such as 500us" env ESPALIER_RANKS_DELAY=soon $ESPALIER generate -p x --ranks 2
check "an invalid launcher is refused" fails 1 "neither Open MPI's mpirun nor MPICH's" $ESPALIER generate -p x --ranks 2 --hosts localhost --launcher true
check "machines without MPI are refused with a message" fails 1 "no mpirun was found: install" \
    env PATH=/nowhere "$(realpath "$ESPALIER")" generate -p x --ranks 2 --hosts localhost
check "--hosts with only one machine is refused" fails 1 "give more than one machine" $ESPALIER generate -p x --hosts localhost
for mpi in openmpi mpich; do
    command -v mpirun.$mpi >/dev/null || continue
    check "if the program for $mpi is missing, the message says how to build it" fails 1 "was not found beside this program; make builds it" \
        sh -c "cp $(realpath "$ESPALIER") $work/copy && $work/copy generate -p x --ranks 2 --hosts localhost --launcher mpirun.$mpi --target engine/models/fairytale-target"
done

# Imitates a slow network.
$ESPALIER generate -p x -n 2 --drafter ar --ranks 2 --ranks-whole none --json >"$work/near"
ESPALIER_RANKS_DELAY=2ms $ESPALIER generate -p x -n 2 --drafter ar --ranks 2 --ranks-whole none --json >"$work/far"
exchange() { sed -n 's/.*"exchange":[^0-9]*\([0-9.e-]*\).*/\1/p' "$1"; }
check "a delay makes exchanges slower: $(exchange "$work/near") s, $(exchange "$work/far") s" \
    awk -v near="$(exchange "$work/near")" -v far="$(exchange "$work/far")" 'BEGIN { exit !(far > near + 0.04) }'
$ESPALIER bench --suite network -n 4 --prompts 1 >"$work/suite"
check "the table of suite network has a column for each delay" grep -q "10ms" "$work/suite"

# Generates a long text in the background.
variable=A=1
long() { # TOKENS [FLAGS]: starts a generation of this length
    rm -f "$work/out" "$work/err"
    tokens=$1
    shift
    env "$variable" timeout 60 $ESPALIER generate -p "Once upon a time" -n "$tokens" --window 50 --ignore-eos --temp 0.8 --seed 5 \
        --drafter dynatree "$@" >"$work/out" 2>"$work/err" &
    program=$!
}
until_text() {
    while kill -0 $program 2>/dev/null && [ ! -s "$work/out" ]; do sleep 0.02; done
}
long 200
wait $program
cp "$work/out" "$work/long"
# slow() generates the same text, but with many slow exchanges. So a test can kill a rank before the
# text ends, even on a busy machine.
slow() { # RANKS [FLAGS]: starts this generation, and waits until text has been written
    variable=ESPALIER_RANKS_DELAY=1ms
    long 200 --ranks-whole none --ranks "$@"
    variable=A=1
    until_text
}

# Tests ranks over MPI, if it is installed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpi_left() { # lists the processes of ranks that communicate over MPI, the oldest first
    ps -eo pid=,stat=,args= --sort start_time | grep -v grep | awk -v of="$(realpath "$BUILD")/espalier-rank" '$2 !~ /Z/ && index($0, of) && / --serve \/proc/'
}
by_hand() { # lists the ranks of a group that the user's own mpirun has started, except rank 0, which has a child process
    ps -eo pid=,ppid=,stat=,args= | awk -v of="espalier-rank.$mpi" '{ parent[$2] = 1 }
        $3 !~ /Z/ && substr($4, length($4) - length(of) + 1) == of && $5 != "--serve" { rank[$1] = 1 }
        END { for (pid in rank) if (!(pid in parent)) print pid }'
}
for mpi in openmpi mpich; do
    if [ ! -x "$BUILD/espalier-rank.$mpi" ] || ! command -v mpirun.$mpi >/dev/null; then
        echo "  ranks over $mpi are not tested, because $mpi is not installed"
        continue
    fi
    say --ranks 3 --hosts localhost --launcher mpirun.$mpi --drafter dynatree >"$work/text" 2>"$work/err"
    check "ranks over $mpi do not change the text" cmp "$work/plain" "$work/text"
    mpirun.$mpi -n 2 "$BUILD/espalier-rank.$mpi" "$ESPALIER" generate -p "Once upon a time" -n 40 >"$work/text" 2>"$work/err"
    awk 1 "$work/plain" >"$work/lines" # one of the two mpiruns runs the program in a terminal, so its last line ends with a newline
    awk '{ sub(/\r$/, "") } 1' "$work/text" >"$work/hand"
    check "ranks started by the user's own mpirun do not change the text ($mpi)" cmp "$work/lines" "$work/hand"
    mpirun.$mpi -n 2 "$BUILD/espalier-rank.$mpi" "$ESPALIER" generate -p x --target nowhere >"$work/text" 2>"$work/err"
    check "mpirun fails if the program fails ($mpi)" test $? != 0
    check "mpirun prints the program's error message ($mpi)" grep -q "^espalier: .*nowhere" "$work/err"
    # Rank 1 stops answering. The program must give up and end the rank, because no other process does this.
    ESPALIER_RANKS_PATIENCE=0.4 timeout 60 mpirun.$mpi -n 2 "$BUILD/espalier-rank.$mpi" "$ESPALIER" generate \
        -p x -n 100000 --window 50 --ignore-eos --drafter ar >"$work/text" 2>"$work/err" &
    program=$!
    while kill -0 $program 2>/dev/null && [ ! -s "$work/text" ]; do sleep 0.02; done
    kill -STOP $(by_hand)
    wait $program
    check "mpirun fails if a rank does not answer ($mpi)" test $? -ne 0 -a $? -ne 124
    check "the program says which rank did not answer ($mpi)" grep -q "^espalier: .*rank 1 of 2 has not answered" "$work/err"
    check "no rank is left after a rank has not answered ($mpi)" test -z "$(by_hand)"
    slow 2 --hosts localhost --launcher mpirun.$mpi
    kill -KILL $(mpi_left | awk '$3 ~ /espalier-rank/ { print $1 }' | tail -n 1)
    wait $program
    check "ranks of $mpi are started again when one is killed" test $? = 0
    check "a message says that the ranks of $mpi were started again" grep -q "the ranks ended .*; the ranks were started again" "$work/err"
    check "the ranks of $mpi that were started again write the same text" cmp "$work/long" "$work/out"
    sleep 1
    check "no process of a rank of $mpi is left" test -z "$(mpi_left)"
done

# Tests what happens when a rank ends or hangs.
check "no rank is left after the tests above" gone
strike() { # SIGNAL: sends the signal to a rank
    kill -s "$1" $(left | head -n 1)
}
slow 3 --record "$work/again.esp.jsonl"
strike KILL
wait $program
check "ranks are started again when one is killed" test $? = 0
check "a message says which rank ended, and that the ranks were started again" grep -q "rank [12] of 3 ended (signal 9); the ranks were started again, and the text was computed once more" "$work/err"
check "after ranks were started again, the text is the same" cmp "$work/long" "$work/out"
check "a recording has the message about the rank that was killed" grep -q '"type":"note","text":"rank [12] of 3 ended' "$work/again.esp.jsonl"
check "a recording of a session with a killed rank can be read" $ESPALIER stats "$work/again.esp.jsonl" --json >"$work/json"
twice() { # SIGNAL [VARIABLE=VALUE]: sends SIGNAL to a rank and, when the ranks have been started again, to another
    signal=$1
    variable=${2:-A=1}
    long 100000 --ranks 3
    until_text
    strike "$signal"
    while kill -0 $program 2>/dev/null && ! grep -q "started again" "$work/err"; do sleep 0.02; done
    strike "$signal"
    wait $program
}
variable=A=1
twice KILL
check "a second rank that is killed ends the program with exit code 1" test $? = 1
check "if a second rank is killed, a message says which rank it was, and what to do" grep -q "iteration .*rank [12] of 3 ended (signal 9); load the models again" "$work/err"
check "if a second rank is killed, the text so far stays" test -s "$work/out"
check "no rank is left after a second rank was killed" gone
twice STOP ESPALIER_RANKS_PATIENCE=0.5
check "a second rank that hangs ends the program with exit code 1" test $? = 1
check "if a second rank hangs, a message says which rank does not answer" grep -q "rank [12] of 3 has not answered for 0.[5-9] s; load the models again" "$work/err"
check "no rank is left after a second rank has hung" gone

# If a rank hangs, the interface must ask what to do.
mkfifo "$work/fifo"
ESPALIER_RANKS_PATIENCE=0.4 ESPALIER_SCRIPT="$work/fifo" timeout 60 $ESPALIER --no-config --drafter ar --seed 1 --temp 0 -n 100000 --window 50 \
    --ignore-eos --ranks 2 >"$work/out" 2>"$work/err" &
program=$!
exec 9>"$work/fifo"
seen() { # PATTERN: succeeds if PATTERN is on the screen within ten seconds
    for i in $(seq 100); do
        echo "dump $work/screen" >&9
        sleep 0.1
        grep -q "$1" "$work/screen" && return 0
    done
    cat "$work/screen"
    return 1
}
printf 'size 100x30\ntype Once upon a time\nkey Enter\n' >&9
seen "iter [0-9]"
strike STOP
check "the interface says that a rank does not answer" seen "rank 1 of 2 has not answered for [0-9]* s; press Esc to stop waiting"
printf 'key Esc\nwait\n' >&9
check "after Esc, the interface starts the ranks again" seen "the ranks were started again"
exec 9>&-
wait $program
check "no rank is left after the interface has ended" gone

rm -f "$work/out"
$ESPALIER generate -p "Once upon a time" -n 100000 --window 50 --ignore-eos --ranks 3 --drafter ar >"$work/out" 2>"$work/err" &
program=$!
while kill -0 $program 2>/dev/null && [ ! -s "$work/out" ]; do sleep 0.02; done
kill -KILL $program
wait $program 2>/dev/null
check "ranks end when the program is killed" gone
finish
