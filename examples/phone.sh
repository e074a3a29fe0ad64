#!/usr/bin/env bash
# The requests of a phone: read the realms, follow them, write an entry, submit it, and receive its status.
#
#   source .fieldpost/environment && examples/phone.sh
#
# Needs curl and jq, and a running `deploy/up` whose demo has created people and entries.
set -euo pipefail

me=emp001@demo.example mine=/users/$me
client=$(cat /proc/sys/kernel/random/uuid) entry=$(cat /proc/sys/kernel/random/uuid)

# Get a token. A phone gets it when its person logs in; the sandbox's provider issues one on every request.
token=$(curl -s $IDENTITY_URL/sandbox/token -d '{"email": "'$me'", "environment": "demo"}' | jq -r .access_token)
api() {
    curl -sN -w '\n' "$GATEWAY_URL$1" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' "${@:2}"
}

# List the realms: the own one, the catalogue of selectable nodes, the common one, those of teams and shares.
api /v1/realms | jq -c '.realms[]'

# Read their content: one JSON object per line, and a checkpoint with the cursors to resume from.
lines=$(api /v1/sync -d '{}')
cursors=$(jq -c '.checkpoint.cursors // empty' <<<"$lines")

# Follow the changes live for a minute, from these cursors on. The output is printed below.
exec 3< <(api /v1/sync --max-time 60 -d '{"realms": '"$cursors"', "live": true}' |
    jq --unbuffered -c '.objects.list[]? | [.id, .kind, .position, .fields.status, .fields.message]')

# Write a draft: half an hour for the most recently reported node. A client (one device) numbers its mutations from 1.
fields=$(jq -cn '[inputs.objects.list[]? | select(.kind == "TimeEntry" and .fields.status == "released").fields][-1]
    | {entryDate, reportingTemplate, reporting, timeType: "duration", durationSeconds: 1800, text: "survey"}' <<<"$lines")
api /v1/mutations -d '{"clientId": "'$client'", "mutations": [{"sequence": 1, "realm": "'$mine'", "op": "put",
    "kind": "TimeEntry", "id": "'$entry'", "fields": '"$fields"'}]}'

# Submit it.
api /v1/mutations -d '{"clientId": "'$client'", "mutations": [{"sequence": 2, "realm": "'$mine'", "op": "patch",
    "kind": "TimeEntry", "id": "'$entry'", "fields": {"submitRequested": true}}]}'

# Print the live stream until the entry is released, with lines of its status log. States that follow each other fast
# are sent once.
sed -Eu "/$entry.*(released|invalid)/q" <&3

# Print the last record of the SAP emulator.
curl -s $SAP_URL/sandbox/recorded | tail -n 1
