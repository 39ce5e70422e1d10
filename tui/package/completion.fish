# completion.fish - completes commands, flags and their values after `espalier`. The program itself lists them.

function __espalier_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    $words[1] complete -- $words[2..] (commandline --current-token --cut-at-cursor) 2>/dev/null
end

complete --command espalier --arguments '(__espalier_complete)'
