# Completion of switchboard in fish. Load it with: switchboard completions fish | source
function __switchboard_complete
    set -l before (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --cut-at-cursor --current-token)
    set -l found (switchboard __complete fish $before "$current" 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path "$current"
    else
        printf '%s\n' $found
    end
end
complete --command switchboard --no-files --arguments '(__switchboard_complete)'
