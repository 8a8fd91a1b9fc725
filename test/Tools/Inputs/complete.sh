# What bash offers for a command line: complete.sh COMPLETIONS FUNCTION WORD..., the last WORD is being typed.
source "$1"
function=$2
shift 2
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
compopt() { :; } # only exists while bash completes
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
