#!/usr/bin/env bash
# What a phone does: it reads its realms, follows them, writes an entry, submits it, and hears what came of it.
#
#   source .fieldpost/environment && examples/phone.sh
#
# Needs curl and jq, and what `deploy/up` runs, once its demo has made people and entries.
set -euo pipefail

me=emp001@demo.example mine=/users/$me
client=$(cat /proc/sys/kernel/random/uuid) entry=$(cat /proc/sys/kernel/random/uuid)

# A token. A phone gets it when its person logs in; the sandbox's provider gives one to whoever asks.
token=$(curl -s $IDENTITY_URL/sandbox/token -d '{"email": "'$me'", "environment": "demo"}' | jq -r .access_token)
api() {
    curl -sN -w '\n' "$GATEWAY_URL$1" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' "${@:2}"
}

# Which realms may I open? My own, the catalogue of what I may report on, the one that all share, my teams' and shares'.
api /v1/realms | jq -c '.realms[]'

# Read all that is in them: one JSON object a line, and a checkpoint whose cursors say where to go on from.
lines=$(api /v1/sync -d '{}')
cursors=$(jq -c '.checkpoint.cursors // empty' <<<"$lines")

# From there on live, for a minute: each change when it happens. It is shown below.
exec 3< <(api /v1/sync --max-time 60 -d '{"realms": '"$cursors"', "live": true}' |
    jq --unbuffered -c '.objects.list[]? | [.id, .kind, .position, .fields.status, .fields.message]')

# A draft: half an hour more of what was reported last. A client (one device) numbers its mutations from 1 on.
fields=$(jq -cn '[inputs.objects.list[]? | select(.kind == "TimeEntry" and .fields.status == "released").fields][-1]
    | {entryDate, reportingTemplate, reporting, timeType: "duration", durationSeconds: 1800, text: "survey"}' <<<"$lines")
api /v1/mutations -d '{"clientId": "'$client'", "mutations": [{"sequence": 1, "realm": "'$mine'", "op": "put",
    "kind": "TimeEntry", "id": "'$entry'", "fields": '"$fields"'}]}'

# Submit it.
api /v1/mutations -d '{"clientId": "'$client'", "mutations": [{"sequence": 2, "realm": "'$mine'", "op": "patch",
    "kind": "TimeEntry", "id": "'$entry'", "fields": {"submitRequested": true}}]}'

# The live stream tells of the draft, and then of the entry submitted and released, with lines of its status log.
sed -Eu "/$entry.*(released|invalid)/q" <&3

# What SAP's stand-in has recorded last.
curl -s $SAP_URL/sandbox/recorded | tail -n 1
