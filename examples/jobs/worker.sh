#!/bin/sh
# A worker for jobs with curl and sed: sh worker.sh [QUEUE]
# MINUTEBOOK_URL and MINUTEBOOK_TOKEN say where the server is, and who asks.

ask() {
    path=$1
    shift
    printf 'header = "Authorization: Bearer %s"\n' "$MINUTEBOOK_TOKEN" |
        curl --config - --silent --show-error --fail --max-time 60 "$@" "$MINUTEBOOK_URL$path"
}

# Does the work of a job and prints its figures. Yours goes here.
work() {
    bytes=$(curl --silent --fail --max-time 20 "$1" | wc -c) && [ "$bytes" -gt 0 ] &&
        printf '{"bytes": %d}' "$bytes"
}

while :; do
    # 503: the server stops; ask again.
    job=$(ask "/jobs/next?queue=${1:-quick}") || { sleep 1; continue; }
    [ -n "$job" ] || continue
    # A job begins with its id and its url, and its lease comes after its meta.
    id=$(echo "$job" | sed 's/^{"id":"\([^"]*\)".*/\1/')
    url=$(echo "$job" | sed 's/^{"id":"[^"]*","url":"\([^"]*\)".*/\1/')
    lease=$(echo "$job" | sed 's/.*"lease":"\([^"]*\)".*/\1/')
    if result=$(work "$url"); then
        verb=complete said="\"result\": $result"
    else
        verb=error said='"error": "the URL could not be read"'
    fi
    # 409: another worker got the job meanwhile.
    ask "/jobs/$id/$verb" --data "{\"lease\": \"$lease\", $said}" && echo "$verb $url"
done
