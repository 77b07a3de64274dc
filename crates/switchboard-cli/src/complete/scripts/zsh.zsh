#compdef switchboard
# Completion of switchboard in zsh. Load it with: source <(switchboard completions zsh)
_switchboard() {
    local kind value about
    local -a finished finished_shown open open_shown
    while IFS=$'\t' read -r kind value about; do
        if [[ $kind == open ]]; then
            open+=("$value")
            open_shown+=("${value}${about:+  -- $about}")
        else
            finished+=("$value")
            finished_shown+=("${value}${about:+  -- $about}")
        fi
    done < <(switchboard __complete zsh "${(@Q)words[1,CURRENT]}" 2>/dev/null)
    if (( ${#finished} + ${#open} == 0 )); then
        _files
        return
    fi
    (( ${#finished} )) && compadd -l -d finished_shown -a -- finished
    (( ${#open} )) && compadd -l -S '' -d open_shown -a -- open
    return 0
}
if [[ $funcstack[1] == _switchboard ]]; then
    _switchboard "$@"
elif (( $+functions[compdef] )); then
    compdef _switchboard switchboard
fi
