// Copies people's last locations to managers and to their teams. Consumes `location.events` and `team.events`.

import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

await serve("location-fan-out", settings: Setting.worker) { context in
    [try .workers(context, topics: [Topics.location, Topics.team]) { _ in LocationHandler() }]
}
