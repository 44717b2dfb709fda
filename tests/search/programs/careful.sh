#!/bin/bash
# A careful loop in bash: what is done it reads itself, and it ends done only where nothing is open.
set -euo pipefail

post() { curl -sS --fail-with-body -H 'content-type: application/json' -d @- "$1"; }
call() { jq -c .input <<<"$1" | post "$EVALKIT_TOOLS_URL/$(jq -r .name <<<"$1")"; }
end() { jq -n --arg ending "$1" --arg native "$2" '{$ending, $native}' >"$EVALKIT_ENDING_FILE"; exit 0; }

tools=$(curl -sS "$EVALKIT_TOOLS_URL" | jq -c .tools)
messages=$(jq -cn --arg prompt "$EVALKIT_PROMPT" '[{role: "user", content: $prompt}]')
listed='[]' acted='[]' nudges=0 cut_offs=0 pauses=0 limit=4096
declare -A done=()

for _ in $(seq 40); do
  answer=$(jq -cn --argjson tools "$tools" --argjson messages "$messages" --argjson limit "$limit" \
    '{model: "m", max_tokens: $limit, $tools, $messages}' | post "$ANTHROPIC_BASE_URL/v1/messages")
  stop=$(jq -r .stop_reason <<<"$answer")
  calls=$(jq -c '[.content[] | select(.type == "tool_use")]' <<<"$answer")
  case $stop in
    max_tokens | model_context_window_exceeded)
      cut_offs=$((cut_offs + 1)) limit=$((limit < 32000 ? limit * 2 : 64000))
      ((cut_offs <= 3)) || end escalated "$stop"
      continue ;;
    refusal) end escalated refusal ;;
  esac
  cut_offs=0
  messages=$(jq -c --argjson answer "$answer" \
    'if ($answer.content | length) > 0 then . + [{role: "assistant", content: $answer.content}] else . end' <<<"$messages")
  if [[ $stop == pause_turn && $calls == '[]' ]]; then
    pauses=$((pauses + 1))
    ((pauses <= 25)) || end escalated pauses
    continue
  fi
  pauses=0
  if [[ $calls != '[]' ]]; then
    results='[]'
    while read -r made; do
      said=$(call "$made") name=$(jq -r .name <<<"$made") item=$(jq -r '.input.item // ""' <<<"$made")
      results=$(jq -c --argjson made "$made" --argjson said "$said" \
        '. + [{type: "tool_result", tool_use_id: $made.id, content: $said.text, is_error: $said.error}]' <<<"$results")
      [[ $name == list_items ]] && listed=$(jq -c '.text | split(":")[1] | split(",") | map(gsub("^ +| +$"; ""))' <<<"$said")
      [[ $name == do_item || $name == undo_item ]] || continue
      state=$(jq -cn --arg item "$item" '{$item}' | post "$EVALKIT_TOOLS_URL/read_item" | jq -r .text)
      if [[ $state == *': done' ]]; then done[$item]=1; else unset "done[$item]"; fi
      if [[ $(jq .error <<<"$said") == false && $acted != *"\"$name $item\""* ]]; then
        acted=$(jq -c --arg action "$name $item" '. + [$action]' <<<"$acted") nudges=0
      fi
    done < <(jq -c '.[]' <<<"$calls")
    messages=$(jq -c --argjson results "$results" '. + [{role: "user", content: $results}]' <<<"$messages")
    continue
  fi
  open=''
  for item in $(jq -r '.[]' <<<"$listed"); do [[ -n ${done[$item]:-} ]] || open+="$item "; done
  [[ $listed == '[]' || -n $open ]] || end done closed
  ((nudges < 3)) || end escalated nudges
  nudges=$((nudges + 1))
  words=${open:+Still open: $open}
  messages=$(jq -c --arg words "${words:-Continue.}" '. + [{role: "user", content: $words}]' <<<"$messages")
done
end limit turns
