# Completion of switchboard in bash. Load it with: source <(switchboard completions bash)
_switchboard() {
    local line="${COMP_LINE:0:COMP_POINT}" candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("$candidate")
    done < <(switchboard __complete bash "$line" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
}
complete -o nospace -o default -F _switchboard switchboard
